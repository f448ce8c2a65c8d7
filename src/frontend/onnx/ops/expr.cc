#include "frontend/onnx/ops/expr.h"

#include <algorithm>

namespace thrice::frontend::onnx {

Expr in(NodeContext& ctx, size_t i) { return {ctx, ctx.input(i)}; }
Expr constant(NodeContext& ctx, Tensor tensor) { return {ctx, ctx.constant(std::move(tensor))}; }
Expr number(NodeContext& ctx, DType dtype, double value) { return {ctx, ctx.scalar(dtype, value)}; }
void out(NodeContext& ctx, size_t i, const Expr& value) {
  if (ctx.wants_output(i)) ctx.set_output(i, value.id());
}

Expr emit(Op op, const Expr& x, Attributes attrs) {
  return {x.ctx(), x.ctx().emit(op, {x.id()}, std::move(attrs))};
}
Expr emit(Op op, const Expr& a, const Expr& b, Attributes attrs) {
  return {a.ctx(), a.ctx().emit(op, {a.id(), b.id()}, std::move(attrs))};
}

namespace {
Expr like(const Expr& x, double value) { return number(x.ctx(), x.dtype(), value); }
}  // namespace

Expr operator+(const Expr& a, const Expr& b) { return emit(Op::add, a, b); }
Expr operator-(const Expr& a, const Expr& b) { return emit(Op::sub, a, b); }
Expr operator*(const Expr& a, const Expr& b) { return emit(Op::mul, a, b); }
Expr operator/(const Expr& a, const Expr& b) { return emit(Op::div, a, b); }
Expr operator+(const Expr& a, double b) { return a + like(a, b); }
Expr operator-(const Expr& a, double b) { return a - like(a, b); }
Expr operator*(const Expr& a, double b) { return a * like(a, b); }
Expr operator/(const Expr& a, double b) { return a / like(a, b); }
Expr operator+(double a, const Expr& b) { return like(b, a) + b; }
Expr operator-(double a, const Expr& b) { return like(b, a) - b; }
Expr operator*(double a, const Expr& b) { return like(b, a) * b; }
Expr operator/(double a, const Expr& b) { return like(b, a) / b; }
Expr operator-(const Expr& x) { return emit(Op::neg, x); }
Expr minimum(const Expr& a, const Expr& b) { return emit(Op::min, a, b); }
Expr minimum(const Expr& a, double b) { return minimum(a, like(a, b)); }
Expr maximum(const Expr& a, const Expr& b) { return emit(Op::max, a, b); }
Expr maximum(const Expr& a, double b) { return maximum(a, like(a, b)); }
Expr equal(const Expr& a, const Expr& b) { return emit(Op::equal, a, b); }
Expr equal(const Expr& a, double b) { return equal(a, like(a, b)); }
Expr less(const Expr& a, const Expr& b) { return emit(Op::less, a, b); }
Expr less(const Expr& a, double b) { return less(a, like(a, b)); }
Expr less_equal(const Expr& a, const Expr& b) { return emit(Op::less_equal, a, b); }
Expr greater(const Expr& a, const Expr& b) { return emit(Op::greater, a, b); }
Expr greater(const Expr& a, double b) { return greater(a, like(a, b)); }
Expr greater_equal(const Expr& a, const Expr& b) { return emit(Op::greater_equal, a, b); }
Expr logical_and(const Expr& a, const Expr& b) { return emit(Op::logical_and, a, b); }
Expr logical_or(const Expr& a, const Expr& b) { return emit(Op::logical_or, a, b); }
Expr logical_not(const Expr& a) { return emit(Op::logical_not, a); }
Expr power(const Expr& a, double b) { return emit(Op::pow, a, like(a, b)); }
Expr where(const Expr& condition, const Expr& a, const Expr& b) {
  return {a.ctx(), a.ctx().emit(Op::where, {condition.id(), a.id(), b.id()})};
}
Expr where(const Expr& condition, double a, const Expr& b) { return where(condition, like(b, a), b); }
Expr where(const Expr& condition, const Expr& a, double b) { return where(condition, a, like(a, b)); }
Expr clamp(const Expr& x, double low, double high) { return minimum(maximum(x, low), high); }

Expr cast(const Expr& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  return emit(Op::cast, x, {{"to", static_cast<int64_t>(dtype)}});
}

Expr widened(const Expr& x) {
  const DType dtype = x.dtype();
  return is_float(dtype) && dtype != DType::kF64 ? cast(x, DType::kF32) : x;
}

Expr reshape(const Expr& x, const ir::Shape& shape) {
  if (shape == x.shape()) return x;
  NodeContext& ctx = x.ctx();
  return {ctx, ctx.emit(Op::reshape, {x.id(), ctx.dims(shape)}, {{"allowzero", int64_t{1}}})};
}

Expr transpose(const Expr& x, const std::vector<int64_t>& perm) {
  bool moves = false;
  for (size_t i = 0; i < perm.size(); ++i) moves = moves || perm[i] != static_cast<int64_t>(i);
  return moves ? emit(Op::transpose, x, {{"perm", perm}}) : x;
}

Expr slice(const Expr& x, int64_t axis, const Dim& begin, const Dim& end) {
  NodeContext& ctx = x.ctx();
  axis = ctx.axis(x.id(), axis);
  if (begin == Dim(0) && end == x.dim(axis)) return x;
  return {ctx, ctx.emit(Op::slice, {x.id(), ctx.dims({begin}), ctx.dims({end}), ctx.ints({1})},
                        {{"axes", std::vector<int64_t>{axis}}})};
}

Expr expand(const Expr& x, const ir::Shape& shape) {
  if (shape == x.shape()) return x;
  NodeContext& ctx = x.ctx();
  return {ctx, ctx.emit(Op::expand, {x.id(), ctx.dims(shape)})};
}

Expr concat(const std::vector<Expr>& parts, int64_t axis) {
  if (parts.size() == 1) return parts[0];
  NodeContext& ctx = parts.at(0).ctx();
  std::vector<ValueId> ids;
  for (const Expr& part : parts) ids.push_back(part.id());
  return {ctx, ctx.emit(Op::concat, ids, {{"axis", ctx.axis(ids[0], axis)}})};
}

Expr gather(const Expr& x, const Expr& indices, int64_t axis) {
  return emit(Op::gather, x, indices, {{"axis", x.ctx().axis(x.id(), axis)}});
}

Expr pad_zero(const Expr& x, int64_t axis, const Dim& begin, const Dim& end) {
  if (begin == Dim(0) && end == Dim(0)) return x;
  NodeContext& ctx = x.ctx();
  return {ctx, ctx.emit(Op::pad, {x.id(), ctx.dims({begin, end})},
                        {{"mode", std::string("constant")},
                         {"axes", std::vector<int64_t>{ctx.axis(x.id(), axis)}}})};
}

Expr unsqueeze(const Expr& x, std::vector<int64_t> axes) {
  if (axes.empty()) return x;
  const auto rank = x.rank() + static_cast<int64_t>(axes.size());
  for (int64_t& axis : axes) {
    if (axis < -rank || axis >= rank) x.ctx().invalid("an axis is out of range");
    if (axis < 0) axis += rank;
  }
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) x.ctx().invalid("an axis is given twice");
  ir::Shape shape = x.shape();
  for (int64_t axis : axes) shape.insert(shape.begin() + axis, Dim(1));
  return reshape(x, shape);
}

