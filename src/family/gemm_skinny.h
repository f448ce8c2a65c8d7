// The tactic "skinny" of gemm.h: products of few rows on tensor cores, B read once and straight into
// registers; kernels/cuda/gemm_skinny.cuh. CUDA, sm_80 and newer, f32 (float32-accurate) f16 bf16.
// Parameters: tile_m (16 or 32 rows a block); tile_n (columns a block, in warps of 32, of 64 for 16 bits
// along n); warps_k (warps that share the depth of a block); stages (steps of the depth in registers or on
// their way); split (blocks that share the depth as one cluster; above 1 from sm_90 on).
#pragma once
#include "family/gemm.h"

namespace thrice::family {

void emit_gemm_skinny(ProgramDraft& draft, const std::string& symbol, const Gemm& gemm,
                      const Schedule& schedule);
std::vector<std::pair<std::string, int64_t>> default_gemm_skinny(const GemmSize& size,
                                                                 const DeviceSpec& device);
std::vector<artifact::Parameter> gemm_skinny_parameters(const DeviceSpec& device);
// More is read of B than caches hold and few rows meet it, or the product is small: there this tactic was the
// fastest (docs/kernels/matmul.md).
bool suits_gemm_skinny(const Gemm& gemm, const GemmSize& size, const DeviceSpec& device);
Refusal refuse_gemm_skinny(const Workload& workload, const Gemm& gemm, const Schedule& schedule,
                           const DeviceSpec& device);

}  // namespace thrice::family
