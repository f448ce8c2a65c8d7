// Contrib operators of the domain com.microsoft that optimized float models hold.
#include "frontend/onnx/ops/activation.h"
#include "frontend/onnx/ops/attention.h"
#include "frontend/onnx/ops/groups.h"
#include "frontend/onnx/ops/normalization.h"
#include "frontend/onnx/ops/product.h"
#include "frontend/onnx/ops/rotary.h"
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
    const Expr inverse = emit(Op::reciprocal, emit(Op::sqrt, reduce(sum * sum, "mean", {last}) + epsilon));
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

// Bias of a padding mask: lengths [B], flags [B, keys] or [B, queries, keys].
Expr padding_bias(NodeContext& ctx, const Expr& mask, const Dim& keys, DType dtype) {
  Expr allowed = mask;
  if (mask.rank() == 1)
    allowed = less(iota_along(ctx, keys, 3, 4), along(cast(mask, DType::kI64), 0, 4));
  else if (mask.rank() == 2)
    allowed = cast(unsqueeze(mask, {1, 2}), DType::kBool);
  else if (mask.rank() == 3)
    allowed = cast(unsqueeze(mask, {1}), DType::kBool);
  else
    ctx.refuse("a padding mask of rank 4");
  const double filter = ctx.float_attr("mask_filter_value", -10000.0);
  return where(allowed, number(ctx, dtype, 0), number(ctx, dtype, filter));
}

Expr causal_bias(NodeContext& ctx, const Expr& q, const Expr& k) {
  const Dim queries = q.dim(2), keys = k.dim(2);
  const Expr shift = reshape(Expr(ctx, ctx.dims({keys - queries})), {});
  return bias_of(less_equal(iota_along(ctx, keys, 3, 4), iota_along(ctx, queries, 2, 4) + shift), q.dtype());
}

// Operands: x [B, S, in], weights [in, 3 sizes], bias, mask, past [2, B, heads, P, size], attention bias.
void packed_attention(NodeContext& ctx) {
  if (ctx.int_attr("do_rotary", 0) != 0) ctx.refuse("do_rotary inside Attention");
  if (ctx.has_input(6)) ctx.refuse("a shared buffer of past keys");
  const Expr x = in(ctx, 0), weights = in(ctx, 1);
  const int64_t heads = ctx.int_attr("num_heads");
  Expr all = numpy_matmul(x, weights);
  if (ctx.has_input(2)) all = all + in(ctx, 2);
  const std::vector<int64_t> given = ctx.ints_attr("qkv_hidden_sizes");
  const Dim third = ir::floor_div(all.dim(2), 3);
  std::vector<Dim> sizes{third, third, third};
  if (given.size() == 3) sizes = {given[0], given[1], given[2]};
  const Expr q = split_heads(slice(all, 2, 0, sizes[0]), heads);
  Expr k = split_heads(slice(all, 2, sizes[0], sizes[0] + sizes[1]), heads);
  Expr v = split_heads(slice(all, 2, sizes[0] + sizes[1], all.dim(2)), heads);
  if (ctx.has_input(4)) {
    const Expr past = in(ctx, 4);
    k = concat({squeeze(slice(past, 0, 0, 1), {0}), k}, 2);
    v = concat({squeeze(slice(past, 0, 1, 2), {0}), v}, 2);
  }
  std::optional<Expr> bias;
  if (ctx.has_input(3)) bias = padding_bias(ctx, in(ctx, 3), k.dim(2), q.dtype());
  if (ctx.has_input(5)) bias = added(bias, in(ctx, 5));
  if (ctx.int_attr("unidirectional", 0) != 0) bias = added(bias, causal_bias(ctx, q, k));
  AttentionOptions options;
  options.scale = ctx.float_attr("scale", 0.0);
  out(ctx, 0, merge_heads(attention(q, k, v, bias, options).y));
  if (ctx.wants_output(1)) out(ctx, 1, concat({unsqueeze(k, {0}), unsqueeze(v, {0})}, 0));
}

// Operands: query [B, S, heads * size], key, value, bias, padding mask, attention bias, past key, past value.
void multi_head_attention(NodeContext& ctx) {
  const Expr query = in(ctx, 0);
  const int64_t heads = ctx.int_attr("num_heads");
  if (query.rank() != 3 || !ctx.has_input(1) || !ctx.has_input(2))
    ctx.refuse("packed queries, keys and values");
  Expr key = in(ctx, 1), value = in(ctx, 2), q = query;
  if (ctx.has_input(3)) {
    const Expr bias = in(ctx, 3);
    const Dim size = query.dim(2);
    q = q + slice(bias, 0, 0, size);
    if (key.rank() == 3) key = key + slice(bias, 0, size, size + size);
    if (value.rank() == 3) value = value + slice(bias, 0, size + size, bias.dim(0));
  }
  q = split_heads(q, heads);
  // Keys and values of a cross attention may come with their heads already apart.
  Expr k = key.rank() == 4 ? key : split_heads(key, heads),
       v = value.rank() == 4 ? value : split_heads(value, heads);
  if (ctx.has_input(6)) {
    k = concat({in(ctx, 6), k}, 2);
    v = concat({in(ctx, 7), v}, 2);
  }
  std::optional<Expr> bias;
  if (ctx.has_input(4)) bias = padding_bias(ctx, in(ctx, 4), k.dim(2), q.dtype());
  if (ctx.has_input(5)) bias = added(bias, in(ctx, 5));
  if (ctx.int_attr("unidirectional", 0) != 0) bias = added(bias, causal_bias(ctx, q, k));
  AttentionOptions options;
  options.scale = ctx.float_attr("scale", 0.0);
  out(ctx, 0, merge_heads(attention(q, k, v, bias, options).y));
  if (ctx.wants_output(1)) out(ctx, 1, emit(Op::identity, k));
  if (ctx.wants_output(2)) out(ctx, 2, emit(Op::identity, v));
}

// Operands: x, position ids ([B, S], or one offset), cosine and sine tables.
void rotary(NodeContext& ctx) {
  const Expr x = in(ctx, 0), positions = in(ctx, 1);
  if (ctx.int_attr("is_packed_batching", 0) != 0) ctx.refuse("packed batches");
  Expr index = positions;
  if (positions.rank() == 1) {
    const Dim length = x.rank() == 4 ? x.dim(2) : x.dim(1);
    index = unsqueeze(iota(ctx, length) + cast(positions, DType::kI64), {0});
  }
  const Expr cosine = gather(in(ctx, 2), index, 0), sine = gather(in(ctx, 3), index, 0);
  int64_t heads = ctx.int_attr("num_heads", 0);
  const int64_t rotated = ctx.int_attr("rotary_embedding_dim", 0);
  if (heads == 0 && x.rank() == 3) {
    if (!x.dim(2).is_const() || !cosine.dim(-1).is_const()) ctx.refuse("the number of heads is not known");
    heads = x.dim(2).value() / (2 * cosine.dim(-1).value());
  }
  out(ctx, 0, rotary_embedding(x, cosine, sine, heads, rotated, ctx.int_attr("interleaved", 0) != 0));
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
      {kDomain, "Attention", 1, packed_attention},
      {kDomain, "MultiHeadAttention", 1, multi_head_attention},
      {kDomain, "RotaryEmbedding", 1, rotary},
  };
}

}  // namespace thrice::frontend::onnx
