// Operators about shapes: extents as values, and views that only reinterpret or cut.
#include <algorithm>

#include "frontend/onnx/ops/expr.h"
#include "frontend/onnx/ops/groups.h"

namespace thrice::frontend::onnx {
namespace {

Expr as_i64(const Expr& x) { return cast(x, DType::kI64); }

void shape(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  const auto clip = [&](int64_t i) {
    return std::min(std::max<int64_t>(i < 0 ? i + x.rank() : i, 0), x.rank());
  };
  const int64_t start = clip(ctx.int_attr("start", 0));
  const int64_t end = std::max(start, clip(ctx.int_attr("end", x.rank())));
  out(ctx, 0, emit(Op::shape, x, {{"start", start}, {"end", end}}));
}

void size(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  out(ctx, 0, extent(ctx, ir::num_elements(x.shape())));
}

void reshape_(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  const ValueId shape = ctx.has_input(1) ? ctx.input(1) : ctx.ints(ctx.ints_attr("shape"));
  out(ctx, 0, emit(Op::reshape, x, Expr(ctx, shape), {{"allowzero", ctx.int_attr("allowzero", 0)}}));
}

void flatten(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  int64_t axis = ctx.int_attr("axis", 1);
  if (axis < -x.rank() || axis > x.rank()) ctx.invalid("axis is out of range");
  if (axis < 0) axis += x.rank();
  const ir::Shape& s = x.shape();
  const ir::Shape head(s.begin(), s.begin() + axis), tail(s.begin() + axis, s.end());
  out(ctx, 0, reshape(x, {ir::num_elements(head), ir::num_elements(tail)}));
}

void squeeze_(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  std::vector<int64_t> axes;
  if (!read_axes(ctx, 1, x.rank(), axes) && !ctx.has_input(1) && !ctx.has_attr("axes")) {
    for (int64_t i = 0; i < x.rank(); ++i) {
      if (!x.dim(i).is_const())
        ctx.refuse("without axes, the result's rank depends on extent " + x.dim(i).str() + ": fix it");
      if (x.dim(i).value() == 1) axes.push_back(i);
    }
  }
  out(ctx, 0, squeeze(x, axes));
}

void unsqueeze_(NodeContext& ctx) {
  out(ctx, 0, unsqueeze(in(ctx, 0), ctx.has_input(1) ? ctx.structural_ints(1) : ctx.ints_attr("axes")));
}

void transpose_(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  std::vector<int64_t> perm = ctx.ints_attr("perm");
  if (!ctx.has_attr("perm"))
    for (int64_t i = x.rank(); i > 0; --i) perm.push_back(i - 1);
  std::vector<bool> seen(static_cast<size_t>(x.rank()));
  if (perm.size() != seen.size()) ctx.invalid("perm does not have the operand's rank");
  for (int64_t& axis : perm) {
    axis = ctx.axis(x.id(), axis);
    if (seen[static_cast<size_t>(axis)]) ctx.invalid("perm names an axis twice");
    seen[static_cast<size_t>(axis)] = true;
  }
  out(ctx, 0, emit(Op::transpose, x, {{"perm", perm}}));
}

void expand_(NodeContext& ctx) { out(ctx, 0, emit(Op::expand, in(ctx, 0), as_i64(in(ctx, 1)))); }

void slice_(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  const bool operands = ctx.opset() >= 10;
  const Expr starts = operands ? as_i64(in(ctx, 1)) : Expr(ctx, ctx.ints(ctx.ints_attr("starts")));
  const Expr ends = operands ? as_i64(in(ctx, 2)) : Expr(ctx, ctx.ints(ctx.ints_attr("ends")));
  if (starts.rank() != 1 || !starts.dim(0).is_const()) ctx.refuse("the number of sliced axes is not known");
  const int64_t count = starts.dim(0).value();
  std::vector<int64_t> axes;
  if (operands && ctx.has_input(3))
    axes = ctx.structural_ints(3);
  else if (!operands && ctx.has_attr("axes"))
    axes = ctx.ints_attr("axes");
  else
    axes = axes_from(0, count);
  if (static_cast<int64_t>(axes.size()) != count) ctx.invalid("axes and starts differ in length");
  for (int64_t& axis : axes) axis = ctx.axis(x.id(), axis);
  const Expr steps = operands && ctx.has_input(4)
                         ? as_i64(in(ctx, 4))
                         : Expr(ctx, ctx.ints(std::vector<int64_t>(static_cast<size_t>(count), 1)));
  ctx.set_output(0, ctx.emit(Op::slice, {x.id(), starts.id(), ends.id(), steps.id()}, {{"axes", axes}}));
}

std::vector<Dim> split_sizes(NodeContext& ctx, const Expr& x, int64_t axis) {
  std::vector<Dim> sizes;
  if (ctx.has_input(1)) {
    if (const auto known = ctx.known(ctx.input(1))) return *known;
    for (int64_t size : ctx.structural_ints(1)) sizes.push_back(size);
    return sizes;
  }
  if (ctx.has_attr("split")) {
    for (int64_t size : ctx.ints_attr("split")) sizes.push_back(size);
    return sizes;
  }
  const auto count = static_cast<int64_t>(ctx.num_outputs());
  if (ctx.has_attr("num_outputs") && ctx.int_attr("num_outputs") != count)
    ctx.invalid("num_outputs does not match the outputs");
  const Dim total = x.dim(axis), chunk = ir::ceil_div(total, count);
  if (total.is_const() && ctx.opset() < 18 && total.value() % count != 0)
    ctx.invalid("the axis does not split into equal parts");
  for (int64_t i = 0; i < count; ++i) {
    const Dim begin = total.is_const() ? ir::dim_min(chunk * i, total) : chunk * i;
    const Dim end = i + 1 == count     ? total
                    : total.is_const() ? ir::dim_min(chunk * (i + 1), total)
                                       : chunk * (i + 1);
    sizes.push_back(end - begin);
  }
  return sizes;
}

void split(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  const int64_t axis = ctx.axis(x.id(), ctx.int_attr("axis", 0));
  const std::vector<Dim> sizes = split_sizes(ctx, x, axis);
  if (sizes.size() != ctx.num_outputs()) ctx.invalid("as many sizes as outputs are needed");
  Dim total = 0;
  for (const Dim& size : sizes) total = total + size;
  if (total.is_const() && x.dim(axis).is_const() && !(total == x.dim(axis)))
    ctx.invalid("the sizes do not add up to the axis");
  Dim begin = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Dim end = begin + sizes[i];
    if (ctx.wants_output(i)) {
      const Expr part = slice(x, axis, begin, end);
      out(ctx, i, part.id() == x.id() ? emit(Op::identity, x) : part);
    }
    begin = end;
  }
}

void concat_(NodeContext& ctx) {
  std::vector<Expr> parts;
  for (size_t i = 0; i < ctx.num_inputs(); ++i) parts.push_back(in(ctx, i));
  if (parts.empty()) ctx.invalid("no operands");
  const Expr joined = concat(parts, ctx.int_attr("axis"));
  out(ctx, 0, parts.size() == 1 ? emit(Op::identity, joined) : joined);
}

void tile(NodeContext& ctx) { out(ctx, 0, emit(Op::tile, in(ctx, 0), as_i64(in(ctx, 1)))); }

void pad(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  const std::string mode = ctx.string_attr("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
    ctx.invalid("mode " + mode + " is not known");
  std::vector<int64_t> axes = axes_from(0, x.rank());
  std::vector<ValueId> operands{x.id()};
  if (ctx.opset() < 11) {
    operands.push_back(ctx.ints(ctx.ints_attr("pads")));
    if (mode == "constant") operands.push_back(ctx.scalar(x.dtype(), ctx.float_attr("value", 0)));
  } else {
    operands.push_back(as_i64(in(ctx, 1)).id());
    // Exporters write an empty tensor where they mean no value.
    const bool empty = ctx.has_input(2) && in(ctx, 2).rank() == 1 && in(ctx, 2).dim(0) == Dim(0);
    if (mode == "constant" && ctx.has_input(2) && !empty) operands.push_back(reshape(in(ctx, 2), {}).id());
    if (ctx.has_input(3)) {
      axes = ctx.structural_ints(3);
      for (int64_t& axis : axes) axis = ctx.axis(x.id(), axis);
    }
  }
  ctx.set_output(0, ctx.emit(Op::pad, operands, {{"mode", mode}, {"axes", axes}}));
}

// Target extents may be symbolic where the operand is a constant or shape arithmetic.
void center_crop_pad(NodeContext& ctx) {
  Expr x = in(ctx, 0);
  std::vector<int64_t> axes = ctx.has_attr("axes") ? ctx.ints_attr("axes") : axes_from(0, x.rank());
  std::vector<Dim> target;
  if (const auto known = ctx.known(ctx.input(1)))
    target = *known;
  else
    for (int64_t extent : ctx.structural_ints(1)) target.push_back(extent);
  if (target.size() != axes.size()) ctx.invalid("shape and axes differ in length");
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = ctx.axis(x.id(), axes[i]);
    const Dim extent = x.dim(axis), kept = ir::dim_min(extent, target[i]);
    const Dim first = ir::floor_div(extent - kept, 2), missing = target[i] - kept;
    const Dim before = ir::floor_div(missing, 2);
    x = pad_zero(slice(x, axis, first, first + kept), axis, before, missing - before);
  }
  out(ctx, 0, x.id() == ctx.input(0) ? emit(Op::identity, x) : x);
}

}  // namespace

std::vector<OperatorImport> shape_imports() {
  return {
      {"", "Shape", 1, shape},
      {"", "Size", 1, size},
      {"", "Reshape", 1, reshape_},
      {"", "Flatten", 1, flatten},
      {"", "Squeeze", 1, squeeze_},
      {"", "Unsqueeze", 1, unsqueeze_},
      {"", "Transpose", 1, transpose_},
      {"", "Expand", 8, expand_},
      {"", "Slice", 1, slice_},
      {"", "Split", 2, split},
      {"", "Concat", 4, concat_},
      {"", "Tile", 6, tile},
      {"", "Pad", 2, pad},
      {"", "CenterCropPad", 18, center_crop_pad},
  };
}

}  // namespace thrice::frontend::onnx
