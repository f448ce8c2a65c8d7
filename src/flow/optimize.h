// THE map of the product: every phase from a model file to a verified release, in order.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "artifact/manifest.h"
#include "flow/phases.h"
#include "flow/progress.h"
#include "flow/search.h"
#include "flow/settings.h"
#include "flow/tuning.h"
#include "frontend/import.h"
#include "release/release.h"

namespace thrice::flow {

struct OptimizeRequest {
  std::string model_path;
  frontend::ImportOptions import;
  std::function<ir::Bindings(const ir::Graph&)>
      bindings;              // extents to tune and time at; must cover every input symbol
  std::string release_path;  // "" = write none
  Settings settings;
  // Padded sequences are computed without their padding (transform/pack_tokens.h): the name of the mask
  // input, "" where the model has one that is called mask.
  std::optional<std::string> packed_mask;
  bool tune = true;    // false: rule-chosen schedules only
  std::string worker;  // executable that takes `worker --device D`: trials run there; "" = in this process
  std::string record_path;  // CSV file that every trial is appended to; "" = none (store/trial_log.h)
  Listener listener;
};

// One region of the deployed plan. Times are medians of one execution in microseconds.
struct RegionReport {
  std::string name, family, schedule, workload;
  int uses = 1;             // regions of the model that share the workload
  double original_us = -1;  // its operators one by one, default schedules; -1 = not measured
  double now_us = -1;
  double error = -1, error_limit = -1;
  double light_share = -1;  // speed-of-light time / now_us; -1 = the device's peaks are not known
  double flops = 0,
         bytes = 0;  // of one use: operations and bytes of operands and results (family::count_work)
  // The budget is one for the model: what this region got of it, and why (flow/search.h). -1 = not tuned.
  int64_t trials = 0, trials_without_gain = 0;
  double share_at_start = -1;
  std::string ended;  // why it got no more although there was budget (flow/search.h); "" = it got all
};

// A workload that was searched, deployed in the end or not.
struct Explored {
  std::string name, schedule;  // schedule: the best of it
  int64_t uses = 1;
  double default_us = -1, best_us = -1;
  std::vector<Attempt> attempts;  // trials of this run
};

// The whole model at one of the lengths that were tuned for.
struct LengthReport {
  int64_t length = 0;
  double original_us = -1, best_us = -1;
};

struct OptimizeReport {
  std::string model, device, target, plan_digest, release, timed_at;
  int64_t trials = 0;
  double original_us = -1, best_us = -1, speedup = -1, throughput_per_s = -1;
  double original_spread_us = -1, best_spread_us = -1;
  // Cards: after a rest, and after a second of work without pause; back to back, without waiting for answers.
  double best_burst_us = -1, best_sustained_us = -1;
  double first_release_s = -1;  // from the start until a verified release lay at its path; -1 = none did
  double usable_s = -1;         // from the end of import until each region had a built and checked kernel
  double max_error = -1, error_limit = -1;
  bool verified = false, cancelled = false;
  // exec::MemoryUse: beside the weights; weights as the model has them, and as they lie on the device.
  int64_t peak_bytes = -1, original_peak_bytes = -1, constant_bytes = -1, held_weight_bytes = -1,
          arena_lower_bound = -1;
  double bandwidth_gbs = -1, gflops = -1, product_gflops = -1;  // the device's peaks; -1 = not known
  std::string planner;
  plan::FusionSummary fusion;                       // of the planner "dp"
  std::vector<RegionReport> regions;                // by share of the model's time, largest first
  std::vector<Explored> explored;                   // most trials first
  std::string length_symbol;                        // "" = one length
  std::vector<LengthReport> lengths;                // ascending
  RaceReport races;                                 // tool "": not asked for
  std::vector<artifact::MemoryPoint> memory_front;  // time against memory around the plan (memory_model.h)
  std::vector<PhaseTime> phases;
  std::vector<std::string> notes;  // guesses, fallbacks, steps on the host: everything a user should know

  std::string to_json() const;
};

// Errors: those of each phase. After planning, cancellation keeps the best so far; before it, kCancelled.
OptimizeReport optimize(const OptimizeRequest& request);

}  // namespace thrice::flow
