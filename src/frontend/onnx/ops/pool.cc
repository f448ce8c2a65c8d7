// Pooling.
#include "frontend/onnx/ops/expr.h"
#include "frontend/onnx/ops/groups.h"
#include "frontend/onnx/ops/window.h"

namespace thrice::frontend::onnx {
namespace {

Attributes pool_attributes(NodeContext& ctx, const Expr& x, const char* kind) {
  const int64_t spatial = x.rank() - 2;
  if (spatial < 1 || spatial > 3) ctx.refuse("1 to 3 spatial axes are supported");
  const std::vector<int64_t> kernel = ctx.ints_attr("kernel_shape");
  if (static_cast<int64_t>(kernel.size()) != spatial)
    ctx.invalid("kernel_shape does not fit the spatial axes");
  Attributes attrs = window_attributes(ctx, spatial);
  attrs["kind"] = std::string(kind);
  attrs["kernel"] = kernel;
  attrs["ceil_mode"] = ctx.int_attr("ceil_mode", 0);
  return attrs;
}

void max_pool(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  Attributes attrs = pool_attributes(ctx, x, "max");
  if (!ctx.wants_output(1)) return out(ctx, 0, emit(Op::pool, x, attrs));
  attrs["storage_order"] = ctx.int_attr("storage_order", 0);
  const std::vector<ValueId> results = ctx.emit_many(Op::pool, {x.id()}, 2, attrs);
  out(ctx, 0, Expr(ctx, results[0]));
  ctx.set_output(1, results[1]);
}

void average_pool(NodeContext& ctx) {
  const Expr x = in(ctx, 0), wide = widened(x);
  Attributes attrs = pool_attributes(ctx, x, "avg");
  attrs["count_include_pad"] = ctx.int_attr("count_include_pad", 0);
  out(ctx, 0, cast(emit(Op::pool, wide, attrs), x.dtype()));
}

Expr to_power(const Expr& x, int64_t p) {
  const Expr size = emit(Op::abs, x);
  return p == 1 ? size : p == 2 ? x * x : power(size, static_cast<double>(p));
}
Expr root(const Expr& x, int64_t p) {
  return p == 1 ? x : p == 2 ? emit(Op::sqrt, x) : power(x, 1.0 / static_cast<double>(p));
}

void lp_pool(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  const int64_t p = ctx.int_attr("p", 2);
  const Expr sum = emit(Op::pool, to_power(widened(x), p), pool_attributes(ctx, x, "sum"));
  out(ctx, 0, cast(root(sum, p), x.dtype()));
}

void global_average_pool(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  out(ctx, 0, cast(reduce(widened(x), "mean", axes_from(2, x.rank())), x.dtype()));
}
void global_max_pool(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  out(ctx, 0, reduce(x, "max", axes_from(2, x.rank())));
}
void global_lp_pool(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  const int64_t p = ctx.int_attr("p", 2);
  out(ctx, 0, cast(root(reduce(to_power(widened(x), p), "sum", axes_from(2, x.rank())), p), x.dtype()));
}

// Values go back to the flat positions they came from; a larger output_shape is zeros behind each axis.
void max_unpool(NodeContext& ctx) {
  const Expr x = in(ctx, 0), index = in(ctx, 1);
  const int64_t spatial = x.rank() - 2;
  Attributes window = window_attributes(ctx, spatial);
  const std::vector<int64_t> kernel = ctx.ints_attr("kernel_shape");
  if (static_cast<int64_t>(kernel.size()) != spatial)
    ctx.invalid("kernel_shape does not fit the spatial axes");
  const auto& strides = std::get<std::vector<int64_t>>(window["strides"]);
  const auto& pads = std::get<std::vector<int64_t>>(window["pads"]);
  ir::Shape shape{x.dim(0), x.dim(1)};
  for (size_t i = 0; i < kernel.size(); ++i)
    shape.push_back((x.dim(static_cast<int64_t>(i) + 2) - 1) * strides[i] + kernel[i] - pads[i] -
                    pads[i + kernel.size()]);
  const Expr zeros = filled(ctx, x.dtype(), 0, {ir::num_elements(shape)});
  const Dim count = ir::num_elements(x.shape());
  const Expr flat(ctx, ctx.emit(Op::scatter_elements,
                                {zeros.id(), reshape(index, {count}).id(), reshape(x, {count}).id()},
                                {{"axis", int64_t{0}}, {"reduction", std::string("none")}}));
  Expr y = reshape(flat, shape);
  if (ctx.has_input(2)) {
    std::vector<Dim> wanted;
    if (const auto known = ctx.known(ctx.input(2)))
      wanted = *known;
    else
      for (int64_t extent : ctx.structural_ints(2)) wanted.push_back(extent);
    if (wanted.size() != shape.size()) ctx.invalid("output_shape does not have the operand's rank");
    for (size_t i = 2; i < wanted.size(); ++i)
      y = pad_zero(y, static_cast<int64_t>(i), 0, wanted[i] - shape[i]);
  }
  out(ctx, 0, y);
}

void max_roi_pool(NodeContext& ctx) { ctx.refuse("regions of run-time size are pooled; use RoiAlign"); }

}  // namespace

std::vector<OperatorImport> pool_imports() {
  return {
      {"", "MaxPool", 1, max_pool},
      {"", "AveragePool", 7, average_pool},
      {"", "LpPool", 2, lp_pool},
      {"", "GlobalAveragePool", 1, global_average_pool},
      {"", "GlobalMaxPool", 1, global_max_pool},
      {"", "GlobalLpPool", 2, global_lp_pool},
      {"", "MaxUnpool", 9, max_unpool},
      {"", "MaxRoiPool", 1, max_roi_pool},
  };
}

}  // namespace thrice::frontend::onnx
