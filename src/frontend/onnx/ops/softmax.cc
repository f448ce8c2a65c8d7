// Softmax, LogSoftmax, Hardmax.
#include "frontend/onnx/ops/softmax.h"

#include "frontend/onnx/ops/groups.h"

namespace thrice::frontend::onnx {

Expr softmax(const Expr& x, const std::vector<int64_t>& axes) {
  const Expr e = emit(Op::exp, x - reduce(x, "max", axes));
  return e / reduce(e, "sum", axes);
}

Expr log_softmax(const Expr& x, const std::vector<int64_t>& axes) {
  const Expr centred = x - reduce(x, "max", axes);
  return centred - emit(Op::log, reduce(emit(Op::exp, centred), "sum", axes));
}

namespace {

// Before opset 13 the operand is a matrix [axes before `axis`, axes from `axis` on], axis = 1 by default.
std::vector<int64_t> softmax_axes(NodeContext& ctx, const Expr& x) {
  if (x.rank() == 0) return {};
  if (ctx.opset() >= 13) return {ctx.axis(x.id(), ctx.int_attr("axis", -1))};
  const int64_t axis = ctx.int_attr("axis", 1);
  return axes_from(axis == x.rank() ? axis : ctx.axis(x.id(), axis), x.rank());
}

void softmax_(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  out(ctx, 0, cast(softmax(widened(x), softmax_axes(ctx, x)), x.dtype()));
}

void log_softmax_(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  out(ctx, 0, cast(log_softmax(widened(x), softmax_axes(ctx, x)), x.dtype()));
}

// 1 at the first largest element, 0 elsewhere.
void hardmax(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  const std::vector<int64_t> axes = softmax_axes(ctx, x);
  Expr matrix = x;
  if (axes.size() > 1) {
    const ir::Shape& s = x.shape();
    matrix = reshape(x, {ir::num_elements(ir::Shape(s.begin(), s.begin() + axes[0])),
                         ir::num_elements(ir::Shape(s.begin() + axes[0], s.end()))});
  }
  const int64_t axis = axes.empty() ? 0 : axes.size() > 1 ? 1 : axes[0];
  const Expr best =
      emit(Op::arg_reduce, matrix, {{"kind", std::string("max")}, {"axis", axis}, {"keepdims", int64_t{1}}});
  const Expr hit = equal(iota_along(ctx, matrix.dim(axis), axis, matrix.rank()), best);
  out(ctx, 0, reshape(cast(hit, x.dtype()), x.shape()));
}

}  // namespace

std::vector<OperatorImport> softmax_imports() {
  return {
      {"", "Softmax", 1, softmax_},
      {"", "LogSoftmax", 1, log_softmax_},
      {"", "Hardmax", 1, hardmax},
  };
}

}  // namespace thrice::frontend::onnx
