// What a measured schedule is worth by the settings' weights: latency, throughput, memory.
#pragma once
#include "artifact/measurement.h"
#include "flow/settings.h"

namespace thrice::flow {

// Weighted logarithms; less is better, and 0.01 is one per cent. Weights are used by their share of the sum.
// Throughput is what several streams at once were measured to give (Measurement::concurrent_us). Only what is
// nearly as fast as the best is measured so: others are taken to gain from it what the default gains.
class Reward {
 public:
  Reward() = default;  // latency alone
  // operand_bytes: inputs and outputs of the workload; a schedule adds its temporaries. by_default: of its
  // default schedule.
  Reward(const RewardWeights& weights, double operand_bytes, const artifact::Measurement& by_default = {});
  double cost(const artifact::Measurement& m) const { return cost(m, m.time_us); }
  // With another time of it alone; with others beside it, it changes by the same factor.
  double cost(const artifact::Measurement& m, double time_us) const;
  double time_weight() const { return latency_ + throughput_; }

 private:
  double latency_ = 1, throughput_ = 0, memory_ = 0, operands_ = 0;
  double overlap_ = 1;  // concurrent_us / time_us of the default
};

}  // namespace thrice::flow
