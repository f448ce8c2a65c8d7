// The tactic "wgmma16" of gemm.h: f16 and bf16 products on the tensor cores of sm_90a out of operands as they
// lie in memory, brought by tensor maps; kernels/cuda/gemm_wgmma16.cuh. CUDA. An operand that maps cannot
// read (lines of no whole 16 bytes, a prologue) is copied first, weights once. Parameters: tile_m (64 a group
// of consumers); tile_n; stages (steps of 64 of the depth in shared memory or on their way); cluster (blocks
// that share their columns of B: 1 or 2); blocks (that stay for many tiles; 0: one a tile).
#pragma once
#include "family/gemm.h"

namespace thrice::family {

void emit_gemm_wgmma16(ProgramDraft& draft, const std::string& symbol, const Gemm& gemm,
                       const Schedule& schedule);
std::vector<std::pair<std::string, int64_t>> default_gemm_wgmma16(const GemmSize& size,
                                                                  const DeviceSpec& device);
std::vector<artifact::Parameter> gemm_wgmma16_parameters(const DeviceSpec& device);
Refusal refuse_gemm_wgmma16(const Workload& workload, const Gemm& gemm, const Schedule& schedule,
                            const DeviceSpec& device);
// Both operands can be read as they lie: whole matrices whose lines are known multiples of 16 bytes.
bool suits_wgmma16(const Gemm& gemm);

}  // namespace thrice::family
