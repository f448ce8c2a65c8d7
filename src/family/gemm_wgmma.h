// The tactic "wgmma" of gemm.h: float32 products as three scaled fp16 products on the tensor cores of
// sm_90a, kernels/cuda/gemm_wgmma.cuh. CUDA, f32. Three kernels: pack A, pack B, multiply; the packed
// operands are scratch buffers of the operands' size.
// Parameters: tile_m (64 a group of consumers); tile_n (above 128 in two slices); stages (slots of the ring
// of A; the ring of B takes the shared memory that is left); split (blocks that share the depth of a tile as
// one cluster).
#pragma once
#include "family/gemm.h"

namespace thrice::family {

// Text of th_wgmma, the instruction of 64 x n sums over 16 of the depth (d = a b, or d += a b with `keep`),
// and of th_wgmma_done, which keeps readers of d behind the wait. dtype: f16 or bf16. An operand is in lines
// where its rows, not the depth, follow in memory.
std::string wgmma_functions(int64_t n, DType dtype, bool a_in_lines, bool b_in_lines);

void emit_gemm_wgmma(ProgramDraft& draft, const std::string& symbol, const Gemm& gemm,
                     const Schedule& schedule);
std::vector<std::pair<std::string, int64_t>> default_gemm_wgmma(const GemmSize& size,
                                                                const DeviceSpec& device);
std::vector<artifact::Parameter> gemm_wgmma_parameters();
Refusal refuse_gemm_wgmma(const Workload& workload, const Gemm& gemm, const Schedule& schedule,
                          const DeviceSpec& device);

}  // namespace thrice::family
