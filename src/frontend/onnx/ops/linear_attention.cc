// Linear attention as its recurrence over time.
#include <cmath>

#include "frontend/onnx/ops/attention.h"
#include "frontend/onnx/ops/groups.h"
#include "frontend/onnx/ops/time_loop.h"

namespace thrice::frontend::onnx {
namespace {

// [B, T, heads * size] -> [T, B, heads, size].
Expr in_time(const Expr& x, const Dim& heads) {
  return transpose(reshape(x, {x.dim(0), x.dim(1), heads, ir::floor_div(x.dim(2), heads)}), {1, 0, 2, 3});
}

// Operands: query, key, value, past state [B, kv heads, dk, dv], decay, beta.
void linear_attention(NodeContext& ctx) {
  const int64_t heads = ctx.int_attr("q_num_heads"), kv_heads = ctx.int_attr("kv_num_heads");
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0)
    ctx.invalid("q_num_heads must be a multiple of kv_num_heads");
  const std::string rule = ctx.string_attr("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta",
             delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear") ctx.invalid("update_rule " + rule + " is not known");
  const Expr query = in(ctx, 0), value = in(ctx, 2);
  const Expr q = in_time(widened(query), heads), k = in_time(widened(in(ctx, 1)), kv_heads);
  const Expr v = in_time(widened(value), kv_heads);
  double scale = ctx.float_attr("scale", 0.0);
  if (scale == 0) {
    if (!q.dim(3).is_const()) ctx.refuse("the head size is not known");
    scale = 1.0 / std::sqrt(static_cast<double>(q.dim(3).value()));
  }
  const ir::Shape grouped{q.dim(1), kv_heads, heads / kv_heads, q.dim(3)};
  const Expr state = ctx.has_input(3) ? widened(in(ctx, 3))
                                      : filled(ctx, q.dtype(), 0, {q.dim(1), kv_heads, k.dim(3), v.dim(3)});
  TimeLoop loop{{q * scale, k, v}, {cast(state, q.dtype())}, {}, false};
  if (gated) loop.sequences.push_back(in_time(widened(in(ctx, 4)), kv_heads));
  if (delta) {
    const Expr beta = widened(in(ctx, 5));
    loop.sequences.push_back(in_time(beta, beta.dim(2)));
  }
  const TimeStep result = over_time(
      loop, [&](const std::vector<Expr>&, const std::vector<Expr>& carried, const std::vector<Expr>& now) {
        Expr memory = carried[0];
        const Expr column = unsqueeze(now[1], {3}), row = unsqueeze(now[2], {2});
        if (gated) memory = emit(Op::exp, unsqueeze(now[3], {3})) * memory;
        Expr written = row;
        if (delta) written = unsqueeze(now.back(), {3}) * (row - matmul(column, memory, true, false));
        memory = memory + column * written;
        const Expr read = matmul(reshape(now[0], grouped), memory);
        return TimeStep{{memory}, reshape(read, {read.dim(0), Dim(heads), read.dim(3)})};
      });
  const Expr y = transpose(*result.y, {1, 0, 2, 3});
  out(ctx, 0, cast(reshape(y, {y.dim(0), y.dim(1), y.dim(2) * y.dim(3)}), query.dtype()));
  out(ctx, 1, cast(result.carried[0], ctx.has_input(3) ? in(ctx, 3).dtype() : query.dtype()));
}

// thrice::GatedDeltaRule: the intermediate operator under its own name (docs/ops.md), for exporters that keep
// linear attention in one node. Operands: q, k, v, g, beta, A_log, dt_bias, initial_state, cu_seqlens.
void gated_delta_rule(NodeContext& ctx) {
  std::vector<ValueId> operands;
  for (size_t i = 0; i < 7; ++i) operands.push_back(ctx.input(i));
  operands.push_back(ctx.optional_input(7));
  operands.push_back(ctx.optional_input(8));
  const auto results = ctx.emit_many(Op::scan_sum, operands, 2,
                                     {{"kind", std::string("delta_rule")},
                                      {"lower_bound", ctx.float_attr("lower_bound", -5.0)},
                                      {"epsilon", ctx.float_attr("epsilon", 1e-6)},
                                      {"scale", ctx.float_attr("scale", 0.0)}});
  ctx.set_output(0, results[0]);
  if (ctx.wants_output(1)) ctx.set_output(1, results[1]);
}

}  // namespace

std::vector<OperatorImport> linear_attention_imports() {
  return {{"", "LinearAttention", 27, linear_attention}, {"thrice", "GatedDeltaRule", 1, gated_delta_rule}};
}

}  // namespace thrice::frontend::onnx