Expr squeeze(const Expr& x, const std::vector<int64_t>& axes) {
  ir::Shape shape;
  std::vector<bool> gone(static_cast<size_t>(x.rank()));
  for (int64_t axis : axes) gone[static_cast<size_t>(x.ctx().axis(x.id(), axis))] = true;
  for (size_t i = 0; i < gone.size(); ++i) {
    if (!gone[i]) shape.push_back(x.shape()[i]);
    if (gone[i] && x.shape()[i].is_const() && x.shape()[i].value() != 1)
      x.ctx().invalid("an axis whose length is not 1 cannot be squeezed");
  }
  return reshape(x, shape);
}

Expr iota(NodeContext& ctx, const Dim& length) {
  return {ctx, ctx.emit(Op::iota, {ctx.dims({length})}, {{"axis", int64_t{0}}})};
}

Expr extent(NodeContext& ctx, const Dim& dim) { return reshape({ctx, ctx.dims({dim})}, {}); }

Expr iota_along(NodeContext& ctx, const Dim& length, int64_t axis, int64_t rank) {
  ir::Shape shape(static_cast<size_t>(rank), Dim(1));
  shape[static_cast<size_t>(axis)] = length;
  return {ctx, ctx.emit(Op::iota, {ctx.dims(shape)}, {{"axis", axis}})};
}

Expr along(const Expr& vector, int64_t axis, int64_t rank) {
  if (vector.rank() == 0) return vector;
  if (vector.rank() != 1) vector.ctx().invalid("an operand must be a vector or a scalar");
  ir::Shape shape(static_cast<size_t>(rank), Dim(1));
  shape[static_cast<size_t>(axis)] = vector.dim(0);
  return reshape(vector, shape);
}

Expr filled(NodeContext& ctx, DType dtype, double value, const ir::Shape& shape) {
  return expand(number(ctx, dtype, value), shape);
}

Expr reduce(const Expr& x, const std::string& kind, const std::vector<int64_t>& axes, bool keepdims) {
  return emit(Op::reduce, x, {{"kind", kind}, {"axes", axes}, {"keepdims", static_cast<int64_t>(keepdims)}});
}

Expr matmul(const Expr& a, const Expr& b, bool trans_a, bool trans_b) {
  Attributes attrs;
  if (trans_a) attrs["trans_a"] = int64_t{1};
  if (trans_b) attrs["trans_b"] = int64_t{1};
  return emit(Op::matmul, a, b, std::move(attrs));
}

std::vector<int64_t> axes_from(int64_t first, int64_t rank) {
  std::vector<int64_t> axes;
  for (int64_t axis = first; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

bool read_axes(NodeContext& ctx, size_t index, int64_t rank, std::vector<int64_t>& axes) {
  if (ctx.has_input(index))
    axes = ctx.structural_ints(index);
  else
    axes = ctx.ints_attr("axes");
  for (int64_t& axis : axes) {
    if (axis < -rank || axis >= rank) ctx.invalid("an axis is out of range");
    if (axis < 0) axis += rank;
  }
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return !axes.empty();
}

}  // namespace thrice::frontend::onnx
