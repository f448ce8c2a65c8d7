// How good a search was: the auto-tuning community's score against calculated random search (Willemsen et
// al.), and trials to 95% of the optimum.
#pragma once
#include <cstdint>
#include <vector>

namespace thrice::tune {

// Random search without replacement over the times of all configurations that run, calculated.
class Baseline {
 public:
  explicit Baseline(const std::vector<double>& ascending);
  // Trials at which it is expected to have gone 95% of the way from median to optimum; at least 2.
  int64_t budget() const { return budget_; }
  double expected_best(int64_t trials) const;  // trials >= 1
  double optimum() const { return times_.front(); }
  // Moments of the budget, equally far apart, at which a search is scored; and the expectation there.
  const std::vector<int64_t>& moments() const { return moments_; }
  // Mean over the moments of (expected - best) / (expected - optimum): 0 as random, 1 the optimum at once.
  // best[t - 1]: time of what the search would have chosen after t trials; infinity: nothing ran yet, which
  // counts as what one random draw expects. A search that ended earlier keeps its last.
  double score(const std::vector<double>& best) const;

 private:
  std::vector<double> times_;
  int64_t budget_ = 2;
  std::vector<int64_t> moments_;
  std::vector<double> expected_;
};

// First t with best[t - 1] <= optimum / share; -1: never.
int64_t trials_to(const std::vector<double>& best, double optimum, double share);

struct Interval {
  double value = 0, low = 0, high = 0;
};
Interval mean_interval(const std::vector<double>& values);  // 95%, normal
Interval median_interval(std::vector<double> values);       // 95%, by ranks; values may be infinite

}  // namespace thrice::tune
