// CUDA streams, events, and graphs of recorded launches.
#pragma once
#include "backend/backend.h"
#include "backend/cuda/context.h"

namespace thrice::backend::cuda {

// `native`: the caller's CUstream, or nullptr for an own non-blocking one.
std::unique_ptr<Stream> make_stream(const ContextPtr& context, void* native);

}  // namespace thrice::backend::cuda
