// The tactic "cublaslt" of gemm.h: cuBLASLt computes the product where the device has it, for operands that
// lie in memory as whole matrices (Gemm::a_matrix, b_matrix). An epilogue is a second kernel that reads the
// product from a scratch buffer. CUDA, f32 f64 f16 bf16. Parameters: algorithm (artifact/library_product.h),
// workspace_mib.
#pragma once
#include "family/gemm.h"

namespace thrice::family {

// An input of the region whose bytes are one matrix (its last `matrix_axes` axes), or one for each of the
// result's batches in order; nullopt where a prologue, or batches that are partly broadcast, are in the way.
std::optional<GemmMatrix> whole_matrix(const Workload& workload, ir::ValueId operand, size_t matrix_axes,
                                       const std::vector<ir::Dim>& batches);
// The graph output whose bytes are those of the product `result`, when it is the only output; else -1.
int plain_output(const Workload& workload, ir::ValueId result);

void emit_gemm_library(ProgramDraft& draft, const std::string& symbol, const Gemm& gemm,
                       const Schedule& schedule);
std::vector<std::pair<std::string, int64_t>> default_gemm_library();
std::vector<artifact::Parameter> gemm_library_parameters();
Refusal refuse_gemm_library(const Workload& workload, const Gemm& gemm, const Schedule& schedule,
                            const DeviceSpec& device);

}  // namespace thrice::family
