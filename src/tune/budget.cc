#include "tune/budget.h"

#include <cmath>

namespace thrice::tune {

int next_workload(const std::vector<Standing>& standings, double patience) {
  int best = -1;
  double best_score = 0;
  for (size_t i = 0; i < standings.size(); ++i) {
    const Standing& s = standings[i];
    if (s.exhausted) continue;
    const double score = s.model_share_us * std::exp2(-s.trials_without_gain / patience);
    if (best < 0 || score > best_score) {
      best = static_cast<int>(i);
      best_score = score;
    }
  }
  return best;
}

}  // namespace thrice::tune
