#include "tune/critic/mlp.h"

#include <algorithm>
#include <cmath>

namespace thrice::tune {

Mlp::Mlp(size_t width, size_t hidden, Rng& rng) {
  const size_t sizes[4] = {width, hidden, hidden, 1};
  for (int l = 0; l < 3; ++l) {
    const auto rows = static_cast<Eigen::Index>(sizes[l + 1]), columns = static_cast<Eigen::Index>(sizes[l]);
    weights_[l].resize(rows, columns);
    const double scale = std::sqrt((l < 2 ? 2.0 : 1.0) / static_cast<double>(columns));
    for (Eigen::Index c = 0; c < columns; ++c)
      for (Eigen::Index r = 0; r < rows; ++r) weights_[l](r, c) = static_cast<float>(scale * rng.normal());
    moment_[l] = square_[l] = Matrix::Zero(rows, columns);
    bias_[l] = bias_moment_[l] = bias_square_[l] = Eigen::VectorXf::Zero(rows);
  }
}

Eigen::RowVectorXf Mlp::forward(const Matrix& x) const {
  Matrix h = ((weights_[0] * x).colwise() + bias_[0]).cwiseMax(0.0f);
  h = ((weights_[1] * h).colwise() + bias_[1]).cwiseMax(0.0f).eval();
  return (weights_[2] * h).array() + bias_[2](0);
}

float Mlp::train(const Matrix& x, const Eigen::RowVectorXf& y, float learning_rate) {
  const Matrix h1 = ((weights_[0] * x).colwise() + bias_[0]).cwiseMax(0.0f);
  const Matrix h2 = ((weights_[1] * h1).colwise() + bias_[1]).cwiseMax(0.0f);
  const Eigen::RowVectorXf out = (weights_[2] * h2).array() + bias_[2](0);
  const auto n = static_cast<float>(x.cols());
  const Eigen::RowVectorXf error = out - y;
  Matrix d3 = error * (2 / n);
  Matrix d2 = ((weights_[2].transpose() * d3).array() * (h2.array() > 0.0f).cast<float>()).matrix();
  Matrix d1 = ((weights_[1].transpose() * d2).array() * (h1.array() > 0.0f).cast<float>()).matrix();
  ++step_;
  const float c1 = 1 / (1 - std::pow(0.9f, static_cast<float>(step_)));
  const float c2 = 1 / (1 - std::pow(0.999f, static_cast<float>(step_)));
  const auto update = [&](int l, const Matrix& delta, const Matrix& input) {
    const Matrix g = delta * input.transpose() + 1e-4f * weights_[l];
    moment_[l] = 0.9f * moment_[l] + 0.1f * g;
    square_[l] = 0.999f * square_[l] + 0.001f * g.cwiseAbs2();
    weights_[l].array() -=
        learning_rate * c1 * moment_[l].array() / ((c2 * square_[l]).array().sqrt() + 1e-7f);
    const Eigen::VectorXf gb = delta.rowwise().sum();
    bias_moment_[l] = 0.9f * bias_moment_[l] + 0.1f * gb;
    bias_square_[l] = 0.999f * bias_square_[l] + 0.001f * gb.cwiseAbs2();
    bias_[l].array() -=
        learning_rate * c1 * bias_moment_[l].array() / ((c2 * bias_square_[l]).array().sqrt() + 1e-7f);
  };
  update(2, d3, h2);
  update(1, d2, h1);
  update(0, d1, x);
  return error.squaredNorm() / n;
}

std::vector<float> Mlp::parameters() const {
  std::vector<float> values;
  for (int l = 0; l < 3; ++l) {
    values.insert(values.end(), weights_[l].data(), weights_[l].data() + weights_[l].size());
    values.insert(values.end(), bias_[l].data(), bias_[l].data() + bias_[l].size());
  }
  return values;
}

void Mlp::set_parameters(const std::vector<float>& values) {
  const float* at = values.data();
  for (int l = 0; l < 3; ++l) {
    std::copy_n(at, weights_[l].size(), weights_[l].data());
    at += weights_[l].size();
    std::copy_n(at, bias_[l].size(), bias_[l].data());
    at += bias_[l].size();
    moment_[l].setZero();
    square_[l].setZero();
    bias_moment_[l].setZero();
    bias_square_[l].setZero();
  }
  step_ = 0;
}

MlpCritic::MlpCritic(size_t width, uint64_t seed, int members, float learning_rate, int steps)
    : rng_(seed), learning_rate_(learning_rate), steps_(steps) {
  for (int m = 0; m < members; ++m) members_.emplace_back(width, 64, rng_);
}

void MlpCritic::fit(const Rows& x, const std::vector<float>& y) {
  const size_t n = y.size();
  double sum = 0, squares = 0;
  for (const float v : y) sum += v;
  mean_ = static_cast<float>(sum / static_cast<double>(n));
  for (const float v : y) squares += (v - mean_) * (v - mean_);
  scale_ = std::max(1e-4f, static_cast<float>(std::sqrt(squares / static_cast<double>(n))));
  constexpr size_t kBatch = 32;
  Mlp::Matrix batch(static_cast<Eigen::Index>(x.width), static_cast<Eigen::Index>(kBatch));
  Eigen::RowVectorXf target(static_cast<Eigen::Index>(kBatch));
  for (Mlp& member : members_)
    for (int step = 0; step < steps_; ++step) {
      for (size_t i = 0; i < kBatch; ++i) {
        const size_t from = rng_.below(n);
        std::copy_n(x.row(from), x.width, batch.col(static_cast<Eigen::Index>(i)).data());
        target(static_cast<Eigen::Index>(i)) = (y[from] - mean_) / scale_;
      }
      member.train(batch, target, learning_rate_);
    }
}

Predicted MlpCritic::predict(const Rows& x) {
  const size_t n = x.count();
  const Mlp::Matrix columns = Eigen::Map<const Mlp::Matrix>(
      x.values.data(), static_cast<Eigen::Index>(x.width), static_cast<Eigen::Index>(n));
  std::vector<Eigen::RowVectorXf> answers;
  for (const Mlp& member : members_) answers.push_back(member.forward(columns));
  Predicted result;
  result.mean.resize(n);
  result.sd.resize(n);
  for (size_t i = 0; i < n; ++i) {
    float sum = 0, squares = 0;
    for (const auto& answer : answers) {
      const float v = answer(static_cast<Eigen::Index>(i));
      sum += v;
      squares += v * v;
    }
    const auto m = static_cast<float>(answers.size());
    result.mean[i] = mean_ + scale_ * sum / m;
    result.sd[i] = scale_ * std::sqrt(std::max(0.0f, squares / m - sum / m * sum / m));
  }
  return result;
}

}  // namespace thrice::tune
