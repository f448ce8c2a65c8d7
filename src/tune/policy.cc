#include "tune/policy.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace thrice::tune {
namespace {
constexpr float kClip = 0.2f, kEntropy = 0.01f;

size_t drawn(Rng& rng, const std::vector<float>& weights, float sum) {
  float left = static_cast<float>(rng.uniform()) * sum;
  size_t last = 0;
  for (size_t c = 0; c < weights.size(); ++c) {
    if (!(weights[c] > 0)) continue;
    last = c;
    left -= weights[c];
    if (left < 0) return c;
  }
  return last;
}
}  // namespace

Policy::Policy(const Space& space, float learning_rate) : space_(space), learning_rate_(learning_rate) {
  const size_t dimensions = space.dimensions().size();
  for (size_t d = 0; d < dimensions; ++d) {
    bias_.emplace_back(count(d), 0.0f);
    auto& before = weights_.emplace_back();
    for (size_t e = 0; e < d; ++e) before.emplace_back(count(d) * count(e), 0.0f);
  }
}

void Policy::probabilities(const Point& point, size_t d, std::vector<float>& p) const {
  p.assign(std::max<size_t>(count(d), 1), 0.0f);
  if (count(d) == 0) return;
  std::vector<uint16_t> all;
  const std::vector<uint16_t>* used = nullptr;
  if (d > 0) {
    used = &space_.allowed(point[0], d);
  } else {
    for (size_t c = 0; c < count(0); ++c) all.push_back(static_cast<uint16_t>(c));
    used = &all;
  }
  if (used->empty()) {
    p[0] = 1;
    return;
  }
  float highest = -1e30f;
  for (const uint16_t c : *used) {
    float logit = bias_[d][c];
    for (size_t e = 0; e < d; ++e) logit += weights_[d][e][c * count(e) + point[e]];
    p[c] = logit;
    highest = std::max(highest, logit);
  }
  float sum = 0;
  for (const uint16_t c : *used) sum += p[c] = std::exp(p[c] - highest);
  for (const uint16_t c : *used) p[c] /= sum;
}

std::optional<Point> Policy::sample(Rng& rng, double exploration, bool masked, int attempts) const {
  const std::vector<Point>& listed = space_.listed();
  const size_t dimensions = bias_.size();
  std::vector<float> p;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    Point point(dimensions, 0);
    auto low = listed.begin(), high = listed.end();  // of the points with the prefix drawn so far
    for (size_t d = 0; d < dimensions; ++d) {
      probabilities(point, d, p);
      const auto column = [d](const Point& q, uint16_t c) { return q[d] < c; };
      if (masked && !listed.empty())
        for (size_t c = 0; c < p.size(); ++c) {
          const auto first = std::lower_bound(low, high, static_cast<uint16_t>(c), column);
          if (first == high || (*first)[d] != c) p[c] = 0;
        }
      const bool explores = rng.uniform() < exploration;
      float sum = 0;
      for (float& weight : p) {
        if (weight > 0 && explores) weight = 1;
        sum += weight;
      }
      if (!(sum > 0)) break;
      point[d] = static_cast<uint16_t>(drawn(rng, p, sum));
      if (!masked || listed.empty()) continue;
      low = std::lower_bound(low, high, point[d], column);
      high = std::lower_bound(low, high, static_cast<uint16_t>(point[d] + 1), column);
    }
    if (!masked || space_.legal(point)) return point;
  }
  return std::nullopt;
}

double Policy::log_probability(const Point& point) const {
  std::vector<float> p;
  double sum = 0;
  for (size_t d = 0; d < bias_.size(); ++d) {
    probabilities(point, d, p);
    sum += std::log(std::max(1e-12f, p[point[d]]));
  }
  return sum;
}

void Policy::step(const Point& point, float scale) {
  std::vector<float> p;
  for (size_t d = 0; d < bias_.size(); ++d) {
    if (count(d) < 2) continue;
    probabilities(point, d, p);
    float entropy = 0;
    for (const float v : p)
      if (v > 0) entropy -= v * std::log(v);
    for (size_t c = 0; c < count(d); ++c) {
      if (!(p[c] > 0)) continue;
      const float score = (c == point[d] ? 1.0f : 0.0f) - p[c];
      const float gradient = scale * score - kEntropy * p[c] * (std::log(p[c]) + entropy);
      const float change = learning_rate_ * gradient;
      bias_[d][c] += change;
      for (size_t e = 0; e < d; ++e)
        if (count(e) > 1) weights_[d][e][c * count(e) + point[e]] += 0.3f * change;
    }
  }
}

void Policy::update(const std::vector<Point>& points, const std::vector<float>& advantages, int epochs) {
  std::vector<double> before;
  for (const Point& point : points) before.push_back(log_probability(point));
  for (int epoch = 0; epoch < epochs; ++epoch)
    for (size_t i = 0; i < points.size(); ++i) {
      const double ratio = epoch == 0 ? 1 : std::exp(std::min(5.0, log_probability(points[i]) - before[i]));
      const bool clipped = advantages[i] > 0 ? ratio > 1 + kClip : ratio < 1 - kClip;
      step(points[i], clipped ? 0.0f : static_cast<float>(ratio) * advantages[i]);
    }
}

std::string Policy::save() const {
  std::string text;
  for (size_t d = 0; d < bias_.size(); ++d) {
    for (const float v : bias_[d]) text += fmt::format("{:.5g} ", v);
    for (const auto& block : weights_[d])
      for (const float v : block) text += fmt::format("{:.5g} ", v);
  }
  return text;
}

void Policy::load(const std::string& text) {
  const char* at = text.c_str();
  const auto next = [&] {
    char* end = nullptr;
    const float v = std::strtof(at, &end);
    if (end == at)
      throw Error(Code::kCorrupt, "the policy was saved of another space: it has too few numbers");
    at = end;
    return v;
  };
  for (size_t d = 0; d < bias_.size(); ++d) {
    for (float& v : bias_[d]) v = next();
    for (auto& block : weights_[d])
      for (float& v : block) v = next();
  }
}

}  // namespace thrice::tune
