// Attention of the domain com.microsoft, with past keys and values.
#include "frontend/onnx/ops/attention.h"
#include "frontend/onnx/ops/groups.h"
#include "frontend/onnx/ops/normalization.h"
#include "frontend/onnx/ops/product.h"
#include "frontend/onnx/ops/rotary.h"

namespace thrice::frontend::onnx {
namespace {

constexpr const char* kDomain = "com.microsoft";

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
  const Expr last = iota_along(ctx, queries, 2, 4) + extent(ctx, keys - queries);
  return bias_of(less_equal(iota_along(ctx, keys, 3, 4), last), q.dtype());
}

// What Attention and MultiHeadAttention have in common once heads are apart: a padding mask at `mask`, an
// attention bias as operand 5.
Expr masked_attention(NodeContext& ctx, const Expr& q, const Expr& k, const Expr& v, size_t mask) {
  std::optional<Expr> bias;
  if (ctx.has_input(mask)) bias = padding_bias(ctx, in(ctx, mask), k.dim(2), q.dtype());
  if (ctx.has_input(5)) bias = added(bias, in(ctx, 5));
  if (ctx.int_attr("unidirectional", 0) != 0) bias = added(bias, causal_bias(ctx, q, k));
  AttentionOptions options;
  options.scale = ctx.float_attr("scale", 0.0);
  return merge_heads(attention(q, k, v, bias, options).y);
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
  out(ctx, 0, masked_attention(ctx, q, k, v, 3));
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
  out(ctx, 0, masked_attention(ctx, q, k, v, 4));
  if (ctx.wants_output(1)) out(ctx, 1, emit(Op::identity, k));
  if (ctx.wants_output(2)) out(ctx, 2, emit(Op::identity, v));
}

// What of GroupQueryAttention is not taken apart.
void refuse_group_query_extras(NodeContext& ctx) {
  const auto is_on = [&](const char* name) { return ctx.int_attr(name, 0) != 0; };
  if (is_on("smooth_softmax") || ctx.has_input(11)) ctx.refuse("smooth softmax and head sinks");
  if (ctx.has_input(12) || ctx.has_input(13) || is_on("kv_cache_bit_width"))
    ctx.refuse("quantized keys and values");
  if (ctx.has_input(16)) ctx.refuse("padded query chunks (query_seqlens)");
  if (is_on("sliding_window_cache")) ctx.refuse("a cache that is as long as the window");
  if (ctx.wants_output(3)) ctx.refuse("scores as a result");
}

Expr rms_normalized(const Expr& x, const Expr& gamma, double epsilon) {
  const Expr wide = widened(x);
  return cast(wide * inverse_rms(wide, {x.rank() - 1}, epsilon) * widened(gamma), x.dtype());
}

// Rows of past ([B, heads, P, size]) and new keys or values one behind the other: of each sequence `before`
// [B] past ones, then the new ones. What is behind those is what the past has there, as far as it goes.
Expr appended(const std::optional<Expr>& past, const Expr& more, const Expr& before, const Dim& keys) {
  NodeContext& ctx = more.ctx();
  const Dim old = past ? past->dim(2) : Dim(0), added_rows = more.dim(2);
  const Expr rows = past ? concat({*past, more}, 2) : more;
  if (!past && keys == added_rows) return more;
  const Expr row = iota_along(ctx, keys, 1, 2), first = along(before, 0, 2);
  const Expr last = extent(ctx, old + added_rows - Dim(1));
  const Expr fresh = row - first + extent(ctx, old);
  const Expr index = where(less(row, first), row,
                           where(less(row, first + extent(ctx, added_rows)), fresh, minimum(row, last)));
  const Expr turned = transpose(rows, {0, 2, 1, 3});
  const Expr taken(
      ctx, ctx.emit(Op::gather_nd, {turned.id(), unsqueeze(index, {2}).id()}, {{"batch_dims", int64_t{1}}}));
  return transpose(taken, {0, 2, 1, 3});
}

// Operands: query [B, S, heads * size], or queries, keys and values side by side; key, value [B, S, kv heads
// * size]; past key, past value [B, kv heads, P, size]; keys of each sequence, the new ones included, less
// one [B]; the most of them; cosine and sine tables; position ids [B, S]; attention bias; ..., weights of the
// norms of queries and keys. The caches returned are as long as the longer of past and most.
void group_query_attention(NodeContext& ctx) {
  refuse_group_query_extras(ctx);
  const int64_t heads = ctx.int_attr("num_heads"), kv_heads = ctx.int_attr("kv_num_heads");
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0)
    ctx.invalid("num_heads must be a multiple of kv_num_heads");
  const Expr query = in(ctx, 0);
  if (query.rank() != 3) ctx.invalid("query must have rank 3");
  Expr q = query, k = query, v = query;
  if (ctx.has_input(1)) {
    k = split_heads(in(ctx, 1), kv_heads);
    v = split_heads(in(ctx, 2), kv_heads);
    q = split_heads(query, heads);
  } else {
    const Dim size = ir::floor_div(query.dim(2), heads + 2 * kv_heads);
    const Dim queries = size * heads, more = size * kv_heads;
    q = split_heads(slice(query, 2, 0, queries), heads);
    k = split_heads(slice(query, 2, queries, queries + more), kv_heads);
    v = split_heads(slice(query, 2, queries + more, query.dim(2)), kv_heads);
  }
  if (ctx.has_input(14)) {
    const double epsilon = ctx.float_attr("qk_norm_epsilon", 1e-6);
    q = rms_normalized(q, in(ctx, 14), ctx.float_attr("q_norm_epsilon", epsilon));
    k = rms_normalized(k, in(ctx, 15), ctx.float_attr("k_norm_epsilon", epsilon));
  }
  const Dim length = q.dim(2);
  std::optional<Expr> past_key, past_value;
  if (ctx.has_input(3)) {
    past_key = in(ctx, 3);
    past_value = in(ctx, 4);
  }
  const Dim past = past_key ? past_key->dim(2) : Dim(0);
  // Of each sequence: keys, and those before the new ones. A padded first prompt has fewer keys than rows.
  const Expr valid = cast(in(ctx, 5), DType::kI64) + 1.0;
  const Expr before = maximum(valid - extent(ctx, length), 0.0);
  const auto most = ctx.known(ctx.input(6));
  const Dim used = most ? (*most)[0] : past + length, keys = ir::dim_max(past, used);

