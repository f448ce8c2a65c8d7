// The tactic "mma" of gemm.h: products on tensor cores, kernels/cuda/gemm_mma.cuh. CUDA, f32 f16 bf16.
// Parameters: tile_m tile_n tile_k; warps_m warps_n (how warps share the tile); stages (tiles in shared
// memory or on their way); split (blocks that share the depth of a tile as one cluster; above 1 from sm_90
// on); shares (as many clusters or blocks share it through scratch memory, which a second kernel adds up).
#pragma once
#include "family/gemm.h"

namespace thrice::family {

// nullopt on devices with the instructions of these kernels.
Refusal refuse_without_mma(const DeviceSpec& device);
// Elements from a line of `depth` to the next in shared memory, so that the threads of a warp that read pairs
// of fragments meet all banks.
int64_t depth_pitch(int64_t depth);

// Scratch for the sums of several shares; -1 where there is one. Before the first kernel of the draft: who
// has kernels of his own declares it and says so in Gemm::sums, others leave that to emit_gemm_mma.
int declare_mma_sums(ProgramDraft& draft, const Gemm& gemm, const Schedule& schedule);
void emit_gemm_mma(ProgramDraft& draft, const std::string& symbol, const Gemm& gemm,
                   const Schedule& schedule);
std::vector<std::pair<std::string, int64_t>> default_gemm_mma(const GemmSize& size, const DeviceSpec& device);
std::vector<artifact::Parameter> gemm_mma_parameters(const DeviceSpec& device);
Refusal refuse_gemm_mma(const Workload& workload, const Gemm& gemm, const Schedule& schedule,
                        const DeviceSpec& device);

}  // namespace thrice::family
