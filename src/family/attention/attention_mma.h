// The tactic "mma" of the room: attention on tensor cores, kernels/cuda/attention.cuh. CUDA, sm_80 on.
// Parameters: warps_m (16 queries each), warps_n (shares of a tile's keys), tile_n (keys of a share), stages
// (tiles of K and V in shared memory or on their way).
#pragma once
#include "family/attention/attention_form.h"

namespace thrice::family {

void emit_attention_mma(ProgramDraft& draft, const AttentionForm& form, const Schedule& schedule);
Schedule default_attention_mma(const AttentionForm& form, const Facts& facts, const DeviceSpec& device);
std::vector<artifact::Parameter> attention_mma_parameters();
Refusal refuse_attention_mma(const Workload& workload, const AttentionForm& form, const Schedule& schedule,
                             const DeviceSpec& device);

}  // namespace thrice::family
