// Launches of chosen kernels in a file, and the process that makes each of them once: what a race checker
// watches.
#pragma once
#include <string>
#include <vector>

#include "measure/place.h"

namespace thrice::worker {

struct ToLaunch {
  const ir::Workload* workload = nullptr;
  const std::vector<ir::Fact>* facts = nullptr;  // of the workload's inputs
  measure::Job job;                              // its source and launches; the seed of its options
};
void write_launches(const std::string& path, const std::vector<ToLaunch>& all);

struct LaunchOptions {
  std::string device;   // "cuda:0"
  std::string kernels;  // folder of the kernel cache; "" = none
  // Work-groups of a launch that are made; 0 = all. The first of each axis, fewer of the first axes.
  int64_t most_groups = 0;
};
// Builds and launches what the file holds, on random inputs, and looks at no result. Prints the device's name
// once all were made. Throws what failed.
void make_launches(const std::string& path, const LaunchOptions& options);

}  // namespace thrice::worker
