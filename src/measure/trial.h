// One candidate through the whole gate: legality, generation, build, check, time, checks of the timed
// launches. Never throws for a bad candidate: its outcome says what went wrong.
#pragma once
#include <thrice/status.h>

#include "artifact/measurement.h"
#include "jit/kernel_cache.h"
#include "measure/check.h"
#include "measure/timing.h"

namespace thrice::measure {

struct TrialOptions {
  Gate gate = Gate::kScreening;
  uint64_t seed = 1;
  TimingOptions timing;
  double give_up_us =
      0;  // stop timing a candidate after its first sample when it is slower than this (0 = never)
};

// Where the time of one trial went, in ms. check, after and other_extents together are what trust costs.
struct TrialCost {
  double build = 0, check = 0, timing = 0, after = 0, other_extents = 0;
};

struct TrialResult {
  artifact::Measurement measurement;
  TrialCost cost;
  Code failure = Code::kOk;  // what ended the trial, finer than its outcome
  std::string source_key;
  backend::ProgramPtr program;  // when built
};

class TrialRunner {
 public:
  // The cache's device; own stream and buffers, reused from trial to trial. One thread at a time.
  TrialRunner(backend::DevicePtr device, std::shared_ptr<jit::KernelCache> cache);
  ~TrialRunner();
  TrialResult run(const ir::Workload& workload, const family::Family& family,
                  const artifact::Schedule& schedule, Oracle& oracle, const TrialOptions& options);
  // Times verified schedules of one workload against each other, interleaved.
  std::vector<Timing> compare(const ir::Workload& workload, const family::Family& family,
                              const std::vector<artifact::Schedule>& schedules, Oracle& oracle,
                              const TimingOptions& options);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace thrice::measure
