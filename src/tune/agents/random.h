// Uniform sampling without replacement: the opponent that every learner must beat.
#pragma once
#include "tune/agent.h"

namespace thrice::tune {

class RandomAgent : public Agent {
 public:
  RandomAgent(const Space& space, uint64_t seed) : seen_(space), rng_(seed) {}
  std::string name() const override { return "random"; }
  std::vector<Point> ask(int count) override;
  void tell(const Point& point, const Told&) override { seen_.add(point); }

 private:
  Seen seen_;
  Rng rng_;
};

}  // namespace thrice::tune
