// A CUDA device that is not there: kernels are built for it, nothing runs.
#pragma once
#include "backend/backend.h"

namespace thrice::backend {

// `architecture`: "sm_90a". Its limits are those that every card of the architecture has; memory is the
// host's and launches do nothing, as on the null device. The id is "cuda:sm_90a". Throws kNotFound where
// there is no NVRTC, kInvalidArgument where NVRTC does not know the architecture.
DevicePtr open_cross_device(const std::string& architecture);

}  // namespace thrice::backend
