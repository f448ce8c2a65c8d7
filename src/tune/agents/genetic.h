// Evolution: the best configurations so far are parents; children by crossover and mutation replace the
// worst. Knobs: population, tournament, crossover, mutation (expected changed parameters), step (share of
// mutations to a neighbouring choice). Defaults: what the search on half of the recorded spaces found
// (tuned.h).
#pragma once
#include "tune/agent.h"

namespace thrice::tune {

class GeneticAgent : public Agent {
 public:
  GeneticAgent(const Space& space, const AgentOptions& options);
  std::string name() const override { return "genetic"; }
  std::vector<Point> ask(int count) override;
  void tell(const Point& point, const Told& told) override;

 private:
  struct Member {
    Point point;
    double cost;
  };
  const Member& parent();
  Point child();

  const Space& space_;
  Seen seen_;
  Rng rng_;
  size_t population_, tournament_;
  double crossover_, mutation_, step_;
  std::vector<Member> members_;  // ascending by cost
  size_t started_ = 0;           // random first generation
};

}  // namespace thrice::tune
