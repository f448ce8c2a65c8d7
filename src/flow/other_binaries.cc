#include "flow/other_binaries.h"

#include <thrice/status.h>

#include <algorithm>
#include <thread>

#include "backend/cross_device.h"
#include "flow/build.h"
#include "jit/kernel_cache.h"

namespace thrice::flow {

OtherBinaries::OtherBinaries(std::string worker, std::vector<std::string> architectures,
                             std::string cache_folder)
    : worker_(std::move(worker)),
      cache_folder_(std::move(cache_folder)),
      architectures_(std::move(architectures)) {}

void OtherBinaries::begin(const std::vector<artifact::KernelSource>& sources) {
  if (worker_.empty()) return;
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  for (const std::string& architecture : architectures_) try {
      const jit::KernelCache cache(backend::open_cross_device(architecture), cache_folder_);
      std::vector<artifact::KernelSource> missing;
      for (const artifact::KernelSource& source : sources)
        if (!cache.has(source) && !is_begun(architecture, source)) missing.push_back(source);
      if (missing.empty()) continue;
      const std::string version = backend::cross_compiler(architecture)->version();
      Builds& builds = builds_.emplace_back();
      builds.architecture = architecture;
      builds.builders = std::make_unique<worker::Builders>(worker_, architecture, version,
                                                           std::max(1, cores / 2), worker::Limits());
      builds.builders->submit_last(missing);
      builds.sources = std::move(missing);
    } catch (const Error&) {
      // add_to() meets it again, and says so
    }
}

bool OtherBinaries::is_begun(const std::string& architecture, const artifact::KernelSource& source) const {
  const auto is_same = [&](const artifact::KernelSource& begun) { return begun.key == source.key; };
  return std::any_of(builds_.begin(), builds_.end(), [&](const Builds& builds) {
    return builds.architecture == architecture &&
           std::any_of(builds.sources.begin(), builds.sources.end(), is_same);
  });
}

void OtherBinaries::add_to(release::Release& release) {
  for (Builds& builds : builds_) {
    builds.builders->finish_all();
    jit::KernelCache cache(backend::open_cross_device(builds.architecture), cache_folder_);
    for (const artifact::KernelSource& source : builds.sources)
      if (const auto built = builds.builders->take(source.key); built && built->binary)
        cache.put(source, *built->binary);
  }
  builds_.clear();
  add_architectures(release, architectures_, cache_folder_);
}

}  // namespace thrice::flow
