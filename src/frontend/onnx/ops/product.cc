// Matrix products.
#include "frontend/onnx/ops/product.h"

#include "frontend/onnx/ops/groups.h"
#include "frontend/onnx/ops/quantize.h"

namespace thrice::frontend::onnx {

Expr numpy_matmul(const Expr& a, const Expr& b) {
  if (a.rank() == 0 || b.rank() == 0) a.ctx().invalid("a scalar operand");
  const Expr left = a.rank() == 1 ? unsqueeze(a, {0}) : a;
  const Expr right = b.rank() == 1 ? unsqueeze(b, {1}) : b;
  const Expr product = matmul(left, right);
  std::vector<int64_t> gone;
  if (a.rank() == 1) gone.push_back(-2);
  if (b.rank() == 1) gone.push_back(-1);
  return gone.empty() ? product : squeeze(product, gone);
}

Expr centred_integer(const Expr& x, NodeContext& ctx, size_t zero_point_input, int64_t axis) {
  const Expr wide = cast(x, DType::kI32);
  if (!ctx.has_input(zero_point_input)) return wide;
  const Expr zero = cast(in(ctx, zero_point_input), DType::kI32);
  if (zero.rank() > 1) return wide - zero;
  if (zero.rank() == 1 && zero.dim(0) == Dim(1)) return wide - reshape(zero, {});
  return wide - along(zero, axis < 0 ? axis + x.rank() : axis, x.rank());
}

namespace {

void matmul_(NodeContext& ctx) { out(ctx, 0, numpy_matmul(in(ctx, 0), in(ctx, 1))); }

void gemm(NodeContext& ctx) {
  const Expr a = in(ctx, 0), b = in(ctx, 1);
  if (a.rank() != 2 || b.rank() != 2) ctx.invalid("operands must have rank 2");
  const double alpha = ctx.float_attr("alpha", 1.0), beta = ctx.float_attr("beta", 1.0);
  Expr y = matmul(a, b, ctx.int_attr("transA", 0) != 0, ctx.int_attr("transB", 0) != 0);
  // Integer products take the factors in float64, so that alpha = 0.5 keeps its half until the end.
  const bool integers = is_integer(a.dtype()) && (alpha != 1.0 || beta != 1.0);
  if (integers) y = cast(y, DType::kF64);
  if (alpha != 1.0) y = y * alpha;
  if (ctx.has_input(2) && beta != 0.0) {
    const Expr c = integers ? cast(in(ctx, 2), DType::kF64) : in(ctx, 2);
    y = y + (beta == 1.0 ? c : c * beta);
  }
  out(ctx, 0, cast(y, a.dtype()));
}

void matmul_integer(NodeContext& ctx) {
  const Expr a = in(ctx, 0), b = in(ctx, 1);
  const int64_t row = a.rank() > 1 ? a.rank() - 2 : 0;
  out(ctx, 0, numpy_matmul(centred_integer(a, ctx, 2, row), centred_integer(b, ctx, 3, -1)));
}

// Operands: a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero.
void qlinear_matmul(NodeContext& ctx) {
  const Expr a = in(ctx, 0), b = in(ctx, 3), zero = in(ctx, 7);
  const int64_t row = a.rank() > 1 ? a.rank() - 2 : 0;
  const auto scale = [&](size_t input, int64_t axis, int64_t rank) {
    const Expr s = cast(in(ctx, input), DType::kF32);
    return s.rank() == 1 && s.dim(0) == Dim(1) ? reshape(s, {}) : s.rank() == 1 ? along(s, axis, rank) : s;
  };
  const Expr product =
      is_integer(a.dtype())
          ? cast(numpy_matmul(centred_integer(a, ctx, 2, row), centred_integer(b, ctx, 5, -1)), DType::kF32)
          : numpy_matmul(cast(a, DType::kF32), cast(b, DType::kF32));
  const int64_t rank = product.rank();
  const Expr factor = scale(1, std::max<int64_t>(rank - 2, 0), rank) *
                      scale(4, std::max<int64_t>(rank - 1, 0), rank) /
                      scale(6, std::max<int64_t>(rank - 2, 0), rank);
  out(ctx, 0, requantized(product * factor, zero));
}

}  // namespace

std::vector<OperatorImport> product_imports() {
  return {
      {"", "MatMul", 1, matmul_},
      {"", "Gemm", 7, gemm},
      {"", "MatMulInteger", 10, matmul_integer},
      {"", "QLinearMatMul", 10, qlinear_matmul},
  };
}

}  // namespace thrice::frontend::onnx
