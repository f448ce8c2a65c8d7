// Where a trial runs: what of a candidate is needed once its text and launches are known, and the half of a
// trial that builds, checks, times and checks again. The same code serves this process and a worker.
#pragma once
#include <thrice/status.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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
  // Several at once are timed too (measure/concurrent.h) where one alone takes no longer than this. 0 =
  // never.
  double concurrent_below_us = 0;
  bool both_caches = false;  // the state of the caches that `timing` does not ask for too, in few samples
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
};

struct Job {
  artifact::KernelSource source;
  artifact::LaunchPlan launches;
  std::optional<artifact::LaunchPlan> elsewhere;  // at other_extents(); full gate only
  std::vector<family::Share> shares;              // full gate only: checked in place too
  double least_us = 0;                            // less is a measuring error; 0 = not known
  std::string peaks_source;                       // where least_us comes from
  TrialOptions options;
};

// One of those that are timed against each other.
struct Contender {
  artifact::KernelSource source;
  artifact::LaunchPlan launches;
};

class TrialPlace {
 public:
  virtual ~TrialPlace() = default;
  // Never throws for a bad candidate: the outcome says what went wrong.
  virtual TrialResult run(const ir::Workload& workload, Oracle& oracle, const Job& job) = 0;
  // Interleaved. Throws what a candidate's failure is.
  virtual std::vector<Timing> compare(const ir::Workload& workload, Oracle& oracle,
                                      const std::vector<Contender>& contenders,
                                      const TimingOptions& options) = 0;
  // Candidates of coming trials, most urgent first: they may be built meanwhile.
  virtual void prepare(const ir::Workload& workload, const std::vector<ir::Fact>& facts,
                       const std::vector<Contender>& coming) {
    (void)workload;
    (void)facts;
    (void)coming;
  }
  // Texts that no trial will ask for: built beside when nothing else is waiting. fetch() waits for all of
  // them and puts one into the kernel cache.
  virtual void build_later(const std::vector<artifact::KernelSource>& sources) { (void)sources; }
  virtual void fetch(const artifact::KernelSource& source) { (void)source; }
  // The device's peaks, measured (measure/probe.h); its own spec where it tells them. Throws what failed.
  virtual target::DeviceSpec probe() = 0;
  // How many candidates ahead are worth preparing; 1 = none but the next.
  virtual size_t lookahead() const { return 1; }
  // Checks run with buffers that end at unmapped memory, where the device offers it.
  virtual bool fences() const { return false; }
  // Goes on without unmapped memory at the ends of buffers; false: there was none.
  virtual bool drop_fences() { return false; }
  // Why no further trial can be made; empty = one can.
  virtual std::string lost() const { return {}; }
  // What a user should know afterwards.
  virtual std::vector<std::string> notes() const { return {}; }
};

// In this process. One thread at a time; own stream and buffers.
struct PlaceOptions {
  PhaseListener entered;               // told where the trial is; may be empty
  std::function<SampleState()> state;  // TimingOptions::state of every timing; may be empty
  bool fences = false;  // check with buffers that end at unmapped memory, where the device offers it
};
std::unique_ptr<TrialPlace> place_here(backend::DevicePtr device, std::shared_ptr<jit::KernelCache> cache,
                                       const PlaceOptions& options = {});

// Writes outcome, code and message of what a candidate threw. Rethrows what is not the candidate's fault.
void set_failure(TrialResult& result, const Error& error);

}  // namespace thrice::measure
