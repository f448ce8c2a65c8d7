// Tuning against recorded trials instead of a device: how an agent would have fared, in a moment.
#pragma once
#include <string>
#include <vector>

#include "flow/progress.h"
#include "flow/settings.h"

namespace thrice::flow {

struct ReplayedWorkload {
  std::string workload, shape, region;
  int64_t uses = 1;
  int64_t recorded = 0;                                  // distinct schedules in the file
  int64_t trials = 0;                                    // made of them, the default's included
  std::string schedule, best_schedule;                   // chosen; the best of the file
  double default_us = -1, chosen_us = -1, best_us = -1;  // medians as recorded
};

struct ReplayReport {
  std::string file, agent;
  int64_t trials = 0;
  double default_us = 0, chosen_us = 0, best_us = 0;  // sums over workloads, each times its uses
  std::vector<ReplayedWorkload> workloads;
  std::vector<std::string> notes;

  std::string to_json() const;
};

// The search of `optimize` with the file's measurements: legal is what the file holds, the default is what it
// names so. settings: agent, seed, max_trials. Where a schedule stands there several times the last counts; a
// duel compares the recorded times. Workloads without a good default are left out with a note. The same file
// and settings give the same report. Errors: kNotFound, kIo, kCorrupt, kInvalidArgument (unknown agent).
ReplayReport replay(const std::string& path, const Settings& settings, const Listener& listener);

}  // namespace thrice::flow
