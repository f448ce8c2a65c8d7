// Iterated local search: one seed of each tactic, then the best configuration's one-step neighbours; a random
// restart when none is left.
#pragma once
#include <deque>

#include "tune/agent.h"

namespace thrice::tune {

class GreedyAgent : public Agent {
 public:
  GreedyAgent(const Space& space, uint64_t seed);
  std::string name() const override { return "greedy"; }
  std::vector<Point> ask(int count) override;
  void tell(const Point& point, const Told& told) override;

 private:
  const Space& space_;
  Seen seen_;
  Rng rng_;
  std::deque<Point> starts_, queue_;  // all starts before what is queued around the best
  bool has_best_ = false;
  double best_ = 0;
};

}  // namespace thrice::tune
