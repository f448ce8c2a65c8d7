// Which workload gets the next trial: a model has one budget, not one per region.
#pragma once
#include <cstddef>
#include <vector>

namespace thrice::tune {

// What is known of one workload's tuning so far.
struct Standing {
  double model_share_us = 0;  // uses x best time: what the model spends on it now
  int trials = 0;
  int trials_without_gain = 0;  // since the last improvement
  bool exhausted = false;       // ended early (flow/search.h)
};

// Index with the largest (share of model time x predicted gain); the predicted gain halves with every
// `patience` trials that brought none. -1 when all are exhausted. Deterministic: ties go to the lower index.
// Default patience 6: a judgement, not a measurement; revisit when spaces of our own are recorded.
int next_workload(const std::vector<Standing>& standings, double patience = 6);

}  // namespace thrice::tune
