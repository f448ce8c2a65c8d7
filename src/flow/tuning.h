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

namespace thrice::flow {

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
};

// Measures each workload's default (from the store where a verified record of this environment and shape
// exists). Wrong defaults are reported as kWrongResult: a default must be right. Where the device stays too
// hot the rest is left unmeasured.
void measure_defaults(const TuningContext& context,
                      const std::map<std::string, plan::PlannedWorkload>& workloads,
                      const std::string& phase);

// Spends the budget: each round goes to the workload with the largest share of model time x predicted gain;
// finalists are compared interleaved and a candidate replaces the default only when it is faster by more than
// 1% plus the spread.
void tune(const TuningContext& context, const std::map<std::string, plan::PlannedWorkload>& workloads,
          double deadline_us);

// The full gate (all kinds of input, hidden seeds) for every schedule that will be deployed; one that fails
// it is replaced by the default, with a note. Throws kWrongResult where a default fails.
void confirm(const TuningContext& context, const std::map<std::string, plan::PlannedWorkload>& workloads,
             std::vector<std::string>& notes);

// "s0=1 s1=320": the symbols of a workload at its facts; key of records.
std::string shape_key(const plan::PlannedWorkload& workload);

}  // namespace thrice::flow
