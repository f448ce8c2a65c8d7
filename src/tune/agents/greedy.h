// Iterated local search: the default first, one seed of each tactic, then the best schedule's one-step
// neighbours; a random restart when none is left. Source: the founders' replay on 14 recorded spaces, where
// it needs 113 trials to 95% of the optimum against 400 for random.
#pragma once
#include <deque>
#include <set>

#include "tune/agent.h"

namespace thrice::tune {

class GreedyAgent : public Agent {
 public:
  GreedyAgent(const LegalSpace& space, uint64_t seed);
  std::string name() const override { return "greedy"; }
  std::vector<artifact::Schedule> ask(int count) override;
  void tell(const Trial& trial) override;

 private:
  void start_at(const artifact::Schedule& schedule);
  void push(const artifact::Schedule& schedule);
  const LegalSpace& space_;
  Rng rng_;
  std::set<std::string> seen_;
  std::deque<artifact::Schedule> starts_, queue_;  // all starts before what is queued around the best
  double best_us_ = 0;                             // 0: none yet
};

}  // namespace thrice::tune
