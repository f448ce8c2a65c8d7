#include "flow/build.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include "backend/cross_device.h"
#include "codegen/generate.h"
#include "ir/check.h"
#include "runtime/programs.h"
#include "target/architecture.h"

namespace thrice::flow {

namespace {

artifact::Language language_of(const target::DeviceSpec& spec) {
  return spec.api == target::Api::kCuda ? artifact::Language::kCuda : artifact::Language::kOpenCL;
}

std::vector<artifact::ManifestTensor> tensors_of(const ir::Graph& graph, const std::vector<ir::ValueId>& ids,
                                                 const std::vector<std::string>& names) {
  std::vector<artifact::ManifestTensor> tensors;
  for (size_t i = 0; i < ids.size(); ++i) {
    const ir::Type& type = graph.value(ids[i]).type;
    tensors.push_back({names[i], std::string(dtype_name(type.dtype)), ir::shape_str(type.shape)});
  }
  return tensors;
}

}  // namespace

exec::ProgramSource program_source(backend::DevicePtr device, std::shared_ptr<jit::KernelCache> cache,
                                   std::vector<BuiltProgram>* built) {
  return [device, cache, built](const ir::Workload& workload, const family::Family& family,
                                const artifact::Schedule& schedule) {
    artifact::KernelSource source =
        codegen::generate(workload, family, schedule, device->spec(), language_of(device->spec()));
    const jit::KernelCache::Built result = cache->build(source);
    if (built) built->push_back({workload.hash, schedule.str(), std::move(source), result.binary});
    return result.program;
  };
}

exec::ProgramSource program_source(backend::DevicePtr device, std::shared_ptr<const release::Release> release,
                                   std::shared_ptr<jit::KernelCache> cache) {
  runtime::Builder build;
  if (device->compiler() && cache)
    build = [cache](const artifact::KernelSource& source) { return cache->build(source).program; };
  return runtime::release_programs(std::move(device), std::move(release), std::move(build));
}

release::Release make_release(const OptimizeReport& report, backend::Device& device,
                              std::shared_ptr<const ir::Graph> graph,
                              std::shared_ptr<const artifact::Plan> plan,
                              const std::vector<BuiltProgram>& built,
                              const std::vector<std::string>& slow_steps) {
  release::Release release;
  artifact::Manifest& m = release.manifest;
  m.product_version = THRICE_VERSION;
  m.model_name = graph->name;
  m.model_digest = ir::structural_hash(*graph);
  m.plan_digest = plan->digest();
  m.device_name = device.spec().name;
  m.device_id = device.spec().id;
  m.device_key = device.spec().key();
  m.driver = device.spec().driver;
  m.compiler = device.compiler() ? device.compiler()->version() : "none";
  m.timed_at = report.timed_at;
  m.verified = report.verified;
  m.max_error = report.max_error;
  m.error_limit = report.error_limit;
  m.original_us = report.original_us;
  m.best_us = report.best_us;
  m.trials = report.trials;
  m.peak_bytes = report.peak_bytes;
  m.original_peak_bytes = report.original_peak_bytes;
  m.inputs = tensors_of(*graph, graph->inputs, graph->input_names);
  m.outputs = tensors_of(*graph, graph->outputs, graph->output_names);
  m.slow_steps = slow_steps;
  m.memory_front = report.memory_front;
  m.metadata = graph->metadata;
  m.decisions = report.fusion.decisions;
  std::map<std::string, const BuiltProgram*> sources;
  std::map<std::string, const BuiltProgram*> programs;
  for (const BuiltProgram& b : built) {
    sources.emplace(b.source.key, &b);
    programs.emplace(b.workload + " " + b.schedule, &b);
  }
  for (const auto& [key, b] : programs)
    m.programs.push_back({b->workload, b->schedule, b->source.key, b->source.kernels});
  for (const auto& [key, b] : sources) {
    release.sources.push_back(b->source);
    if (b->binary) release.binaries.push_back(*b->binary);
  }
  release.graph = std::move(graph);
  release.plan = std::move(plan);
  return release;
}

std::vector<std::string> with_ptx(const target::DeviceSpec& device, const std::vector<std::string>& also) {
  if (device.api != target::Api::kCuda) return {};
  std::vector<std::string> all = also;
  all.push_back(device.architecture);
  const std::string ptx = target::oldest_virtual(all);
  all.pop_back();
  if (!ptx.empty()) all.push_back(ptx);
  return all;
}

void add_architectures(release::Release& release, const std::vector<std::string>& architectures,
                       const std::string& cache_folder) {
  for (const std::string& architecture : architectures) {
    jit::KernelCache cache(backend::open_cross_device(architecture), cache_folder);
    for (const artifact::KernelSource& source : release.sources) try {
        release.binaries.push_back(*cache.build(source).binary);
      } catch (const Error& error) {
        std::string schedule = "?";
        for (const artifact::ManifestProgram& program : release.manifest.programs)
          if (program.source_key == source.key) schedule = program.schedule;
        throw Error(error.code(),
                    fmt::format("schedule '{}' does not build for {}: leave that architecture out and "
                                "make a release of its own: {}",
                                schedule, architecture, error.what()));
      }
  }
}

}  // namespace thrice::flow
