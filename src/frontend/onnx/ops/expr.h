// Expressions over IR values, so that a decomposition reads like its formula. An Expr is a value and the node
// context that built it; every function emits one or a few IR nodes.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "frontend/onnx/node_context.h"

namespace thrice::frontend::onnx {

class Expr {
 public:
  Expr(NodeContext& ctx, ValueId id) : ctx_(&ctx), id_(id) {}
  NodeContext& ctx() const { return *ctx_; }
  ValueId id() const { return id_; }
  DType dtype() const { return ctx_->dtype(id_); }
  int64_t rank() const { return ctx_->rank(id_); }
  Dim dim(int64_t axis) const { return ctx_->dim(id_, axis); }
  const ir::Shape& shape() const { return ctx_->type(id_).shape; }

 private:
  NodeContext* ctx_;
  ValueId id_;
};

Expr in(NodeContext& ctx, size_t i);  // operand i; throws when absent
Expr constant(NodeContext& ctx, Tensor tensor);
Expr number(NodeContext& ctx, DType dtype, double value);  // rank 0
void out(NodeContext& ctx, size_t i, const Expr& value);   // sets output i where the model wants it

Expr emit(Op op, const Expr& x, Attributes attrs = {});
Expr emit(Op op, const Expr& a, const Expr& b, Attributes attrs = {});

// Arithmetic; a number takes the dtype of the other operand.
Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator/(const Expr& a, const Expr& b);
Expr operator+(const Expr& a, double b);
Expr operator-(const Expr& a, double b);
Expr operator*(const Expr& a, double b);
Expr operator/(const Expr& a, double b);
Expr operator+(double a, const Expr& b);
Expr operator-(double a, const Expr& b);
Expr operator*(double a, const Expr& b);
Expr operator/(double a, const Expr& b);
Expr operator-(const Expr& x);
Expr minimum(const Expr& a, const Expr& b);
Expr minimum(const Expr& a, double b);
Expr maximum(const Expr& a, const Expr& b);
Expr maximum(const Expr& a, double b);
Expr equal(const Expr& a, const Expr& b);
Expr equal(const Expr& a, double b);
Expr less(const Expr& a, const Expr& b);
Expr less(const Expr& a, double b);
Expr less_equal(const Expr& a, const Expr& b);
Expr greater(const Expr& a, const Expr& b);
Expr greater(const Expr& a, double b);
Expr greater_equal(const Expr& a, const Expr& b);
Expr logical_and(const Expr& a, const Expr& b);
Expr logical_or(const Expr& a, const Expr& b);
Expr logical_not(const Expr& a);
Expr power(const Expr& a, double b);
Expr where(const Expr& condition, const Expr& a, const Expr& b);
Expr where(const Expr& condition, double a, const Expr& b);
Expr where(const Expr& condition, const Expr& a, double b);
Expr clamp(const Expr& x, double low, double high);  // NaN stays NaN

// Element types. cast() emits nothing where the type is already right.
Expr cast(const Expr& x, DType dtype);
// f16, bf16 and the 8-bit floats as f32, everything else unchanged: sums, norms and exponentials are computed
// there and rounded once.
Expr widened(const Expr& x);

// Views. Shapes and ranges are extents that may be symbolic.
Expr reshape(const Expr& x, const ir::Shape& shape);  // a 0 is a length of zero
Expr transpose(const Expr& x, const std::vector<int64_t>& perm);
Expr slice(const Expr& x, int64_t axis, const Dim& begin, const Dim& end);
Expr expand(const Expr& x, const ir::Shape& shape);
Expr concat(const std::vector<Expr>& parts, int64_t axis);
Expr gather(const Expr& x, const Expr& indices, int64_t axis);
Expr pad_zero(const Expr& x, int64_t axis, const Dim& begin, const Dim& end);
Expr unsqueeze(const Expr& x, std::vector<int64_t> axes);  // axes of the result; negative from its end
Expr squeeze(const Expr& x, const std::vector<int64_t>& axes);
// i64 tensor whose element is its index along the only axis.
Expr iota(NodeContext& ctx, const Dim& length);
// The extent as an i64 of rank 0.
Expr extent(NodeContext& ctx, const Dim& dim);
// iota, as a vector along `axis` of a rank-`rank` broadcast shape [1, ..., length, ..., 1].
Expr iota_along(NodeContext& ctx, const Dim& length, int64_t axis, int64_t rank);
// A vector placed along `axis` of a rank-`rank` broadcast shape; rank 0 stays as it is.
Expr along(const Expr& vector, int64_t axis, int64_t rank);
// The number as a tensor of this shape.
Expr filled(NodeContext& ctx, DType dtype, double value, const ir::Shape& shape);

Expr reduce(const Expr& x, const std::string& kind, const std::vector<int64_t>& axes, bool keepdims = true);
Expr matmul(const Expr& a, const Expr& b, bool trans_a = false, bool trans_b = false);

std::vector<int64_t> axes_from(int64_t first, int64_t rank);  // first, first+1, ..., rank-1
// Axes of an operator: attribute `axes` or operand `index` (structural), normalised and sorted; false where
// neither is given or the list is empty.
bool read_axes(NodeContext& ctx, size_t index, int64_t rank, std::vector<int64_t>& axes);

}  // namespace thrice::frontend::onnx
