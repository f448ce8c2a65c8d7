// Small networks that map features to a standardised cost: width-64-64-1, Adam, warm from fit to fit.
#pragma once
#include <Eigen/Core>

#include "base/rng.h"
#include "tune/critic/critic.h"

namespace thrice::tune {

class Mlp {
 public:
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic>;
  Mlp() = default;
  Mlp(size_t width, size_t hidden, Rng& rng);
  // columns are samples
  Eigen::RowVectorXf forward(const Matrix& x) const;
  // One step of Adam on the squared error of a batch; returns the loss before it.
  float train(const Matrix& x, const Eigen::RowVectorXf& y, float learning_rate);
  std::vector<float> parameters() const;
  void set_parameters(const std::vector<float>& values);  // of the same shape; moments begin anew
  size_t width() const { return static_cast<size_t>(weights_[0].cols()); }

 private:
  Matrix weights_[3], moment_[3], square_[3];
  Eigen::VectorXf bias_[3], bias_moment_[3], bias_square_[3];
  int64_t step_ = 0;
};

// Several of them from different beginnings: their spread is the doubt.
class MlpCritic : public Critic {
 public:
  MlpCritic(size_t width, uint64_t seed, int members, float learning_rate, int steps);
  void fit(const Rows& x, const std::vector<float>& y) override;
  Predicted predict(const Rows& x) override;

 private:
  std::vector<Mlp> members_;
  Rng rng_;
  float learning_rate_, mean_ = 0, scale_ = 1;
  int steps_;
};

}  // namespace thrice::tune
