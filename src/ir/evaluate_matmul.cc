// matmul with broadcast batches.
#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>

#include "ir/evaluate_gemm.h"
#include "ir/evaluate_groups.h"
#include "ir/evaluate_strides.h"
#include "ir/evaluate_threads.h"

namespace thrice::ir {
namespace {

struct Problem {
  int64_t m, n, k;
  std::vector<int64_t> a_at, b_at;  // where each batch's operands begin
  int64_t a_row, a_column, b_row, b_column;
};

constexpr int64_t kMostThreads = 16;  // that parallel_for starts

template <class T>
void multiply(const Problem& p, const T* a, const T* b, T* c) {
  const auto batches = static_cast<int64_t>(p.a_at.size());
  // One piece is a batch, or a slice of its longer side where batches are few.
  const bool by_rows = p.m >= p.n;
  const int64_t side = by_rows ? p.m : p.n;
  const int64_t slices = std::clamp<int64_t>(side / 48, 1, batches >= 8 ? 1 : kMostThreads);
  parallel_for(batches * slices, p.m * p.n * p.k / slices / 4, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t batch = piece / slices, s = piece % slices;
      const int64_t first = side * s / slices, last = side * (s + 1) / slices;
      MatrixView<T> va{a + p.a_at[static_cast<size_t>(batch)], p.a_row, p.a_column};
      MatrixView<T> vb{b + p.b_at[static_cast<size_t>(batch)], p.b_row, p.b_column};
      T* out = c + batch * p.m * p.n;
      if (by_rows) {
        va.data += first * p.a_row;
        gemm(last - first, p.n, p.k, va, vb, out + first * p.n, p.n);
      } else {
        vb.data += first * p.b_column;
        gemm(p.m, last - first, p.k, va, vb, out + first, p.n);
      }
    }
  });
}

}  // namespace

Results evaluate_matmul(const Node& node, const Operands& operands) {
  const Array& a = operand(node, operands, 0);
  const Array& b = operand(node, operands, 1);
  if (a.shape.size() < 2 || b.shape.size() < 2) bad_node(node, "operands need rank 2 or more");
  if (a.dtype != b.dtype || lives_in_s(a.dtype)) bad_node(node, "operands need one numeric dtype");
  const bool ta = node.int_attr("trans_a", 0) != 0, tb = node.int_attr("trans_b", 0) != 0;
  const auto last_two = [](const Array& x) { return std::pair{x.shape[x.shape.size() - 2], x.shape.back()}; };
  const auto [a0, a1] = last_two(a);
  const auto [b0, b1] = last_two(b);
  Problem p;
  p.m = ta ? a1 : a0;
  p.k = ta ? a0 : a1;
  p.n = tb ? b0 : b1;
  if ((tb ? b1 : b0) != p.k)
    bad_node(node, fmt::format("inner extents differ: {} and {}", p.k, tb ? b1 : b0));
  p.a_row = ta ? 1 : a1;
  p.a_column = ta ? a1 : 1;
  p.b_row = tb ? 1 : b1;
  p.b_column = tb ? b1 : 1;
  const std::vector<int64_t> a_batch(a.shape.begin(), a.shape.end() - 2),
      b_batch(b.shape.begin(), b.shape.end() - 2);
  std::vector<int64_t> shape = broadcast_shapes(a_batch, b_batch);
  const int64_t a_size = a0 * a1, b_size = b0 * b1;  // of one matrix
  for_each_run<2>(shape, {broadcast_strides(a_batch, shape), broadcast_strides(b_batch, shape)},
                  [&](const auto& at, int64_t n, const auto& stride) {
                    for (int64_t i = 0; i < n; ++i) {
                      p.a_at.push_back((at[0] + i * stride[0]) * a_size);
                      p.b_at.push_back((at[1] + i * stride[1]) * b_size);
                    }
                  });
  // Batches of a that share one b are one tall product.
  if (b_batch.empty() && !ta && p.a_at.size() > 1) {
    p.m *= static_cast<int64_t>(p.a_at.size());
    p.a_at = {0};
    p.b_at = {0};
  }
  shape.push_back(ta ? a1 : a0);
  shape.push_back(p.n);
  auto out = make_array(a.dtype, shape);
  if (lives_in_f(a.dtype)) {
    multiply(p, a.f.data(), b.f.data(), out->f.data());
  } else {
    multiply(p, a.i.data(), b.i.data(), out->i.data());
    for (int64_t& v : out->i) v = wrap_to(a.dtype, v);
  }
  return {out};
}

}  // namespace thrice::ir
