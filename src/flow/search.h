// The search itself: which workload gets the next trial, what is tried, what replaces the best. Where
// measurements come from is another's affair: a device (flow/tuning) or a recorded file (flow/replay).
#pragma once
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artifact/measurement.h"
#include "flow/progress.h"
#include "flow/reward.h"
#include "flow/settings.h"
#include "measure/timing.h"
#include "tune/agent.h"
#include "tune/budget.h"

namespace thrice::flow {

// One trial of a search, as a page shows it.
struct Attempt {
  int64_t trial = 0;  // of the model
  std::string schedule;
  bool ok = false;
  double time_us = 0, best_us = 0;  // best_us: of what was chosen after it
};

// The best known schedule of one workload and what was measured of it and of its default.
struct Tuned {
  artifact::Schedule schedule;
  artifact::Measurement best, by_default;
  artifact::Schedule default_schedule;  // rule-chosen, or what took its place
  std::string passed;                   // the schedule that passed the full gate in this run; "" = none yet
  std::string note;                     // why something took its place; "" = nothing did
  int64_t trials = 0;
  // Why it got as many: its share of the model's time when tuning began, and trials since its last gain.
  double share_at_start = -1;
  int64_t trials_without_gain = 0;
  std::string ended;              // why it got no more although there was budget; "" = it got what there was
  std::vector<Attempt> attempts;  // of this run, the default's left out
};

struct Searched {
  std::string name;  // for progress
  double uses = 1;   // how often the model executes it
  Tuned* tuned = nullptr;
  Reward reward;
  double light_us = 0;  // the least that the device's peaks allow; 0 = not known
  std::unique_ptr<tune::Space> space;
  std::unique_ptr<tune::Agent> agent;    // told what is known already
  std::deque<artifact::Schedule> first;  // legal ones that are tried before the agent is asked again
  tune::Standing standing;
};

// What the settings say to an agent; `hash` (hex, 16 digits or more) makes its seed one of the workload.
tune::AgentOptions agent_options(const Settings& settings, const std::string& hash);
// What a measurement is worth to an agent: verified ones have a cost.
tune::Told told_of(const artifact::Measurement& m, const Reward& reward);
// Tells the agent, where the schedule is one of its space (a stored one may be of an older version).
void tell(Searched& work, const artifact::Schedule& schedule, const artifact::Measurement& m);

class TrialSource {
 public:
  virtual ~TrialSource() = default;
  virtual bool ready(const Progress& progress) = 0;  // false: make no further trial
  // Why a schedule must not be tried now; nullopt: it may.
  virtual std::optional<std::string> refuse(size_t work, const artifact::Schedule& schedule) = 0;
  // One trial, counted and kept by the source. Stops early when it is slower than give_up_us.
  virtual artifact::Measurement measure(size_t work, const artifact::Schedule& schedule,
                                        double give_up_us) = 0;
  // How many candidates of a workload to ask its agent for at once, and what is coming: it may be built
  // meanwhile.
  virtual size_t lookahead() const { return 1; }
  virtual void prepare(size_t work, const std::vector<artifact::Schedule>& schedules) {
    (void)work;
    (void)schedules;
  }
  // Workloads so near to this one that what became its best is worth a trial there; nearest first.
  virtual std::vector<size_t> alike(size_t work) const {
    (void)work;
    return {};
  }
  // The best so far and a challenger, side by side.
  virtual std::array<measure::Timing, 2> duel(size_t work, const artifact::Schedule& best,
                                              const artifact::Schedule& challenger) = 0;
};

struct SearchLimits {
  const int64_t* trials = nullptr;  // made so far, counted by the source
  int64_t max_trials = 0;
  double deadline_us = 0;  // monotonic; infinity = none
};

bool is_verified(const artifact::Measurement& m);

// A workload ends early where its agent has nothing more to propose, where its best is within 5% of light_us,
// or where 160 trials brought no gain and its agent expects none above 1%.
// Until the limits end it, the listener stops it, or every workload has ended; then the fastest candidates
// that have not met the best so far do so (a tenth of the time is kept for that). A candidate replaces the
// best only face to face, where the lower confidence bound of its gain (by the reward) is above 1%; what is
// slower than the default never does.
void search(std::vector<Searched>& works, TrialSource& source, const SearchLimits& limits,
            const Listener& listener);

}  // namespace thrice::flow
