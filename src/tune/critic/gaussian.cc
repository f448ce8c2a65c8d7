#include "tune/critic/gaussian.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <numeric>

namespace thrice::tune {
namespace {
constexpr double kRoot5 = 2.2360679774997896;
}

GaussianCritic::GaussianCritic(size_t width, uint64_t seed, size_t most, int steps)
    : width_(width), most_(most), steps_(steps), rng_(seed) {
  theta_.assign(width + 1, std::log(2.0 / static_cast<double>(width)));
  theta_.back() = std::log(0.02);
  moment_.assign(theta_.size(), 0);
  square_.assign(theta_.size(), 0);
}

void GaussianCritic::factorise() {
  const auto n = x_.rows();
  scaled_ = x_;
  for (size_t d = 0; d < width_; ++d)
    scaled_.col(static_cast<Eigen::Index>(d)) *= static_cast<float>(std::exp(0.5 * theta_[d]));
  const Vector norms = scaled_.rowwise().squaredNorm();
  Matrix r2 = -2 * scaled_ * scaled_.transpose();
  r2.colwise() += norms;
  r2.rowwise() += norms.transpose();
  r_ = r2.array().max(0.0f).sqrt() * static_cast<float>(kRoot5);
  fall_ = (-r_).exp();
  Matrix kernel = ((1 + r_ + r_ * r_ / 3) * fall_).matrix();
  kernel.diagonal().array() += static_cast<float>(std::exp(theta_.back())) + 1e-4f;
  const Eigen::LLT<Matrix> llt(kernel);
  lower_ = llt.matrixL();
  alpha_ = llt.solve(y_);
  signal_ = std::max(1e-6f, y_.dot(alpha_) / static_cast<float>(n));
}

void GaussianCritic::ascend() {
  factorise();
  const auto n = x_.rows();
  Matrix inverse = Matrix::Identity(n, n);
  lower_.triangularView<Eigen::Lower>().solveInPlace(inverse);
  Matrix g = Matrix::Zero(n, n);
  g.selfadjointView<Eigen::Lower>().rankUpdate(inverse.transpose(), -1.0f);
  g.selfadjointView<Eigen::Lower>().rankUpdate(alpha_, 1 / signal_);
  g.triangularView<Eigen::StrictlyUpper>() = g.transpose();
  std::vector<double> gradient(theta_.size(), 0);
  gradient.back() = 0.5 * std::exp(theta_.back()) * static_cast<double>(g.trace());
  // d kernel / d theta = -(5/6) (1 + r) exp(-r) w (x - x')^2 with r = sqrt(5) times the scaled distance.
  const Matrix m = (g.array() * (1 + r_) * fall_ * (-5.0f / 6)).matrix();
  const Vector rows = m.rowwise().sum();
  for (size_t d = 0; d < width_; ++d) {
    const Vector c = scaled_.col(static_cast<Eigen::Index>(d));
    // sum m_ij (c_i - c_j)^2 = 2 sum_i rows_i c_i^2 - 2 c' m c
    gradient[d] = 0.5 * static_cast<double>(2 * rows.dot(c.cwiseProduct(c)) - 2 * c.dot(m * c));
  }
  // Weak priors keep what the data says nothing of near the start.
  const double start = std::log(2.0 / static_cast<double>(width_));
  for (size_t d = 0; d < width_; ++d) gradient[d] -= (theta_[d] - start) / (1.5 * 1.5);
  gradient.back() -= (theta_.back() - std::log(0.02)) / (1.0 * 1.0);
  ++step_;
  for (size_t i = 0; i < theta_.size(); ++i) {
    moment_[i] = 0.8 * moment_[i] + 0.2 * gradient[i];
    square_[i] = 0.95 * square_[i] + 0.05 * gradient[i] * gradient[i];
    const double m1 = moment_[i] / (1 - std::pow(0.8, static_cast<double>(step_)));
    const double m2 = square_[i] / (1 - std::pow(0.95, static_cast<double>(step_)));
    theta_[i] += 0.15 * m1 / (std::sqrt(m2) + 1e-6);
    theta_[i] = std::clamp(theta_[i], -8.0, 3.0);
  }
}

void GaussianCritic::fit(const Rows& x, const std::vector<float>& y) {
  std::vector<size_t> kept(x.count());
  std::iota(kept.begin(), kept.end(), size_t{0});
  if (kept.size() > most_) {
    std::sort(kept.begin(), kept.end(), [&](size_t a, size_t b) { return y[a] < y[b]; });
    for (size_t i = most_ / 2; i < most_; ++i) std::swap(kept[i], kept[i + rng_.below(kept.size() - i)]);
    kept.resize(most_);
  }
  const auto n = static_cast<Eigen::Index>(kept.size());
  x_.resize(n, static_cast<Eigen::Index>(width_));
  y_.resize(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    for (size_t d = 0; d < width_; ++d)
      x_(i, static_cast<Eigen::Index>(d)) = x.row(kept[static_cast<size_t>(i)])[d];
    y_(i) = y[kept[static_cast<size_t>(i)]];
  }
  mean_ = y_.mean();
  scale_ = std::max(1e-4f, std::sqrt((y_.array() - mean_).square().mean()));
  y_ = (y_.array() - mean_) / scale_;
  for (int i = 0; i < steps_; ++i) ascend();
  factorise();
}

Predicted GaussianCritic::predict(const Rows& x) {
  const auto m = static_cast<Eigen::Index>(x.count());
  Matrix left(m, static_cast<Eigen::Index>(width_)), right = x_;
  for (size_t d = 0; d < width_; ++d) {
    const auto w = static_cast<float>(std::exp(0.5 * theta_[d]));
    const auto column = static_cast<Eigen::Index>(d);
    right.col(column) *= w;
    for (Eigen::Index i = 0; i < m; ++i) left(i, column) = w * x.row(static_cast<size_t>(i))[d];
  }
  Matrix r2 = -2 * right * left.transpose();  // n x m
  r2.colwise() += right.rowwise().squaredNorm();
  r2.rowwise() += left.rowwise().squaredNorm().transpose();
  const Eigen::ArrayXXf r = r2.array().max(0.0f).sqrt() * static_cast<float>(kRoot5);
  Matrix k = ((1 + r + r * r / 3) * (-r).exp()).matrix();
  const Vector mean = k.transpose() * alpha_;
  lower_.triangularView<Eigen::Lower>().solveInPlace(k);
  const Vector explained = k.colwise().squaredNorm().transpose();
  Predicted result;
  result.mean.resize(static_cast<size_t>(m));
  result.sd.resize(static_cast<size_t>(m));
  for (Eigen::Index i = 0; i < m; ++i) {
    result.mean[static_cast<size_t>(i)] = mean_ + scale_ * mean(i);
    result.sd[static_cast<size_t>(i)] = scale_ * std::sqrt(signal_ * std::max(1e-6f, 1 - explained(i)));
  }
  return result;
}

}  // namespace thrice::tune
