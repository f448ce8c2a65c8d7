// Reductions: logs, norms and squares are element-wise work around the one `reduce` operator.
#include "frontend/onnx/ops/expr.h"
#include "frontend/onnx/ops/groups.h"

namespace thrice::frontend::onnx {
namespace {

// Operands of a reduction: no axes means all of them, or none with noop_with_empty_axes.
struct Reduction {
  Expr x;
  std::vector<int64_t> axes;
  bool keepdims;
  Expr of(const std::string& kind, const Expr& value) const { return reduce(value, kind, axes, keepdims); }
};

Reduction read(NodeContext& ctx) {
  Reduction r{in(ctx, 0), {}, ctx.int_attr("keepdims", 1) != 0};
  if (!read_axes(ctx, 1, r.x.rank(), r.axes) && ctx.int_attr("noop_with_empty_axes", 0) == 0)
    r.axes = axes_from(0, r.x.rank());
  return r;
}

// Integers have no logarithms and roots of their own: computed in float64, truncated at the end.
Expr real(const Expr& x) { return is_float(x.dtype()) ? widened(x) : cast(x, DType::kF64); }

template <int kind>  // 0 sum, 1 mean, 2 prod
void plain(NodeContext& ctx) {
  static constexpr const char* kNames[] = {"sum", "mean", "prod"};
  const Reduction r = read(ctx);
  out(ctx, 0, cast(r.of(kNames[kind], widened(r.x)), r.x.dtype()));
}

void extreme(NodeContext& ctx, bool highest) {
  const Reduction r = read(ctx);
  if (r.x.dtype() == DType::kBool) return out(ctx, 0, r.of(highest ? "any" : "all", r.x));
  out(ctx, 0, r.of(highest ? "max" : "min", r.x));
}
void max(NodeContext& ctx) { extreme(ctx, true); }
void min(NodeContext& ctx) { extreme(ctx, false); }

void l1(NodeContext& ctx) {
  const Reduction r = read(ctx);
  out(ctx, 0, cast(r.of("sum", emit(Op::abs, widened(r.x))), r.x.dtype()));
}

void l2(NodeContext& ctx) {
  const Reduction r = read(ctx);
  const Expr x = real(r.x);
  out(ctx, 0, cast(emit(Op::sqrt, r.of("sum", x * x)), r.x.dtype()));
}

void sum_square(NodeContext& ctx) {
  const Reduction r = read(ctx);
  const Expr x = widened(r.x);
  out(ctx, 0, cast(r.of("sum", x * x), r.x.dtype()));
}

void log_sum(NodeContext& ctx) {
  const Reduction r = read(ctx);
  out(ctx, 0, cast(emit(Op::log, r.of("sum", real(r.x))), r.x.dtype()));
}

// The maximum is taken out first; an infinite one is not, or -Inf - -Inf would give NaN.
void log_sum_exp(NodeContext& ctx) {
  const Reduction r = read(ctx);
  const Expr x = real(r.x), highest = reduce(x, "max", r.axes);
  const Expr shift = where(emit(Op::is_inf, highest), 0.0, highest);
  Expr total = emit(Op::log, reduce(emit(Op::exp, x - shift), "sum", r.axes)) + shift;
  if (!r.keepdims) total = squeeze(total, r.axes);
  out(ctx, 0, cast(total, r.x.dtype()));
}

void arg(NodeContext& ctx, const char* kind) {
  const Expr x = in(ctx, 0);
  out(ctx, 0,
      emit(Op::arg_reduce, x,
           {{"kind", std::string(kind)},
            {"axis", ctx.axis(x.id(), ctx.int_attr("axis", 0))},
            {"keepdims", ctx.int_attr("keepdims", 1)},
            {"select_last", ctx.int_attr("select_last_index", 0)}}));
}
void arg_max(NodeContext& ctx) { arg(ctx, "max"); }
void arg_min(NodeContext& ctx) { arg(ctx, "min"); }

}  // namespace

std::vector<OperatorImport> reduction_imports() {
  return {
      {"", "ReduceSum", 1, plain<0>},   {"", "ReduceMean", 1, plain<1>},
      {"", "ReduceProd", 1, plain<2>},  {"", "ReduceMax", 1, max},
      {"", "ReduceMin", 1, min},        {"", "ReduceL1", 1, l1},
      {"", "ReduceL2", 1, l2},          {"", "ReduceSumSquare", 1, sum_square},
      {"", "ReduceLogSum", 1, log_sum}, {"", "ReduceLogSumExp", 1, log_sum_exp},
      {"", "ArgMax", 1, arg_max},       {"", "ArgMin", 1, arg_min},
  };
}

}  // namespace thrice::frontend::onnx
