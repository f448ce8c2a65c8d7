// Uniform sampling without replacement: the opponent that every learner must beat.
#pragma once
#include <set>

#include "tune/agent.h"

namespace thrice::tune {

class RandomAgent : public Agent {
 public:
  RandomAgent(const LegalSpace& space, uint64_t seed) : space_(space), rng_(seed) {}
  std::string name() const override { return "random"; }
  std::vector<artifact::Schedule> ask(int count) override;
  void tell(const Trial& trial) override { known_.insert(trial.schedule.str()); }

 private:
  const LegalSpace& space_;
  Rng rng_;
  std::set<std::string> known_;  // asked, or told of an earlier run
};

}  // namespace thrice::tune
