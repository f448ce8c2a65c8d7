// Activations as chains of element-wise operators, each stable in float32 and exact in float64.
#include "frontend/onnx/ops/activation.h"

#include <cmath>

#include "frontend/onnx/ops/groups.h"

namespace thrice::frontend::onnx {

// expm1 and log1p are only given what cannot overflow, so that no branch turns into Inf * 0.
Expr softplus(const Expr& x) { return emit(Op::relu, x) + emit(Op::log1p, emit(Op::exp, -emit(Op::abs, x))); }
Expr softsign(const Expr& x) { return x / (1.0 + emit(Op::abs, x)); }
Expr elu(const Expr& x, double alpha) {
  const Expr low = emit(Op::expm1, minimum(x, 0.0));
  return emit(Op::relu, x) + (alpha == 1.0 ? low : alpha * low);
}
Expr leaky_relu(const Expr& x, double alpha) { return where(less(x, 0.0), alpha * x, x); }
Expr hard_sigmoid(const Expr& x, double alpha, double beta) { return clamp(alpha * x + beta, 0.0, 1.0); }
Expr gelu(const Expr& x) { return 0.5 * x * (1.0 + emit(Op::erf, x * std::sqrt(0.5))); }
Expr gelu_tanh(const Expr& x) {
  const double scale = std::sqrt(2.0 / std::acos(-1.0));
  return 0.5 * x * (1.0 + emit(Op::tanh, scale * (x + 0.044715 * x * x * x)));
}
Expr swish(const Expr& x, double alpha) { return x * emit(Op::sigmoid, alpha == 1.0 ? x : alpha * x); }

namespace {

void softplus_(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  out(ctx, 0, cast(softplus(widened(x)), x.dtype()));
}
void softsign_(NodeContext& ctx) { out(ctx, 0, softsign(in(ctx, 0))); }
void elu_(NodeContext& ctx) { out(ctx, 0, elu(in(ctx, 0), ctx.float_attr("alpha", 1.0))); }
void leaky_relu_(NodeContext& ctx) { out(ctx, 0, leaky_relu(in(ctx, 0), ctx.float_attr("alpha", 0.01))); }

void selu(NodeContext& ctx) {
  const double alpha = ctx.float_attr("alpha", 1.67326319217681884765625);
  const double gamma = ctx.float_attr("gamma", 1.05070102214813232421875);
  out(ctx, 0, gamma * elu(in(ctx, 0), alpha));
}

void celu(NodeContext& ctx) {
  const double alpha = ctx.float_attr("alpha", 1.0);
  const Expr x = in(ctx, 0);
  if (alpha > 0)
    out(ctx, 0, emit(Op::relu, x) + alpha * emit(Op::expm1, minimum(x, 0.0) / alpha));
  else
    out(ctx, 0, emit(Op::relu, x) + minimum(alpha * emit(Op::expm1, x / alpha), 0.0));
}

void prelu(NodeContext& ctx) {
  const Expr x = in(ctx, 0), slope = in(ctx, 1);
  out(ctx, 0, where(less(x, 0.0), slope * x, x));
}

void thresholded_relu(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  out(ctx, 0, where(greater(x, ctx.float_attr("alpha", 1.0)), x, 0.0));
}

void hard_sigmoid_(NodeContext& ctx) {
  out(ctx, 0, hard_sigmoid(in(ctx, 0), ctx.float_attr("alpha", 0.2), ctx.float_attr("beta", 0.5)));
}

void hard_swish(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  out(ctx, 0, x * hard_sigmoid(x, 1.0 / 6.0, 0.5));
}

void mish(NodeContext& ctx) {
  const Expr x = in(ctx, 0), wide = widened(x);
  out(ctx, 0, cast(wide * emit(Op::tanh, softplus(wide)), x.dtype()));
}

void gelu_(NodeContext& ctx) {
  const std::string approximate = ctx.string_attr("approximate", "none");
  const Expr x = in(ctx, 0), wide = widened(x);
  if (approximate == "tanh")
    out(ctx, 0, cast(gelu_tanh(wide), x.dtype()));
  else if (approximate == "none")
    out(ctx, 0, cast(gelu(wide), x.dtype()));
  else
    ctx.invalid("approximate must be none or tanh");
}

void swish_(NodeContext& ctx) { out(ctx, 0, swish(in(ctx, 0), ctx.float_attr("alpha", 1.0))); }

void swiglu(NodeContext& ctx) {
  const Expr gate = in(ctx, 0), value = in(ctx, 1);
  out(ctx, 0, swish(gate, ctx.float_attr("alpha", 1.0)) * value);
}

// Integers are computed in float64, where lambd and bias keep their fractions, and truncated at the end.
void shrink(NodeContext& ctx) {
  const double lambd = ctx.float_attr("lambd", 0.5), bias = ctx.float_attr("bias", 0.0);
  const Expr x = in(ctx, 0), wide = is_float(x.dtype()) ? x : cast(x, DType::kF64);
  const Expr low = less(wide, -lambd), high = greater(wide, lambd);
  out(ctx, 0, cast(where(low, wide + bias, where(high, wide - bias, 0.0)), x.dtype()));
}

}  // namespace

std::vector<OperatorImport> activation_imports() {
  return {
      {"", "Softplus", 1, softplus_},
      {"", "Softsign", 1, softsign_},
      {"", "Elu", 6, elu_},
      {"", "LeakyRelu", 6, leaky_relu_},
      {"", "Selu", 6, selu},
      {"", "Celu", 12, celu},
      {"", "PRelu", 7, prelu},
      {"", "ThresholdedRelu", 10, thresholded_relu},
      {"", "HardSigmoid", 6, hard_sigmoid_},
      {"", "HardSwish", 14, hard_swish},
      {"", "Mish", 18, mish},
      {"", "Gelu", 20, gelu_},
      {"", "Swish", 24, swish_},
      {"", "SwiGLU", 28, swiglu},
      {"", "Shrink", 9, shrink},
  };
}

}  // namespace thrice::frontend::onnx
