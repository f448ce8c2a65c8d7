// A device without a device: the whole flow runs (plan, generate, "compile", store, release), kernels do
// nothing. Results are whatever the buffers held, so nothing on it counts as verified or timed.
#pragma once
#include "backend/backend.h"

namespace thrice::backend::null {
BackendReport report();
DevicePtr open(int index);  // throws kNotFound for any index but 0
}  // namespace thrice::backend::null
