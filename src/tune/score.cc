#include "tune/score.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace thrice::tune {

Baseline::Baseline(const std::vector<double>& ascending) : times_(ascending) {
  const auto n = static_cast<int64_t>(times_.size());
  const double median = times_[times_.size() / 2];
  const double target = median - 0.95 * (median - times_[0]);
  const int64_t good = std::upper_bound(times_.begin(), times_.end(), target) - times_.begin();
  const int64_t rank = n - good + 1;  // of the first at or below the target, from the slowest on
  budget_ = std::max<int64_t>(2, (rank + (n + 1 - rank) - 1) / (n + 1 - rank));
  constexpr int64_t kMoments = 50;
  for (int64_t i = 1; i <= std::min(kMoments, budget_); ++i) {
    moments_.push_back(std::max<int64_t>(1, budget_ * i / std::min(kMoments, budget_)));
    expected_.push_back(expected_best(moments_.back()));
  }
}

double Baseline::expected_best(int64_t trials) const {
  const auto n = static_cast<int64_t>(times_.size());
  const int64_t t = std::clamp<int64_t>(trials, 1, n);
  // P(none of the k fastest is drawn) = C(n - k, t) / C(n, t), from k to k + 1 by one factor.
  double none = 1, expected = 0;
  for (int64_t k = 0; k + t <= n; ++k) {
    const double next = none * static_cast<double>(n - k - t) / static_cast<double>(n - k);
    expected += times_[static_cast<size_t>(k)] * (none - next);
    none = next;
    if (none < 1e-12) break;
  }
  return expected;
}

double Baseline::score(const std::vector<double>& best) const {
  double sum = 0;
  int64_t count = 0;
  for (size_t i = 0; i < moments_.size(); ++i) {
    const double span = expected_[i] - optimum();
    if (!(span > 0) || best.empty()) continue;
    double found = best[std::min(best.size(), static_cast<size_t>(moments_[i])) - 1];
    if (!std::isfinite(found)) found = expected_best(1);
    sum += (expected_[i] - found) / span;
    ++count;
  }
  return count ? sum / static_cast<double>(count) : 0;
}

int64_t trials_to(const std::vector<double>& best, double optimum, double share) {
  for (size_t t = 0; t < best.size(); ++t)
    if (best[t] <= optimum / share * (1 + 1e-12)) return static_cast<int64_t>(t) + 1;
  return -1;
}

Interval mean_interval(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (const double v : values) sum += v;
  const auto n = static_cast<double>(values.size());
  const double mean = sum / std::max(n, 1.0);
  for (const double v : values) squares += (v - mean) * (v - mean);
  const double half = n > 1 ? 1.96 * std::sqrt(squares / (n - 1) / n) : 0;
  return {mean, mean - half, mean + half};
}

Interval median_interval(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  const auto at = [&](double rank) { return values[static_cast<size_t>(std::clamp(rank, 0.0, n - 1))]; };
  const double half = 0.98 * std::sqrt(n);
  const size_t upper = values.size() / 2;
  const double median = values.size() % 2 ? values[upper] : 0.5 * (values[upper - 1] + values[upper]);
  return {median, at(std::floor(0.5 * n - half)), at(std::ceil(0.5 * n + half))};
}

}  // namespace thrice::tune
