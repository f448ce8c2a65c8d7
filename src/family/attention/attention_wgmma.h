// The tactic "wgmma" of the room: attention of f16 and bf16 on the tensor cores of sm_90a out of operands as
// they lie in memory, kernels/cuda/attention_wgmma.cuh. CUDA. An operand that maps cannot read (a view that
// moves elements, a prologue) is copied first.
// Parameters: tile_m (queries a block, 64 a group of threads), tile_n (keys a tile), stages (tiles of keys in
// shared memory or on their way), turns (groups take turns in starting their products), blocks (that stay for
// many tiles).
#pragma once
#include "family/attention/attention_form.h"

namespace thrice::family {

void emit_attention_wgmma(ProgramDraft& draft, const AttentionForm& form, const Schedule& schedule);
Schedule default_attention_wgmma(const Workload& workload, const AttentionForm& form, const Facts& facts,
                                 const DeviceSpec& device);
std::vector<artifact::Parameter> attention_wgmma_parameters(const DeviceSpec& device);
Refusal refuse_attention_wgmma(const Workload& workload, const AttentionForm& form, const Schedule& schedule,
                               const DeviceSpec& device);

}  // namespace thrice::family
