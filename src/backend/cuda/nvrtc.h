// CUDA C++ to cubin with NVRTC, opened at run time; needs no card.
#pragma once
#include "backend/backend.h"

namespace thrice::backend::cuda {

// Why there is no NVRTC, or "" when there is. Searched: THRICE_NVRTC (a file, read once), the loader's path,
// the toolkit's usual folder; libnvrtc.so.13, then .12.
std::string nvrtc_missing();
// nullptr where there is none. `architecture`: "sm_90a" makes cubins, "compute_80" PTX.
std::unique_ptr<Compiler> make_nvrtc(const std::string& architecture);

}  // namespace thrice::backend::cuda
