// The tactic "chunks" of the room: kernels/cuda/delta_rule.cuh. Parameters: columns (of a state in a block:
// 128, or 64 where there are few heads), blocks.
#pragma once
#include "family/delta_rule/delta_rule_form.h"

namespace thrice::family {

void emit_chunks(ProgramDraft& draft, const DeltaRuleForm& form, const Schedule& schedule);
Schedule default_chunks(const DeltaRuleForm& form, const Facts& facts, const DeviceSpec& device);
std::vector<artifact::Parameter> chunks_parameters(const DeviceSpec& device);
Refusal refuse_chunks(const Workload& workload, const DeltaRuleForm& form, const Schedule& schedule,
                      const DeviceSpec& device);

}  // namespace thrice::family
