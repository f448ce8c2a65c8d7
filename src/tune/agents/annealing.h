// Simulated annealing on the logarithm of time. A move to a configuration that was measured costs no trial.
// Knobs: temperature, cooling (factor a trial), wide (share of moves to any choice instead of the next),
// patience (rejections until it goes back to the best, or elsewhere), elsewhere (share of the latter).
// Defaults: what the search on half of the recorded spaces found (tuned.h).
#pragma once
#include <unordered_map>

#include "tune/agent.h"

namespace thrice::tune {

class AnnealingAgent : public Agent {
 public:
  AnnealingAgent(const Space& space, const AgentOptions& options);
  std::string name() const override { return "annealing"; }
  std::vector<Point> ask(int count) override;
  void tell(const Point& point, const Told& told) override;

 private:
  Point moved(const Point& from);
  void consider(const Point& point, double cost);
  std::optional<Point> next();

  const Space& space_;
  Seen seen_;
  Rng rng_;
  double temperature_, cooling_, wide_, elsewhere_;
  int patience_, rejected_ = 0;
  size_t started_ = 0;
  bool has_now_ = false, restart_ = false;
  Point now_, best_;
  double now_cost_ = 0, best_cost_ = 0;
  std::unordered_map<uint64_t, double> costs_;  // of what was told; failures are far away
};

}  // namespace thrice::tune
