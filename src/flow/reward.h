// What a measured schedule is worth by the settings' weights: latency, throughput, memory.
#pragma once
#include "artifact/measurement.h"
#include "flow/settings.h"

namespace thrice::flow {

// Weighted logarithms; less is better, and 0.01 is one per cent. Weights are used by their share of the sum.
// Throughput is one execution after the other (1 / latency): several streams at once are not measured.
class Reward {
 public:
  Reward() = default;  // latency alone
  // operand_bytes: inputs and outputs of the workload; a schedule adds its temporaries.
  Reward(const RewardWeights& weights, double operand_bytes);
  double cost(const artifact::Measurement& m) const { return cost(m, m.time_us); }
  double cost(const artifact::Measurement& m, double time_us) const;  // with another time of it
  double time_weight() const { return time_; }

 private:
  double time_ = 1, memory_ = 0, operands_ = 0;
};

}  // namespace thrice::flow
