// The text put before every kernel program, and the options it is built with.
#pragma once
#include <string>

#include "artifact/kernel.h"

namespace thrice::family {

// The language's own part (kernels/opencl/prelude.cl or kernels/cuda/prelude.cuh) and the shared operators
// (kernels/portable/operators.h), in this order.
std::string prelude(artifact::Language language);

// Options of clBuildProgram. Division and square root round correctly where the device can (a device that
// cannot ignores or refuses the option: the back end drops it when CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT is
// absent). Nothing here relaxes IEEE arithmetic; contraction is off by pragma in the prelude, kernels write
// th_fma_f32.
constexpr const char* kOpenCLBuildOptions = "-cl-std=CL1.2";
constexpr const char* kOpenCLCorrectDivideOption = "-cl-fp32-correctly-rounded-divide-sqrt";
// Options of NVRTC beside --gpu-architecture. No contraction, so that fused and unfused plans agree.
constexpr const char* kNvrtcOptions[] = {"--std=c++17", "--fmad=false"};

}  // namespace thrice::family
