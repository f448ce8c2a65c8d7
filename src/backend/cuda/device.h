// NVIDIA cards.
#pragma once
#include "backend/backend.h"

namespace thrice::backend::cuda {

BackendReport report();
DevicePtr open(int index);  // throws kNotFound

}  // namespace thrice::backend::cuda
