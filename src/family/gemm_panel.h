// The tactic "panel" of gemm.h: products for CPUs out of a copied panel of B, kernels/opencl/gemm_panel.cl.
// OpenCL, floats. Parameters: reg_m reg_v lanes (the register tile), tiles (register tiles below each other
// that share the panel), tile_k (depth of the panel).
#pragma once
#include "family/gemm.h"

namespace thrice::family {

KernelDraft emit_gemm_panel(ProgramDraft& draft, const std::string& symbol, const Gemm& gemm,
                            const Schedule& schedule);
std::vector<std::pair<std::string, int64_t>> default_gemm_panel(const GemmSize& size,
                                                                const DeviceSpec& device);
std::vector<artifact::Parameter> gemm_panel_parameters();
Refusal refuse_gemm_panel(const Workload& workload, const Gemm& gemm, const Schedule& schedule,
                          const DeviceSpec& device);

}  // namespace thrice::family
