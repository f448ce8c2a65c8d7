#include "flow/reward.h"

#include <algorithm>
#include <cmath>

namespace thrice::flow {

Reward::Reward(const RewardWeights& weights, double operand_bytes) : operands_(operand_bytes) {
  const double sum = weights.latency + weights.throughput + weights.memory_usage;
  if (!(sum > 0)) return;
  time_ = (weights.latency + weights.throughput) / sum;
  memory_ = weights.memory_usage / sum;
}

double Reward::cost(const artifact::Measurement& m, double time_us) const {
  const double bytes = std::max(1.0, operands_ + static_cast<double>(m.temporary_bytes));
  return time_ * std::log(std::max(1e-9, time_us)) + memory_ * std::log(bytes);
}

}  // namespace thrice::flow
