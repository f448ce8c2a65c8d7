// Strides for the evaluator: broadcasting and transposition without an index per element.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/evaluate_threads.h"

namespace thrice::ir {

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& shape);

// NumPy broadcast of two shapes. Throws kInvalidModel naming both.
std::vector<int64_t> broadcast_shapes(const std::vector<int64_t>& a, const std::vector<int64_t>& b);
// Strides with which `shape` is read at the indices of `out` (right-aligned, 0 where it is repeated).
std::vector<int64_t> broadcast_strides(const std::vector<int64_t>& shape, const std::vector<int64_t>& out);

// Drops extents of 1 and merges neighbours that every operand walks in one stride.
template <std::size_t N>
void collapse(std::vector<int64_t>& shape, std::array<std::vector<int64_t>, N>& strides) {
  std::size_t kept = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    bool merge = kept > 0;
    for (auto& s : strides) merge = merge && s[kept - 1] == s[d] * shape[d];
    if (merge) {
      shape[kept - 1] *= shape[d];
      for (auto& s : strides) s[kept - 1] = s[d];
    } else {
      shape[kept] = shape[d];
      for (auto& s : strides) s[kept] = s[d];
      ++kept;
    }
  }
  shape.resize(kept);
  for (auto& s : strides) s.resize(kept);
}

// Calls f(offsets, count, inner strides) for every innermost run of `shape`, in row-major order. offsets[k]
// is where the run of operand k begins. Nothing is called for an empty shape.
template <std::size_t N, class F>
void for_each_run(std::vector<int64_t> shape, std::array<std::vector<int64_t>, N> strides, F&& f) {
  for (int64_t extent : shape)
    if (extent == 0) return;
  collapse(shape, strides);
  std::array<int64_t, N> offsets{}, inner{};
  if (shape.empty()) return f(offsets, int64_t{1}, inner);
  const std::size_t last = shape.size() - 1;
  for (std::size_t k = 0; k < N; ++k) inner[k] = strides[k][last];
  std::vector<int64_t> index(last, 0);
  for (;;) {
    f(offsets, shape[last], inner);
    std::size_t d = last;
    for (; d > 0; --d) {
      for (std::size_t k = 0; k < N; ++k) offsets[k] += strides[k][d - 1];
      if (++index[d - 1] < shape[d - 1]) break;
      index[d - 1] = 0;
      for (std::size_t k = 0; k < N; ++k) offsets[k] -= strides[k][d - 1] * shape[d - 1];
    }
    if (d == 0) return;
  }
}

// The same over parts of `shape` along its first axes of more than one element, on several threads where
// elements are many: f(first, offsets, count, inner strides), `first` = number of the run's first element in
// row-major order. Runs come in no order; f must not throw.
template <std::size_t N, class F>
void for_each_run_in_parts(std::vector<int64_t> shape, std::array<std::vector<int64_t>, N> strides,
                           int64_t work, F&& f) {
  for (int64_t extent : shape)
    if (extent == 0) return;
  collapse(shape, strides);
  int64_t inner = 1;
  for (std::size_t d = 1; d < shape.size(); ++d) inner *= shape[d];
  const int64_t outer = shape.empty() ? 1 : shape[0];
  parallel_for(outer, inner * work, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> part = shape;
    if (!part.empty()) part[0] = end - begin;
    std::array<int64_t, N> base{};
    for (std::size_t k = 0; k < N && !shape.empty(); ++k) base[k] = begin * strides[k][0];
    int64_t first = begin * inner;
    for_each_run<N>(part, strides, [&](std::array<int64_t, N> at, int64_t n, const auto& stride) {
      for (std::size_t k = 0; k < N; ++k) at[k] += base[k];
      f(first, at, n, stride);
      first += n;
    });
  });
}

}  // namespace thrice::ir
