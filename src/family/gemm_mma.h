// The tactic "mma" of gemm.h: products on tensor cores, kernels/cuda/gemm_mma.cuh. CUDA, f32 f16 bf16.
// Parameters: tile_m tile_n tile_k; warps_m warps_n (how warps share the tile); stages (tiles in shared
// memory or on their way); split (blocks that share the depth of a tile as one cluster; above 1 from sm_90
// on).
#pragma once
#include "family/gemm.h"

namespace thrice::family {

// nullopt on devices with the instructions of these kernels.
Refusal refuse_without_mma(const DeviceSpec& device);
// Elements from a line of `depth` to the next in shared memory, so that the threads of a warp that read pairs
// of fragments meet all banks.
int64_t depth_pitch(int64_t depth);

KernelDraft emit_gemm_mma(ProgramDraft& draft, const std::string& symbol, const Gemm& gemm,
                          const Schedule& schedule);
std::vector<std::pair<std::string, int64_t>> default_gemm_mma(const GemmSize& size, const DeviceSpec& device);
std::vector<artifact::Parameter> gemm_mma_parameters(const DeviceSpec& device);
Refusal refuse_gemm_mma(const Workload& workload, const Gemm& gemm, const Schedule& schedule,
                        const DeviceSpec& device);

}  // namespace thrice::family
