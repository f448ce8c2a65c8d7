// OpenCL devices found on this machine.
#pragma once
#include "backend/backend.h"

namespace thrice::backend::opencl {

// GPUs first, then the rest, in the order of the loader's platforms. A missing library, no platform and no
// device are reasons in the report.
BackendReport report();
DevicePtr open(int index);  // throws kNotFound

}  // namespace thrice::backend::opencl
