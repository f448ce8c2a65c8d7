// Optimizer steps of ai.onnx.preview.training: operands R, T, then X1..Xn, G1..Gn and n of each state.
#include "frontend/onnx/ops/expr.h"
#include "frontend/onnx/ops/groups.h"

namespace thrice::frontend::onnx {
namespace {

size_t tensors(NodeContext& ctx, size_t groups) {
  if (ctx.num_inputs() < 2 + groups || (ctx.num_inputs() - 2) % groups != 0)
    ctx.invalid("the operands are not " + std::to_string(groups) + " groups of tensors");
  return (ctx.num_inputs() - 2) / groups;
}

Expr regularized(NodeContext& ctx, const Expr& x, const Expr& gradient) {
  return ctx.float_attr("norm_coefficient", 0.0) * x + gradient;
}

void adagrad(NodeContext& ctx) {
  const size_t n = tensors(ctx, 3);
  const Expr rate = reshape(in(ctx, 0), {}), step = cast(reshape(in(ctx, 1), {}), rate.dtype());
  const Expr r = rate / (1.0 + step * ctx.float_attr("decay_factor", 0.0));
  for (size_t i = 0; i < n; ++i) {
    const Expr x = in(ctx, 2 + i), g = regularized(ctx, x, in(ctx, 2 + n + i));
    const Expr h = in(ctx, 2 + 2 * n + i) + g * g;
    out(ctx, i, x - cast(r, x.dtype()) * g / (emit(Op::sqrt, h) + ctx.float_attr("epsilon", 1e-6)));
    out(ctx, n + i, h);
  }
}

void adam(NodeContext& ctx) {
  const size_t n = tensors(ctx, 4);
  const double alpha = ctx.float_attr("alpha", 0.9), beta = ctx.float_attr("beta", 0.999);
  const Expr rate = reshape(in(ctx, 0), {}), step = cast(reshape(in(ctx, 1), {}), rate.dtype());
  const auto power_of = [&](double base) { return emit(Op::pow, number(ctx, rate.dtype(), base), step); };
  const Expr corrected = rate * emit(Op::sqrt, 1.0 - power_of(beta)) / (1.0 - power_of(alpha));
  const Expr r = where(greater(step, 0.0), corrected, rate);
  for (size_t i = 0; i < n; ++i) {
    const Expr x = in(ctx, 2 + i), g = regularized(ctx, x, in(ctx, 2 + n + i));
    const Expr v = alpha * in(ctx, 2 + 2 * n + i) + (1 - alpha) * g;
    const Expr h = beta * in(ctx, 2 + 3 * n + i) + (1 - beta) * (g * g);
    const Expr moved = x - cast(r, x.dtype()) * v / (emit(Op::sqrt, h) + ctx.float_attr("epsilon", 1e-6));
    out(ctx, i, (1 - ctx.float_attr("norm_coefficient_post", 0.0)) * moved);
    out(ctx, n + i, v);
    out(ctx, 2 * n + i, h);
  }
}

void momentum(NodeContext& ctx) {
  const size_t n = tensors(ctx, 3);
  const double alpha = ctx.float_attr("alpha", 0.0), beta = ctx.float_attr("beta", 0.0);
  const std::string mode = ctx.string_attr("mode", "");
  if (mode != "standard" && mode != "nesterov") ctx.invalid("mode must be standard or nesterov");
  const Expr rate = reshape(in(ctx, 0), {}), step = reshape(in(ctx, 1), {});
  const Expr gain = where(greater(step, 0.0), number(ctx, rate.dtype(), beta), 1.0);
  for (size_t i = 0; i < n; ++i) {
    const Expr x = in(ctx, 2 + i), g = regularized(ctx, x, in(ctx, 2 + n + i));
    const Expr v = alpha * in(ctx, 2 + 2 * n + i) + cast(gain, x.dtype()) * g;
    out(ctx, i, x - cast(rate, x.dtype()) * (mode == "nesterov" ? g + alpha * v : v));
    out(ctx, n + i, v);
  }
}

}  // namespace

std::vector<OperatorImport> optimizer_imports() {
  return {
      {"ai.onnx.preview.training", "Adagrad", 1, adagrad},
      {"ai.onnx.preview.training", "Adam", 1, adam},
      {"ai.onnx.preview.training", "Momentum", 1, momentum},
  };
}

}  // namespace thrice::frontend::onnx