  if (ctx.int_attr("do_rotary", 0) != 0) {
    const Expr position = ctx.has_input(9) ? in(ctx, 9) : along(before, 0, 2) + iota_along(ctx, length, 1, 2);
    const Expr cosine = gather(in(ctx, 7), position, 0), sine = gather(in(ctx, 8), position, 0);
    if (!cosine.dim(-1).is_const()) ctx.refuse("the width of the rotary tables is not known");
    const int64_t turned = 2 * cosine.dim(-1).value();
    const bool neighbours = ctx.int_attr("rotary_interleaved", 0) != 0;
    q = rotary_embedding(q, cosine, sine, heads, turned, neighbours);
    k = rotary_embedding(k, cosine, sine, kv_heads, turned, neighbours);
  }
  k = appended(past_key, k, before, keys);
  v = appended(past_value, v, before, keys);
  out(ctx, 1, emit(Op::identity, k));
  out(ctx, 2, emit(Op::identity, v));
  if (!(keys == used)) {  // a cache with room: what is behind the longest sequence is not looked at
    k = slice(k, 2, 0, used);
    v = slice(v, 2, 0, used);
  }

  const Expr columns = iota_along(ctx, used, 3, 4);
  const Expr position = along(before, 0, 4) + iota_along(ctx, length, 2, 4);
  const bool causal = ctx.int_attr("causal", 1) != 0;
  Expr bias = bias_of(causal ? less_equal(columns, position) : less(columns, along(valid, 0, 4)), q.dtype());
  if (const int64_t window = ctx.int_attr("local_window_size", -1); window > 0)
    bias = bias + bias_of(less(position - static_cast<double>(window), columns), q.dtype());
  if (ctx.has_input(10)) bias = bias + in(ctx, 10);
  AttentionOptions options;
  options.scale = ctx.float_attr("scale", 0.0);
  options.softcap = ctx.float_attr("softcap", 0.0);
  out(ctx, 0, merge_heads(attention(q, k, v, bias, options).y));
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

std::vector<OperatorImport> contrib_attention_imports() {
  return {
      {kDomain, "Attention", 1, packed_attention},
      {kDomain, "MultiHeadAttention", 1, multi_head_attention},
      {kDomain, "GroupQueryAttention", 1, group_query_attention},
      {kDomain, "RotaryEmbedding", 1, rotary},
  };
}

}  // namespace thrice::frontend::onnx
