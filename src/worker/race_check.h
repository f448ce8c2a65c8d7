// Chosen kernels under a race checker: each is launched once in a process that NVIDIA's compute-sanitizer
// (CUDA: memcheck, then racecheck) or oclgrind (OpenCL: the kernel's text on its simulator) watches.
#pragma once
#include <string>
#include <vector>

#include "target/device_spec.h"
#include "worker/launches_file.h"

namespace thrice::worker {

struct RaceVerdict {
  enum Kind { kClean, kHazard, kNotChecked } kind = kClean;
  std::string why;  // of the others: the tool's first words about it; why it could not be checked
};

struct RaceCheckOptions {
  std::string executable = "/proc/self/exe";  // that takes `worker --launches FILE`
  std::string kernels;                        // folder of the kernel cache; "" = none
  std::string tool;                           // "" = find_race_checker()
  double limit_s = 60;  // of one kernel under one tool, start included: these tools slow kernels down 10 to
                        // 1000 times, oclgrind most
  int64_t most_groups = 64;  // oclgrind: work-groups of a launch; it runs them one after another
};

// Path of compute-sanitizer (CUDA) or of oclgrind's ICD library (OpenCL): THRICE_RACE_CHECKER, else PATH and
// CUDA's folders, or the system's library folders. "" for devices that run nothing. Throws kNotFound with
// what to install.
std::string find_race_checker(const target::DeviceSpec& device);

// The text that is checked in place of a kernel's own: racecheck does not follow a lane that arrives at an
// mbarrier for its warp (bench/racecheck_probe.cu), so there every lane does; nothing else differs. The same
// text where no lane does.
artifact::KernelSource for_race_checker(artifact::KernelSource source);

class RaceChecker {
 public:
  // Throws kNotFound where there is no tool.
  RaceChecker(target::DeviceSpec device, RaceCheckOptions options);
  // Index-aligned with `all`. Vendors' library calls are not checked. On CUDA all share a process first; only
  // where the tool reports something, or the process does not end, is each run alone.
  std::vector<RaceVerdict> check(const std::vector<ToLaunch>& all) const;
  std::string name() const;  // "compute-sanitizer (memcheck, racecheck)", "oclgrind"

 private:
  RaceVerdict run(const std::vector<ToLaunch>& some) const;

  target::DeviceSpec device_;
  RaceCheckOptions options_;
};

}  // namespace thrice::worker
