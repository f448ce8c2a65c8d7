// Shapes of bench_matrix, and which of the thousands of schedules it tries: the corner of each tactic's space
// where tuning ends for a shape of that kind.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "artifact/schedule.h"
#include "bench/one_operator.h"

namespace thrice::bench {

struct MatrixShape {
  int64_t m, n, k;
  std::string suites;  // "matmul skinny"
  int64_t batches = 1;
  std::string str() const {
    return (batches > 1 ? fmt::format("{}x", batches) : "") + fmt::format("{}x{}x{}", m, n, k);
  }
  bool is_skinny() const { return std::min(m, n) <= 64; }
  bool is_long() const { return k >= 16384; }
};

inline const std::vector<MatrixShape> kMatrixShapes = {
    {1024, 1024, 1024, "matmul"},      {4096, 4096, 4096, "matmul"},       {8192, 8192, 8192, "matmul"},
    {16, 4096, 4096, "matmul skinny"}, {64, 12288, 4096, "matmul skinny"}, {2048, 768, 768, "matmul"},
    {2048, 3072, 768, "matmul"},       {2048, 768, 3072, "matmul"},        {128, 128, 65536, "matmul"},
    {1, 4096, 4096, "skinny"},         {4, 4096, 4096, "skinny"},          {64, 4096, 4096, "skinny"},
    {1, 12288, 4096, "skinny"},        {4, 12288, 4096, "skinny"},         {16, 12288, 4096, "skinny"},
    {512, 512, 64, "irregular", 96},   {8205, 2949, 5921, "irregular"},    {333, 776, 2048, "irregular"},
    {5000, 3000, 1000, "irregular"},   {4095, 4095, 4096, "irregular"},    {12345, 640, 2560, "irregular"},
    {197, 3072, 768, "irregular"},     {77, 1280, 1280, "irregular"},      {3000, 256, 1024, "irregular"},
    {2049, 1025, 512, "irregular"},    {1500, 7000, 264, "irregular"},     {128, 512, 512, "small"},
    {128, 768, 768, "small"},          {128, 3072, 768, "small"},          {128, 768, 3072, "small"},
    {197, 768, 768, "small"},          {64, 1024, 1024, "small"},          {256, 1024, 1024, "small"}};

inline ir::Workload matrix_workload(const MatrixShape& s, bool trans_b, DType dtype) {
  std::vector<int64_t> a{s.m, s.k}, b{s.k, s.n};
  if (trans_b) std::swap(b[0], b[1]);
  if (s.batches > 1)
    for (auto* shape : {&a, &b}) shape->insert(shape->begin(), s.batches);
  ir::Attributes attrs;
  if (trans_b) attrs["trans_b"] = int64_t{1};
  ir::Workload w = one_operator(ir::Op::matmul, {a, b}, attrs, dtype);
  w.graph.value(w.graph.inputs[1]).is_weight = true;
  return w;
}

// Every schedule of the parameters' choices.
inline void each_choice(const std::vector<artifact::Parameter>& parameters, size_t at, artifact::Schedule& s,
                        const std::function<void()>& use) {
  if (at == parameters.size()) return use();
  for (const int64_t choice : parameters[at].choices) {
    s.values.emplace_back(parameters[at].name, choice);
    each_choice(parameters, at + 1, s, use);
    s.values.pop_back();
  }
}

inline bool in_mma_corner(const MatrixShape& shape, const artifact::Schedule& s) {
  const int64_t bm = s.get("tile_m"), bn = s.get("tile_n"), bk = s.get("tile_k"), warps_m = s.get("warps_m"),
                warps_n = s.get("warps_n"), stages = s.get("stages");
  const int64_t parts = s.get("split") * s.get("shares");
  const int64_t blocks = (shape.m + bm - 1) / bm * ((shape.n + bn - 1) / bn) * parts;
  if (shape.is_skinny()) {
    const int64_t rows = std::max<int64_t>(shape.m, 16);
    return bm >= rows && (bm < 2 * rows) && bn >= 64 && bk >= 32 &&
           warps_m <= std::max<int64_t>(1, bm / 32) && warps_n >= 2 && stages <= 4 && s.get("shares") == 1 &&
           blocks >= 120 && blocks <= 800;
  }
  if (shape.is_long())
    return bm >= 64 && bn >= 64 && bk >= 16 && bk <= 32 && warps_m * warps_n >= 4 && stages >= 3 &&
           blocks >= 100 && blocks <= 300;
  return stages == 3 && bk >= 32 && warps_m == 2 && warps_n >= 2 && bm >= 64 && bn >= 64 && parts == 1;
}

// Two to forty warps a multiprocessor of 132.
inline bool in_skinny_corner(const MatrixShape& shape, const artifact::Schedule& s) {
  const int64_t bm = s.get("tile_m"), bn = s.get("tile_n");
  const int64_t blocks = (shape.m + bm - 1) / bm * ((shape.n + bn - 1) / bn) * s.get("split");
  const int64_t warps = blocks * bn / 32 * s.get("warps_k");
  if (shape.m <= 32 && bm >= 2 * std::max<int64_t>(shape.m, 16)) return false;
  return s.get("stages") <= 4 && bn <= 128 && blocks >= 90 && warps >= 2 * 132 && warps <= 40 * 132;
}

// The deepest ring, up to six steps; blocks that stay, or that share the depth of smaller tiles.
inline bool in_wgmma16_corner(const artifact::Schedule& s) {
  constexpr int64_t kSharedBytes = 227 * 1024;
  const int64_t bm = s.get("tile_m"), bn = s.get("tile_n"), split = s.get("split");
  const int64_t fits = (kSharedBytes - 2048 - bm / 64 * 16384) / ((bm + bn) * 128);
  return s.get("stages") == std::min<int64_t>(6, fits) && (s.get("blocks") == 0) == (split > 1) &&
         (split == 1 || bn <= 128);
}

// `filter`: words TACTIC/TEXT with commas between; schedules of that tactic must contain each TEXT.
inline bool passes(const std::string& filter, const artifact::Schedule& s) {
  for (size_t at = 0; at < filter.size();) {
    const size_t end = std::min(filter.find(',', at), filter.size()), slash = filter.find('/', at);
    if (filter.substr(at, slash - at) == s.tactic &&
        (s.str() + " ").find(" " + filter.substr(slash + 1, end - slash - 1) + " ") == std::string::npos)
      return false;
    at = end + 1;
  }
  return true;
}

// At most `limit` of them, evenly spread.
template <typename T>
std::vector<T> spread(std::vector<T> all, size_t limit) {
  if (all.size() <= limit) return all;
  std::vector<T> some;
  for (size_t i = 0; i < limit; ++i) some.push_back(std::move(all[i * all.size() / limit]));
  return some;
}

}  // namespace thrice::bench
