#include <algorithm>
#include <cmath>
#include <limits>

#include "tune/recorded.h"

namespace thrice::tune {
namespace {

using Choices = std::vector<int64_t>;
const std::vector<std::pair<const char*, Choices>>& parameters() {
  static const std::vector<std::pair<const char*, Choices>> kParameters = {
      {"tile_m", {16, 32, 64, 96, 128, 192, 256}},
      {"tile_n", {16, 32, 64, 96, 128, 192, 256}},
      {"tile_k", {8, 16, 32, 64, 128}},
      {"warps_m", {1, 2, 4, 8}},
      {"warps_n", {1, 2, 4, 8}},
      {"stages", {1, 2, 3, 4, 5}},
      {"vector", {1, 2, 4, 8}},
      {"unroll", {1, 2, 4, 8, 16}},
      {"swizzle", {0, 1, 2, 3}},
      {"layout", {0, 1, 2}}};
  return kParameters;
}
enum { kTileM, kTileN, kTileK, kWarpsM, kWarpsN, kStages, kVector, kUnroll, kSwizzle, kLayout };

double distance(double value, double best) { return std::pow(std::log2(value / best), 2); }

bool is_legal(const int64_t* v) {
  return 4 * (v[kTileM] + v[kTileN]) * v[kTileK] * v[kStages] <= 160 * 1024 &&
         v[kWarpsM] * v[kWarpsN] <= 32 && v[kTileM] % (8 * v[kWarpsM]) == 0 &&
         v[kTileN] % (8 * v[kWarpsN]) == 0 && v[kTileK] % v[kVector] == 0;
}

// A product model: each factor has its own best place, and places depend on each other.
double model(const int64_t* v) {
  const auto d = [&](int p) { return static_cast<double>(v[p]); };
  const double threads = 32 * d(kWarpsM) * d(kWarpsN), work = d(kTileM) * d(kTileN) / threads;
  double log_time = 0.06 * distance(d(kTileM), 128) + 0.05 * distance(d(kTileN), 192) +
                    0.07 * distance(work, 48) + 0.04 * distance(threads, 256) +
                    0.05 * distance(d(kTileK) * d(kStages), 128) + 0.03 * distance(d(kVector), 4) +
                    0.02 * distance(d(kUnroll) * d(kVector), 32);
  log_time += v[kLayout] == 1 ? 0 : v[kLayout] == 2 && d(kVector) >= 4 ? 0.02 : 0.15;
  log_time += 0.06 * std::abs(d(kSwizzle) - (d(kTileM) > 96 ? 2 : 1));
  if (4 * (v[kTileM] + v[kTileN]) * v[kTileK] * v[kStages] > 80 * 1024) log_time += 0.12;  // one block fewer
  return std::exp(log_time);
}

void values_of(const Space& space, const Point& point, int64_t* values) {
  for (size_t p = 0; p < parameters().size(); ++p)
    values[p] = space.dimensions()[p + 1].choices[point[p + 1]];
}

}  // namespace

double SyntheticSpace::time(const Point& point) const {
  int64_t values[16];
  values_of(space, point, values);
  return is_legal(values) ? model(values) : std::numeric_limits<double>::quiet_NaN();
}

SyntheticSpace make_synthetic_space() {
  artifact::ScheduleSpace product;
  product.tactics.push_back({"synthetic", "model", {}});
  for (const auto& [name, choices] : parameters())
    product.tactics[0].parameters.push_back({name, choices, 0});
  SyntheticSpace s;
  s.space = Space(product, [](const artifact::Schedule& schedule) {
    int64_t values[16];
    for (size_t p = 0; p < schedule.values.size(); ++p) values[p] = schedule.values[p].second;
    return is_legal(values);
  });
  s.optimum = std::numeric_limits<double>::infinity();
  Point point(parameters().size() + 1, 0);
  int64_t values[16];
  for (;;) {
    values_of(s.space, point, values);
    if (is_legal(values)) {
      ++s.legal;
      s.optimum = std::min(s.optimum, model(values));
    }
    size_t d = parameters().size();
    for (; d > 0; --d) {
      if (++point[d] < parameters()[d - 1].second.size()) break;
      point[d] = 0;
    }
    if (d == 0) break;
  }
  return s;
}

}  // namespace thrice::tune
