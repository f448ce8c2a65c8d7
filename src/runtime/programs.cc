#include "runtime/programs.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <map>

#include "target/architecture.h"

namespace thrice::runtime {

namespace {

artifact::Language language_of(const target::DeviceSpec& spec) {
  return spec.api == target::Api::kCuda ? artifact::Language::kCuda : artifact::Language::kOpenCL;
}

// The binary of exactly this architecture, else the nearest one that a CUDA card runs too, else PTX; nullptr:
// none.
const artifact::KernelBinary* fitting(const release::Release& release, const std::string& key,
                                      const target::DeviceSpec& spec) {
  const artifact::KernelBinary *best = nullptr, *ptx = nullptr;
  for (const artifact::KernelBinary& binary : release.binaries) {
    if (binary.key != key) continue;
    if (binary.architecture == spec.architecture) return &binary;
    const bool runs = spec.api == target::Api::kCuda && binary.format == artifact::BinaryFormat::kCubin &&
                      target::cubin_runs_on(binary.architecture, spec.architecture);
    if (runs && (!best || target::cubin_runs_on(best->architecture, binary.architecture))) best = &binary;
    if (spec.api == target::Api::kCuda && binary.format == artifact::BinaryFormat::kPtx &&
        target::ptx_runs_on(binary.architecture, spec.architecture))
      ptx = &binary;
  }
  return best ? best : ptx;
}

std::string architectures_in(const release::Release& release) {
  std::string names;
  for (const artifact::KernelBinary& binary : release.binaries)
    if (names.find(binary.architecture) == std::string::npos)
      names += (names.empty() ? "" : "; ") + binary.architecture;
  return names.empty() ? "none" : names;
}

}  // namespace

Builder driver_builder(backend::DevicePtr device) {
  if (!device->compiler()) return {};
  auto built = std::make_shared<std::map<std::string, backend::ProgramPtr>>();
  return [device, built](const artifact::KernelSource& source) {
    backend::ProgramPtr& program = (*built)[source.key];
    if (!program) program = device->load(device->compiler()->compile(source), source.kernels);
    return program;
  };
}

exec::ProgramSource release_programs(backend::DevicePtr device,
                                     std::shared_ptr<const release::Release> release, Builder build) {
  return [device, release, build](const ir::Workload& workload, const family::Family&,
                                  const artifact::Schedule& schedule) -> backend::ProgramPtr {
    const std::string text = schedule.str();
    for (const artifact::ManifestProgram& program : release->manifest.programs) {
      if (program.workload != workload.hash || program.schedule != text) continue;
      if (const artifact::KernelBinary* binary = fitting(*release, program.source_key, device->spec()))
        return device->load(*binary, program.kernels);
      for (const artifact::KernelSource& source : release->sources)
        if (source.key == program.source_key && source.language == language_of(device->spec()) && build)
          return build(source);
      throw Error(Code::kUnsupported, fmt::format("the release has no kernels for '{}' (it has: {}); "
                                                  "optimize the model on this device, or with --target",
                                                  device->spec().architecture, architectures_in(*release)));
    }
    throw Error(Code::kCorrupt,
                fmt::format("the release has no program for workload {} with '{}'", workload.hash, text));
  };
}

}  // namespace thrice::runtime
