// The tuning phase: trials of every distinct workload under one budget.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "flow/device_guard.h"
#include "flow/progress.h"
#include "flow/search.h"
#include "flow/settings.h"
#include "measure/trial.h"
#include "plan/planner.h"
#include "store/store.h"
#include "store/trial_log.h"
#include "worker/race_check.h"

namespace thrice::flow {

// How candidates are timed: as the model will run (timing_policy).
struct TimingPolicy {
  bool cold = false;     // caches; chosen by this time
  bool both = false;     // the other state of the caches is timed too and kept with the trial
  double settle_us = 0;  // before a duel: busy until clocks are those of sustained load
  double rest_us = 0;    // before each sample of a duel: clocks have recovered
  std::string sentence;  // what was chosen and why; "" where there is nothing to say
};
// `model_bytes`: what the model moves between two executions of one region; more than the L2 cache holds
// means that a region finds its operands driven out. CPUs: warm and as it comes, unless the settings say
// otherwise.
TimingPolicy timing_policy(const Settings& settings, const target::DeviceSpec& device, double model_bytes);

struct TuningContext {
  backend::DevicePtr device;
  measure::TrialRunner* runner = nullptr;
  store::Store* store = nullptr;  // may be null
  std::string environment;        // key in the store
  const Settings* settings = nullptr;
  const Listener* listener = nullptr;
  std::map<std::string, Tuned>* results =
      nullptr;  // by workload hash; kept by the caller so that a cancelled run has what there is
  int64_t* trials = nullptr;
  DeviceGuard* guard = nullptr;               // limits of temperature and memory; may be null
  store::TrialLog* record = nullptr;          // where each trial is written besides the store; may be null
  const target::DeviceSpec* peaks = nullptr;  // the device's, with peaks; null: as the device says
  TimingPolicy timing = {};
  std::vector<const plan::PlannedWorkload*> later =
      {};  // built beside the first trials; no trial asks for them
};

constexpr int64_t kTrialsPerRound = 16;  // of a workload, on the same random inputs: their float64 answers
                                         // are computed once; the next round has others

// Measures each workload's default (from the store where a verified record of this environment and shape
// exists). A rule-chosen schedule that fails is replaced by the first that passes of the family's other
// tactics (stand_ins), and Tuned::note says so; where none does, what failed it is thrown. Where the device
// stays too hot the rest is left unmeasured.
void measure_defaults(const TuningContext& context,
                      const std::map<std::string, plan::PlannedWorkload>& workloads,
                      const std::string& phase);

// Spends the budget: each round goes to the workload with the largest share of model time x predicted gain;
// finalists are compared interleaved and a candidate replaces the default only when it is faster by more than
// 1% plus the spread.
void tune(const TuningContext& context, const std::map<std::string, plan::PlannedWorkload>& workloads,
          double deadline_us);

// The full gate (all kinds of input, hidden seeds) for every schedule that will be deployed; one that fails
// it is kept as failed and replaced, with a note: by the default, else by what was fastest of this run's
// other trials, else by a stand-in, each through the same gate. Throws kWrongResult where none passes. What
// passed it before (in this run, or by the store with this text, these inputs and this environment) passes
// without another.
void confirm(const TuningContext& context, const std::map<std::string, plan::PlannedWorkload>& workloads,
             std::vector<std::string>& notes);

// After confirm(): every chosen kernel under a race checker. One with a hazard is kept as failed and replaced
// as there, by what passes the full gate and the checker. One that could not be checked stays, with a note.
// Throws kWrongResult where nothing passes.
struct RaceReport {
  std::string tool;  // "" = nothing was checked
  int64_t clean = 0, refused = 0, not_checked = 0;
};
RaceReport check_races(const TuningContext& context,
                       const std::map<std::string, plan::PlannedWorkload>& workloads,
                       const worker::RaceChecker& checker, std::vector<std::string>& notes);

// In place of `failed`: each other tactic's first configuration in the family's order, then others of the
// same tactic. Legal ones, a handful.
std::vector<artifact::Schedule> stand_ins(const plan::PlannedWorkload& planned,
                                          const target::DeviceSpec& device, const artifact::Schedule& failed);

// Bytes of a workload's operands and results.
double operand_bytes(const plan::PlannedWorkload& planned);
// The least time that peaks allow; 0 where they are unknown. What fits into the cache is not bound by memory.
double light_us(const plan::PlannedWorkload& planned, const target::DeviceSpec& spec);

// The key of a trial: all but its measurement. The text's digest is empty where no text can be made.
artifact::TuningRecord record_of(const TuningContext& context, const plan::PlannedWorkload& planned,
                                 const artifact::Schedule& schedule);

// "s0=1 s1=320": the symbols of a workload at its facts; key of records.
std::string shape_key(const plan::PlannedWorkload& workload);
std::string shape_key(const ir::Workload& workload, const std::vector<ir::Fact>& facts);

}  // namespace thrice::flow
