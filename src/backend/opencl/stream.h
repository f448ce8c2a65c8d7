// An in-order OpenCL queue with profiling.
#pragma once
#include "backend/backend.h"
#include "backend/opencl/context.h"

namespace thrice::backend::opencl {

// `native`: a cl_command_queue of the same context, in order (with profiling, or its events have no time); or
// nullptr for an own one.
std::unique_ptr<Stream> make_stream(const ContextPtr& context, void* native);

}  // namespace thrice::backend::opencl
