// Contrib operators of the domain com.microsoft that optimized float models hold.
#include "frontend/onnx/ops/activation.h"
#include "frontend/onnx/ops/groups.h"
#include "frontend/onnx/ops/normalization.h"
#include "frontend/onnx/ops/product.h"
#include "frontend/onnx/ops/window.h"

namespace thrice::frontend::onnx {
namespace {

constexpr const char* kDomain = "com.microsoft";

void gelu_(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  out(ctx, 0, cast(gelu(widened(x)), x.dtype()));
}

void bias_gelu(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  out(ctx, 0, cast(gelu(widened(x) + widened(in(ctx, 1))), x.dtype()));
}

void fast_gelu(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  Expr wide = widened(x);
  if (ctx.has_input(1)) wide = wide + widened(in(ctx, 1));
  out(ctx, 0, cast(gelu_tanh(wide), x.dtype()));
}

void quick_gelu(NodeContext& ctx) { out(ctx, 0, swish(in(ctx, 0), ctx.float_attr("alpha", 1.702))); }

void fused_matmul(NodeContext& ctx) {
  if (ctx.int_attr("transBatchA", 0) != 0 || ctx.int_attr("transBatchB", 0) != 0)
    ctx.refuse("transposed batch axes; export without layout optimizations");
  const Expr a = in(ctx, 0), b = in(ctx, 1);
  const bool plain = a.rank() >= 2 && b.rank() >= 2;
  const double alpha = ctx.float_attr("alpha", 1.0);
  const Expr y = plain ? matmul(a, b, ctx.int_attr("transA", 0) != 0, ctx.int_attr("transB", 0) != 0)
                       : numpy_matmul(a, b);
  out(ctx, 0, alpha == 1.0 ? y : y * alpha);
}

Expr activated(NodeContext& ctx, const Expr& x) {
  const std::string name = ctx.string_attr("activation", "");
  std::vector<double> p =
      ctx.has_attr("activation_params") ? ctx.floats_attr("activation_params") : std::vector<double>{};
  const auto param = [&](size_t i, double otherwise) { return i < p.size() ? p[i] : otherwise; };
  if (name.empty()) return x;
  if (name == "Relu") return emit(Op::relu, x);
  if (name == "Tanh") return emit(Op::tanh, x);
  if (name == "Sigmoid") return emit(Op::sigmoid, x);
  if (name == "LeakyRelu") return leaky_relu(x, param(0, ctx.float_attr("leaky_relu_alpha", 0.01)));
  if (name == "Clip") return clamp(x, param(0, -3.4028234663852886e38), param(1, 3.4028234663852886e38));
  if (name == "HardSigmoid") return hard_sigmoid(x, param(0, 0.2), param(1, 0.5));
  ctx.refuse("activation " + name);
}

void fused_gemm(NodeContext& ctx) {
  const Expr a = in(ctx, 0), b = in(ctx, 1);
  const double alpha = ctx.float_attr("alpha", 1.0), beta = ctx.float_attr("beta", 1.0);
  Expr y = matmul(a, b, ctx.int_attr("transA", 0) != 0, ctx.int_attr("transB", 0) != 0);
  if (alpha != 1.0) y = y * alpha;
  if (ctx.has_input(2) && beta != 0.0) y = y + (beta == 1.0 ? in(ctx, 2) : in(ctx, 2) * beta);
  out(ctx, 0, activated(ctx, y));
}

void fused_conv(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  Attributes attrs = window_attributes(ctx, x.rank() - 2);
  attrs["group"] = ctx.int_attr("group", 1);
  std::vector<ValueId> operands{x.id(), ctx.input(1)};
  if (ctx.has_input(2)) operands.push_back(ctx.input(2));
  Expr y(ctx, ctx.emit(Op::conv, operands, attrs));
  if (ctx.has_input(3)) y = y + in(ctx, 3);
  out(ctx, 0, activated(ctx, y));
}

// Operands: x, skip, gamma, [beta,] bias; the sum itself is the last result.
void skip_norm(NodeContext& ctx, bool centred) {
  const Expr x = in(ctx, 0), gamma = widened(in(ctx, 2));
  Expr sum = widened(x) + widened(in(ctx, 1));
  const size_t bias = centred ? 4 : 3;
  if (ctx.has_input(bias)) sum = sum + widened(in(ctx, bias));
  const double epsilon = ctx.float_attr("epsilon", 1e-12);
  const int64_t last = sum.rank() - 1;
  if (centred) {
    const Normalized n = layer_normalized(sum, last, epsilon);
    Expr y = n.value * gamma;
    if (ctx.has_input(3)) y = y + widened(in(ctx, 3));
    out(ctx, 0, cast(y, x.dtype()));
    out(ctx, 1, n.mean);
    out(ctx, 2, n.inverse_deviation);
  } else {
    const Expr inverse = inverse_rms(sum, {last}, epsilon);
    out(ctx, 0, cast(sum * inverse * gamma, x.dtype()));
    out(ctx, 2, inverse);
  }
  out(ctx, 3, cast(sum, x.dtype()));
}
void skip_layer_norm(NodeContext& ctx) { skip_norm(ctx, true); }
void skip_rms_norm(NodeContext& ctx) { skip_norm(ctx, false); }

// Operands: ids, segments, word, position and segment tables, gamma, beta, mask, position ids.
void embed_layer_norm(NodeContext& ctx) {
  const Expr ids = in(ctx, 0);
  Expr sum = gather(in(ctx, 2), ids, 0);
  const DType dtype = sum.dtype();
  sum = widened(sum);
  const Expr position =
      ctx.has_input(8) ? gather(in(ctx, 3), in(ctx, 8), 0) : slice(in(ctx, 3), 0, 0, ids.dim(1));
  sum = sum + widened(position);
  if (ctx.has_input(1) && ctx.has_input(4)) sum = sum + widened(gather(in(ctx, 4), in(ctx, 1), 0));
  const Normalized n = layer_normalized(sum, sum.rank() - 1, ctx.float_attr("epsilon", 1e-12));
  out(ctx, 0, cast(n.value * widened(in(ctx, 5)) + widened(in(ctx, 6)), dtype));
  if (ctx.wants_output(1)) {
    if (ctx.has_input(7))
      out(ctx, 1, reduce(in(ctx, 7), "sum", {1}, false));
    else
      out(ctx, 1, filled(ctx, DType::kI32, 0, {ids.dim(0)}));
  }
  out(ctx, 2, cast(sum, dtype));
}

}  // namespace

std::vector<OperatorImport> contrib_imports() {
  return {
      {kDomain, "Gelu", 1, gelu_},
      {kDomain, "BiasGelu", 1, bias_gelu},
      {kDomain, "FastGelu", 1, fast_gelu},
      {kDomain, "QuickGelu", 1, quick_gelu},
      {kDomain, "FusedMatMul", 1, fused_matmul},
      {kDomain, "TransposeMatMul", 1, fused_matmul},
      {kDomain, "FusedGemm", 1, fused_gemm},
      {kDomain, "FusedConv", 1, fused_conv},
      {kDomain, "SkipLayerNormalization", 1, skip_layer_norm},
      {kDomain, "SkipSimplifiedLayerNormalization", 1, skip_rms_norm},
      {kDomain, "EmbedLayerNormalization", 1, embed_layer_norm},
  };
}

}  // namespace thrice::frontend::onnx
