// Types of reductions and of the heavy operators without spatial windows.
#include <algorithm>

#include "ir/delta_rule.h"
#include "ir/infer_rules.h"

namespace thrice::ir {
namespace {

Fact fact(DType dtype, Shape shape) { return Fact{{dtype, std::move(shape)}, nullptr, std::nullopt}; }

Shape reduced(const InferContext& c, const std::vector<int64_t>& axes, bool keepdims) {
  Shape shape;
  for (int64_t axis : axes) c.require(axis >= 0 && axis < c.rank(0), "an axis is outside the rank");
  for (int64_t i = 0; i < c.rank(0); ++i) {
    const bool gone = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (!gone)
      shape.push_back(c.shape(0)[static_cast<size_t>(i)]);
    else if (keepdims)
      shape.emplace_back(1);
  }
  return shape;
}

Fact matmul(const InferContext& c) {
  c.require_same_dtype(0, 1);
  const Shape &a = c.shape(0), &b = c.shape(1);
  c.require(a.size() >= 2 && b.size() >= 2, "operands need rank 2 or more");
  const size_t ta = c.node.int_attr("trans_a", 0) ? 1 : 0, tb = c.node.int_attr("trans_b", 0) ? 1 : 0;
  const Dim &rows = a[a.size() - 2 + ta], &inner_a = a[a.size() - 1 - ta];
  const Dim &inner_b = b[b.size() - 2 + tb], &columns = b[b.size() - 1 - tb];
  if (inner_a.is_const() && inner_b.is_const() && inner_a != inner_b)
    c.fail(fmt::format("inner extents {} and {} differ (shapes {} and {})", inner_a.str(), inner_b.str(),
                       shape_str(a), shape_str(b)));
  Shape shape = broadcast_shapes(c, Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2));
  shape.push_back(rows);
  shape.push_back(columns);
  return fact(c.dtype(0), std::move(shape));
}

std::vector<Fact> top_k(const InferContext& c) {
  Shape shape = c.shape(0);
  const size_t axis = c.axis("axis", c.rank(0));
  c.require(c.shape_operand_length(1) == 1, "k has more than one element");
  const auto k = c.known(1);
  if (k && (*k)[0].is_const() && shape[axis].is_const() && (*k)[0].value() > shape[axis].value())
    c.fail(fmt::format("k is {}, the axis has {} elements", (*k)[0].value(), shape[axis].value()));
  shape[axis] = k ? (*k)[0] : c.fresh(0, axis);
  return {fact(c.dtype(0), shape), fact(DType::kI64, shape)};
}

Fact scatter(const InferContext& c) {
  c.require(c.dtype(1) == DType::kI64 || c.dtype(1) == DType::kI32, "indices are not i32 or i64");
  c.require_same_dtype(0, 2);
  if (c.node.op == Op::scatter_elements) {
    c.axis("axis", c.rank(0));
    c.require(c.rank(1) == c.rank(0) && c.rank(2) == c.rank(0), "operands differ in rank");
    for (size_t i = 0; i < c.shape(1).size(); ++i) unify(c, c.shape(1)[i], c.shape(2)[i]);
  } else {
    c.require(c.rank(1) >= 1, "indices have rank 0");
    const Dim& tuple = c.shape(1).back();
    if (tuple.is_const()) {
      c.require(tuple.value() <= c.rank(0), "the index tuples are longer than the rank");
      c.require(c.rank(2) == c.rank(1) - 1 + c.rank(0) - tuple.value(), "updates have the wrong rank");
    }
  }
  return fact(c.dtype(0), c.shape(0));
}

// q, k [B, T, H, K], v [B, T, H, V], g [B, T, H, K or 1], beta [B, T, H], a_log [H], dt_bias [H, K or 1],
// optional first state [N, H, K, V], optional offsets [N + 1] (then B = 1; N = B without).
std::vector<Fact> delta_rule(const InferContext& c) {
  for (size_t i = 0; i < 4; ++i) c.require(c.rank(i) == 4, "q, k, v and g have rank 4");
  c.require(c.rank(4) == 3 && c.rank(5) == 1 && c.rank(6) == 2, "beta has rank 3, a_log 1, dt_bias 2");
  for (size_t i = 1; i < 5; ++i) c.require_same_dtype(0, i);
  c.require_same_dtype(5, 6);
  c.require(is_float(c.dtype(0)), "q, k, v, g and beta are floats");
  c.require(c.dtype(5) == (c.dtype(0) == DType::kF64 ? DType::kF64 : DType::kF32),
            "a_log, dt_bias and states are f32, with f64 operands f64");
  const Shape& q = c.shape(0);
  const auto match = [&](const Dim& a, const Dim& b) { unify(c, a, b); };
  for (size_t a = 0; a < 4; ++a) match(q[a], c.shape(1)[a]);
  for (size_t a = 0; a < 3; ++a) {
    match(q[a], c.shape(2)[a]);
    match(q[a], c.shape(3)[a]);
    match(q[a], c.shape(4)[a]);
  }
  match(q[2], c.shape(5)[0]);
  match(q[2], c.shape(6)[0]);
  for (const Dim& gates : {c.shape(3)[3], c.shape(6)[1]})
    if (gates != Dim(1)) match(gates, q[3]);
  Dim sequences = q[0];
  if (c.has(kDeltaRuleOffsets)) {
    c.require(c.rank(8) == 1 && (c.dtype(8) == DType::kI32 || c.dtype(8) == DType::kI64),
              "offsets are a vector of i32 or i64");
    c.require(!q[0].is_const() || q[0].value() == 1, "packed sequences have a batch of 1");
    sequences = c.shape(8)[0] - 1;
  }
  const Shape state{sequences, q[2], q[3], c.shape(2)[3]};
  if (c.has(kDeltaRuleFirst)) {
    c.require_same_dtype(5, 7);
    c.require(c.rank(7) == 4, "the first state has rank 4");
    for (size_t a = 0; a < 4; ++a) match(state[a], c.shape(7)[a]);
  }
  return {fact(c.dtype(2), c.shape(2)), fact(c.dtype(5), state)};
}

}  // namespace

std::vector<Fact> infer_reduce(const InferContext& c) {
  const bool keepdims = c.node.int_attr("keepdims", 1) != 0;
  if (c.node.op == Op::arg_reduce) {
    const auto axis = static_cast<int64_t>(c.axis("axis", c.rank(0)));
    return {fact(DType::kI64, reduced(c, {axis}, keepdims))};
  }
  const std::string kind = c.node.string_attr("kind", "sum");
  const bool logical = kind == "any" || kind == "all";
  if (logical != (c.dtype(0) == DType::kBool) || c.dtype(0) == DType::kString)
    c.fail(fmt::format("kind {} is not defined on {}", kind, dtype_name(c.dtype(0))));
  return {fact(c.dtype(0), reduced(c, c.node.ints_attr("axes"), keepdims))};
}

std::vector<Fact> infer_heavy(const InferContext& c) {
  switch (c.node.op) {
    case Op::matmul:
      return {matmul(c)};
    case Op::scan_sum:
      if (is_delta_rule(c.node)) return delta_rule(c);
      c.axis("axis", c.rank(0));
      return {fact(c.dtype(0), c.shape(0))};
    case Op::top_k:
      return top_k(c);
    case Op::scatter_elements:
    case Op::scatter_nd:
      return {scatter(c)};
    default:
      throw Error(Code::kInternal, fmt::format("{} has no inference", op_name(c.node.op)));
  }
}

}  // namespace thrice::ir
