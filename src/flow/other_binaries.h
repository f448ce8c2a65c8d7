// Binaries of a release for CUDA architectures besides the device's own, built beside what needs the device.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "release/release.h"
#include "worker/builders.h"

namespace thrice::flow {

// One thread, the one that made it.
class OtherBinaries {
 public:
  // `worker`: executable that takes `worker --architecture A`; "" = everything is built in add_to(), here.
  // `cache_folder`: of kernels.
  OtherBinaries(std::string worker, std::vector<std::string> architectures, std::string cache_folder);
  // Starts builds for every architecture, in half as many processes as there are cores, of what was not begun
  // before. Does not wait.
  void begin(const std::vector<artifact::KernelSource>& sources);
  // Waits for what was begun, builds what is missing, and adds all to the release. Throws as
  // add_architectures.
  void add_to(release::Release& release);

 private:
  struct Builds {
    std::string architecture;
    std::unique_ptr<worker::Builders> builders;
    std::vector<artifact::KernelSource> sources;
  };
  bool is_begun(const std::string& architecture, const artifact::KernelSource& source) const;

  const std::string worker_, cache_folder_;
  const std::vector<std::string> architectures_;
  std::vector<Builds> builds_;
};

}  // namespace thrice::flow
