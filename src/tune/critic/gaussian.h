// A Gaussian process with one length a feature (Matern 5/2), lengths by ascent of the marginal likelihood, a
// few steps a fit from where the last fit ended. Bounded work: at most kMost rows are kept, the fastest half
// and a spread of the others.
#pragma once
#include <Eigen/Core>

#include "base/rng.h"
#include "tune/critic/critic.h"

namespace thrice::tune {

class GaussianCritic : public Critic {
 public:
  GaussianCritic(size_t width, uint64_t seed, size_t most, int steps);
  void fit(const Rows& x, const std::vector<float>& y) override;
  Predicted predict(const Rows& x) override;

 private:
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic>;
  using Vector = Eigen::Matrix<float, Eigen::Dynamic, 1>;
  void factorise();
  void ascend();  // one step

  size_t width_, most_;
  int steps_;
  Rng rng_;
  std::vector<double> theta_, moment_,
      square_;  // log of inverse squared lengths, then log noise; Adam's moments
  int64_t step_ = 0;
  Matrix x_, scaled_, lower_;
  Eigen::ArrayXXf r_, fall_;  // scaled distances times the root of 5, and exp of minus them
  Vector y_, alpha_;
  float mean_ = 0, scale_ = 1, signal_ = 1;
};

}  // namespace thrice::tune
