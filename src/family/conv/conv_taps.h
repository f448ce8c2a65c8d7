// The tactic "taps" of the room: one input channel an output channel, both languages. A thread holds reg_p x
// reg_q neighbouring outputs of one channel and the weights of all taps in registers; every element of the
// input that they need is read once and used by each output it serves. Neighbouring threads have neighbouring
// columns. Parameters: reg_p (rows; 1 where there is one spatial axis), reg_q (columns), threads.
#pragma once
#include "family/conv/conv_problem.h"

namespace thrice::family {

KernelDraft emit_conv_taps(ProgramDraft& draft, const ConvProblem& conv, const Schedule& schedule);
std::vector<std::pair<std::string, int64_t>> default_conv_taps(const ConvProblem& conv, const Facts& facts,
                                                               const DeviceSpec& device);
std::vector<artifact::Parameter> conv_taps_parameters();
// Of a convolution that "depthwise" takes (conv.cc).
Refusal refuse_conv_taps(const Workload& workload, const ConvProblem& conv, const Schedule& schedule,
                         const DeviceSpec& device);

}  // namespace thrice::family
