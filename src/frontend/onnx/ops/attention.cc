// Attention and rotary position embedding.
#include "frontend/onnx/ops/attention.h"

#include <cmath>
#include <limits>

#include "frontend/onnx/ops/groups.h"
#include "frontend/onnx/ops/rotary.h"
#include "frontend/onnx/ops/softmax.h"
#include "frontend/onnx/tensor_decode.h"

namespace thrice::frontend::onnx {
namespace {
constexpr double kInf = std::numeric_limits<double>::infinity();
}

Expr split_heads(const Expr& x, int64_t heads) {
  if (x.rank() != 3 || heads < 1) x.ctx().invalid("needs rank 3 and the number of heads");
  return transpose(reshape(x, {x.dim(0), x.dim(1), heads, ir::floor_div(x.dim(2), heads)}), {0, 2, 1, 3});
}

Expr merge_heads(const Expr& x) {
  return reshape(transpose(x, {0, 2, 1, 3}), {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}

Expr bias_of(const Expr& allowed, DType dtype) {
  NodeContext& ctx = allowed.ctx();
  return where(allowed, number(ctx, dtype, 0), number(ctx, dtype, -kInf));
}

Expr added(const std::optional<Expr>& bias, const Expr& more) { return bias ? *bias + more : more; }

AttentionResult attention(const Expr& q, const Expr& k, const Expr& v, const std::optional<Expr>& bias,
                          const AttentionOptions& options) {
  NodeContext& ctx = q.ctx();
  double scale = options.scale;
  if (scale == 0) {
    if (!q.dim(3).is_const()) ctx.refuse("the head size is not known");
    scale = 1.0 / std::sqrt(static_cast<double>(q.dim(3).value()));
  }
  const Dim heads = q.dim(1), kv_heads = k.dim(1);
  const bool grouped = !(heads == kv_heads);
  const Dim share = ir::floor_div(heads, kv_heads);
  const Expr scaled = q * scale;
  Expr raw = scaled;
  if (grouped) {
    // Query heads that share a key head stand side by side: [B, kv heads, share, queries, size].
    const Expr groups = reshape(scaled, {q.dim(0), kv_heads, share, q.dim(2), q.dim(3)});
    raw = reshape(matmul(groups, unsqueeze(k, {2}), false, true), {q.dim(0), heads, q.dim(2), k.dim(2)});
  } else {
    raw = matmul(scaled, k, false, true);
  }
  const Expr capped = options.softcap > 0 ? options.softcap * emit(Op::tanh, raw / options.softcap) : raw;
  const Expr biased = bias ? capped + *bias : capped;
  const Expr wide = options.softmax_dtype == DType::kF64 ? cast(biased, DType::kF64) : widened(biased);
  Expr probability = softmax(wide, {3});
  if (bias && options.guarded) {
    const Expr highest = reduce(*bias, "max", {bias->rank() - 1});
    const Expr masked = equal(highest, -kInf);
    probability = where(masked, 0.0, probability);
  }
  probability = cast(probability, q.dtype());
  Expr y = probability;
  if (grouped) {
    const Expr groups = reshape(probability, {q.dim(0), kv_heads, share, q.dim(2), k.dim(2)});
    y = reshape(matmul(groups, unsqueeze(v, {2})), {q.dim(0), heads, q.dim(2), v.dim(3)});
  } else {
    y = matmul(probability, v);
  }
  return {y, raw, capped, biased, probability};
}

namespace {

// Mask operand as a bias with as many key columns as there are keys.
Expr mask_bias(NodeContext& ctx, const Dim& keys, DType dtype) {
  Expr mask = in(ctx, 3);
  const bool flags = mask.dtype() == DType::kBool;
  Expr bias = flags ? bias_of(mask, dtype) : cast(mask, dtype);
  const Dim columns = bias.dim(-1);
  if (columns.is_const() && keys.is_const() && columns.value() < keys.value())
    bias = Expr(
        ctx, ctx.emit(Op::pad, {bias.id(), ctx.dims({0, keys - columns}), ctx.scalar(dtype, -kInf)},
                      {{"mode", std::string("constant")}, {"axes", std::vector<int64_t>{bias.rank() - 1}}}));
  return bias;
}

// Operands: Q, K, V, mask, past key, past value, number of valid keys a batch entry.
void attention_(NodeContext& ctx) {
  Expr q = in(ctx, 0), k = in(ctx, 1), v = in(ctx, 2);
  const bool packed = q.rank() == 3;
  if (packed) {
    q = split_heads(q, ctx.int_attr("q_num_heads"));
    k = split_heads(k, ctx.int_attr("kv_num_heads"));
    v = split_heads(v, ctx.int_attr("kv_num_heads"));
  }
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4) ctx.invalid("Q, K and V must have rank 3 or 4");
  Dim past = 0;
  if (ctx.has_input(4)) {
    past = in(ctx, 4).dim(2);
    k = concat({in(ctx, 4), k}, 2);
    v = concat({in(ctx, 5), v}, 2);
  }
  const Dim queries = q.dim(2), keys = k.dim(2);
  const DType dtype = q.dtype();
  AttentionOptions options;
  options.scale = ctx.float_attr("scale", 0.0);
  options.softcap = ctx.float_attr("softcap", 0.0);
  if (ctx.has_attr("softmax_precision"))
    options.softmax_dtype =
        dtype_of_onnx(static_cast<int32_t>(ctx.int_attr("softmax_precision")), "softmax_precision");
  std::optional<Expr> bias;
  if (ctx.has_input(3)) {
    bias = mask_bias(ctx, keys, dtype);
    options.guarded = true;
  }
  // Position of query i among the keys: i + offset, of each batch entry where the cache is outside.
  const int64_t left = ctx.int_attr("left_window_size", -1), right = ctx.int_attr("right_window_size", -1);
  const bool causal = ctx.int_attr("is_causal", 0) != 0, outside = ctx.has_input(6);
  if (causal || left >= 0 || right >= 0) {
    const Expr columns = iota_along(ctx, keys, 3, 4);
    Expr position = iota_along(ctx, queries, 2, 4);
    if (outside)
      position = position + (along(cast(in(ctx, 6), DType::kI64), 0, 4) - extent(ctx, queries));
    else if (!(past == Dim(0)))
      position = position + extent(ctx, past);
    if (causal) bias = added(bias, bias_of(less_equal(columns, position), dtype));
    if (left >= 0)
      bias = added(bias, bias_of(less_equal(position - static_cast<double>(left), columns), dtype));
    if (right >= 0)
      bias = added(bias, bias_of(less_equal(columns, position + static_cast<double>(right)), dtype));
    // Only a causal mask that starts at the first key leaves a key for every query.
    options.guarded = options.guarded || outside || left >= 0 || right >= 0;
  }
  if (outside) {
    const Expr valid = less(iota_along(ctx, keys, 3, 4), along(cast(in(ctx, 6), DType::kI64), 0, 4));
    bias = added(bias, bias_of(valid, dtype));
    options.guarded = true;
  }
  const AttentionResult r = attention(q, k, v, bias, options);
  out(ctx, 0, packed ? merge_heads(r.y) : r.y);
  out(ctx, 1, ctx.has_input(4) ? k : emit(Op::identity, k));
  out(ctx, 2, ctx.has_input(4) ? v : emit(Op::identity, v));
  const int64_t stage = ctx.int_attr("qk_matmul_output_mode", 0);
  if (stage < 0 || stage > 3) ctx.invalid("qk_matmul_output_mode must be 0 to 3");
  const Expr* stages[] = {&r.raw, &r.capped, &r.biased, &r.probability};
  if (ctx.wants_output(3)) out(ctx, 3, emit(Op::identity, *stages[stage]));
}

void rotary(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  Expr cosine = in(ctx, 1), sine = in(ctx, 2);
  if (ctx.has_input(3)) {
    cosine = gather(cosine, in(ctx, 3), 0);
    sine = gather(sine, in(ctx, 3), 0);
  }
  out(ctx, 0,
      rotary_embedding(x, cosine, sine, ctx.int_attr("num_heads", 0), ctx.int_attr("rotary_embedding_dim", 0),
                       ctx.int_attr("interleaved", 0) != 0));
}

}  // namespace

Expr rotary_embedding(const Expr& x, const Expr& cosine, const Expr& sine, int64_t heads, int64_t rotated,
                      bool interleaved) {
  NodeContext& ctx = x.ctx();
  const bool packed = x.rank() == 3;
  if (packed && heads < 1) ctx.invalid("num_heads is needed for a rank 3 operand");
  // [B, length, heads, size] or [B, heads, length, size]: the caches broadcast over the heads.
  const Expr full = packed ? reshape(x, {x.dim(0), x.dim(1), heads, ir::floor_div(x.dim(2), heads)}) : x;
  const Expr c = unsqueeze(cosine, {packed ? 2 : 1}), s = unsqueeze(sine, {packed ? 2 : 1});
  const Dim size = full.dim(3), turned = rotated > 0 ? Dim(rotated) : size, half = ir::floor_div(turned, 2);
  const Expr head = slice(full, 3, 0, turned);
  Expr y = head;
  if (interleaved) {
    ir::Shape pairs = full.shape();
    pairs[3] = half;
    pairs.push_back(2);
    const Expr split = reshape(head, pairs);
    const Expr a = squeeze(slice(split, 4, 0, 1), {4}), b = squeeze(slice(split, 4, 1, 2), {4});
    y = reshape(concat({unsqueeze(c * a - s * b, {4}), unsqueeze(s * a + c * b, {4})}, 4), head.shape());
  } else {
    const Expr a = slice(head, 3, 0, half), b = slice(head, 3, half, turned);
    y = concat({c * a - s * b, s * a + c * b}, 3);
  }
  if (!(turned == size)) y = concat({y, slice(full, 3, turned, size)}, 3);
  return reshape(y, x.shape());
}

std::vector<OperatorImport> attention_imports() {
  return {
      {"", "Attention", 23, attention_},
      {"", "RotaryEmbedding", 23, rotary},
  };
}

}  // namespace thrice::frontend::onnx
