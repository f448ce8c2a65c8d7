// The tactic "cudnn": cuDNN computes a convolution in f32 where the device has it, for operands that lie in
// memory as they are and pads that are the same at both ends; bias and epilogue are a second kernel that
// reads the result from a scratch buffer. CUDA. Parameters: algorithm (artifact/library_convolution.h),
// workspace_mib.
#pragma once
#include "family/conv/conv_problem.h"

namespace thrice::family {

void emit_conv_library(ProgramDraft& draft, const ConvProblem& conv, const Schedule& schedule);
std::vector<std::pair<std::string, int64_t>> default_conv_library();
std::vector<artifact::Parameter> conv_library_parameters();
Refusal refuse_conv_library(const Workload& workload, const ConvProblem& conv, const Schedule& schedule,
                            const DeviceSpec& device);

}  // namespace thrice::family
