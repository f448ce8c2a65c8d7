#include "flow/reward.h"

#include <algorithm>
#include <cmath>

namespace thrice::flow {

namespace {
// Its time beside others over its time alone; 0: not measured.
double overlap_of(const artifact::Measurement& m) {
  return m.concurrent_us > 0 && m.time_us > 0 ? m.concurrent_us / m.time_us : 0;
}
}  // namespace

Reward::Reward(const RewardWeights& weights, double operand_bytes, const artifact::Measurement& by_default)
    : operands_(operand_bytes) {
  if (const double overlap = overlap_of(by_default); overlap > 0) overlap_ = overlap;
  const double sum = weights.latency + weights.throughput + weights.memory_usage;
  if (!(sum > 0)) return;
  latency_ = weights.latency / sum;
  throughput_ = weights.throughput / sum;
  memory_ = weights.memory_usage / sum;
}

double Reward::cost(const artifact::Measurement& m, double time_us) const {
  const double bytes = std::max(1.0, operands_ + static_cast<double>(m.temporary_bytes));
  const double overlap = overlap_of(m);
  const double time = std::log(std::max(1e-9, time_us));
  return time_weight() * time + throughput_ * std::log(overlap > 0 ? overlap : overlap_) +
         memory_ * std::log(bytes);
}

}  // namespace thrice::flow
