// Between plan and executor: building every region's program, and packing what was built into a release.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "exec/executable.h"
#include "flow/optimize.h"
#include "jit/kernel_cache.h"
#include "release/release.h"

namespace thrice::flow {

// What a release needs of a built region.
struct BuiltProgram {
  std::string workload, schedule;
  artifact::KernelSource source;
  std::shared_ptr<const artifact::KernelBinary> binary;
};

// Generates, builds (or finds in the cache) and loads; appends to `built` where given.
exec::ProgramSource program_source(backend::DevicePtr device, std::shared_ptr<jit::KernelCache> cache,
                                   std::vector<BuiltProgram>* built);

// Loads from a release (runtime/programs.h); what must be built goes through the cache, where there is one.
exec::ProgramSource program_source(backend::DevicePtr device, std::shared_ptr<const release::Release> release,
                                   std::shared_ptr<jit::KernelCache> cache);

release::Release make_release(const OptimizeReport& report, backend::Device& device,
                              std::shared_ptr<const ir::Graph> graph,
                              std::shared_ptr<const artifact::Plan> plan,
                              const std::vector<BuiltProgram>& built,
                              const std::vector<std::string>& slow_steps);

// `also`, and the PTX ("compute_80") that the oldest of them and of the device takes, for cards that none of
// the binaries fits. Empty for other devices than CUDA's.
std::vector<std::string> with_ptx(const target::DeviceSpec& device, const std::vector<std::string>& also);
// Adds binaries of further CUDA architectures for every program of the release. `cache_folder`: of kernels.
// Throws kCompileFailed that names region and architecture: a schedule of one card may need what another
// lacks.
void add_architectures(release::Release& release, const std::vector<std::string>& architectures,
                       const std::string& cache_folder);

}  // namespace thrice::flow
