// Gathering and scattering by index.
#include "frontend/onnx/ops/expr.h"
#include "frontend/onnx/ops/groups.h"

namespace thrice::frontend::onnx {
namespace {

void gather_(NodeContext& ctx) { out(ctx, 0, gather(in(ctx, 0), in(ctx, 1), ctx.int_attr("axis", 0))); }

void gather_elements(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  out(ctx, 0,
      emit(Op::gather_elements, x, in(ctx, 1), {{"axis", ctx.axis(x.id(), ctx.int_attr("axis", 0))}}));
}

void gather_nd(NodeContext& ctx) {
  out(ctx, 0, emit(Op::gather_nd, in(ctx, 0), in(ctx, 1), {{"batch_dims", ctx.int_attr("batch_dims", 0)}}));
}

std::string reduction(NodeContext& ctx) {
  const std::string reduction = ctx.string_attr("reduction", "none");
  for (const char* known : {"none", "add", "mul", "min", "max"})
    if (reduction == known) return reduction;
  ctx.invalid("reduction " + reduction + " is not known");
}

void scatter_elements(NodeContext& ctx) {
  const ValueId x = ctx.input(0);
  ctx.set_output(0,
                 ctx.emit(Op::scatter_elements, {x, ctx.input(1), ctx.input(2)},
                          {{"axis", ctx.axis(x, ctx.int_attr("axis", 0))}, {"reduction", reduction(ctx)}}));
}

void scatter_nd(NodeContext& ctx) {
  ctx.set_output(0, ctx.emit(Op::scatter_nd, {ctx.input(0), ctx.input(1), ctx.input(2)},
                             {{"reduction", reduction(ctx)}}));
}

// Writes `update` into the cache along `axis`, each batch entry from its own index on.
void tensor_scatter(NodeContext& ctx) {
  const Expr cache = in(ctx, 0), update = in(ctx, 1);
  const int64_t axis = ctx.axis(cache.id(), ctx.int_attr("axis", -2));
  const std::string mode = ctx.string_attr("mode", "linear");
  Expr position = iota_along(ctx, update.dim(axis), axis, cache.rank());
  if (ctx.has_input(2)) position = position + along(cast(in(ctx, 2), DType::kI64), 0, cache.rank());
  if (mode == "circular") {
    const Expr length = extent(ctx, cache.dim(axis));
    position = emit(Op::mod, position, length);
  } else if (mode != "linear") {
    ctx.invalid("mode must be linear or circular");
  }
  ctx.set_output(
      0, ctx.emit(Op::scatter_elements, {cache.id(), expand(position, update.shape()).id(), update.id()},
                  {{"axis", axis}, {"reduction", std::string("none")}}));
}

void top_k(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  const Expr k = ctx.opset() < 10 ? Expr(ctx, ctx.ints({ctx.int_attr("k")}))
                                  : cast(reshape(in(ctx, 1), {Dim(1)}), DType::kI64);
  const std::vector<ValueId> results = ctx.emit_many(Op::top_k, {x.id(), k.id()}, 2,
                                                     {{"axis", ctx.axis(x.id(), ctx.int_attr("axis", -1))},
                                                      {"largest", ctx.int_attr("largest", 1)},
                                                      {"sorted", ctx.int_attr("sorted", 1)}});
  for (size_t i = 0; i < results.size(); ++i)
    if (ctx.wants_output(i)) ctx.set_output(i, results[i]);
}

void cumulative(NodeContext& ctx, const char* kind) {
  const Expr x = in(ctx, 0);
  const std::vector<int64_t> axis = ctx.structural_ints(1);
  if (axis.size() != 1) ctx.invalid("axis must be one number");
  const Expr wide = widened(x);
  out(ctx, 0,
      cast(emit(Op::scan_sum, wide,
                {{"axis", ctx.axis(x.id(), axis[0])},
                 {"exclusive", ctx.int_attr("exclusive", 0)},
                 {"reverse", ctx.int_attr("reverse", 0)},
                 {"kind", std::string(kind)}}),
           x.dtype()));
}

void cum_sum(NodeContext& ctx) { cumulative(ctx, "sum"); }
void cum_prod(NodeContext& ctx) { cumulative(ctx, "prod"); }

}  // namespace

std::vector<OperatorImport> index_imports() {
  return {
      {"", "Gather", 1, gather_},
      {"", "GatherElements", 11, gather_elements},
      {"", "GatherND", 11, gather_nd},
      {"", "Scatter", 9, scatter_elements},
      {"", "ScatterElements", 11, scatter_elements},
      {"", "ScatterND", 11, scatter_nd},
      {"", "TensorScatter", 24, tensor_scatter},
      {"", "TopK", 1, top_k},
      {"", "CumSum", 11, cum_sum},
      {"", "CumProd", 26, cum_prod},
  };
}

}  // namespace thrice::frontend::onnx
