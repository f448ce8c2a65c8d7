// Convolutions.
#include "frontend/onnx/ops/activation.h"
#include "frontend/onnx/ops/expr.h"
#include "frontend/onnx/ops/groups.h"
#include "frontend/onnx/ops/product.h"
#include "frontend/onnx/ops/quantize.h"
#include "frontend/onnx/ops/window.h"

namespace thrice::frontend::onnx {

Attributes window_attributes(NodeContext& ctx, int64_t spatial) {
  const auto count = static_cast<size_t>(spatial);
  std::vector<int64_t> strides = ctx.ints_attr("strides"), dilations = ctx.ints_attr("dilations");
  std::vector<int64_t> pads = ctx.ints_attr("pads");
  if (strides.empty()) strides.assign(count, 1);
  if (dilations.empty()) dilations.assign(count, 1);
  if (pads.empty()) pads.assign(2 * count, 0);
  if (strides.size() != count || dilations.size() != count || pads.size() != 2 * count)
    ctx.invalid("strides, dilations and pads must fit the number of spatial axes");
  for (size_t i = 0; i < count; ++i)
    if (strides[i] < 1 || dilations[i] < 1) ctx.invalid("strides and dilations must be positive");
  std::string auto_pad = ctx.string_attr("auto_pad", "NOTSET");
  for (char& c : auto_pad) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  if (auto_pad.empty()) auto_pad = "notset";
  if (auto_pad != "notset" && auto_pad != "valid" && auto_pad != "same_upper" && auto_pad != "same_lower")
    ctx.invalid("auto_pad " + auto_pad + " is not known");
  return {{"strides", strides}, {"dilations", dilations}, {"pads", pads}, {"auto_pad", auto_pad}};
}

namespace {

int64_t spatial_axes(NodeContext& ctx, const Expr& x, const Expr& w) {
  const int64_t spatial = x.rank() - 2;
  if (w.rank() != x.rank()) ctx.invalid("operand and weight differ in rank");
  if (spatial < 1 || spatial > 3) ctx.refuse("1 to 3 spatial axes are supported");
  const std::vector<int64_t> kernel = ctx.ints_attr("kernel_shape");
  for (size_t i = 0; i < kernel.size(); ++i) {
    if (static_cast<int64_t>(kernel.size()) != spatial)
      ctx.invalid("kernel_shape does not fit the spatial axes");
    const Dim extent = w.dim(static_cast<int64_t>(i) + 2);
    if (extent.is_const() && extent.value() != kernel[i]) ctx.invalid("kernel_shape and the weight differ");
  }
  return spatial;
}

Expr convolution(NodeContext& ctx, const Expr& x, const Expr& w, ValueId bias) {
  Attributes attrs = window_attributes(ctx, spatial_axes(ctx, x, w));
  attrs["group"] = ctx.int_attr("group", 1);
  std::vector<ValueId> operands{x.id(), w.id()};
  if (bias != ir::kNoValue) operands.push_back(bias);
  return {ctx, ctx.emit(Op::conv, operands, attrs)};
}

void conv(NodeContext& ctx) { out(ctx, 0, convolution(ctx, in(ctx, 0), in(ctx, 1), ctx.optional_input(2))); }

void conv_integer(NodeContext& ctx) {
  out(ctx, 0,
      convolution(ctx, centred_integer(in(ctx, 0), ctx, 2, 1), centred_integer(in(ctx, 1), ctx, 3, 0),
                  ir::kNoValue));
}

// Operands: x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias (i32 in units of x_scale *
// w_scale).
void qlinear_conv(NodeContext& ctx) {
  const Expr x = in(ctx, 0), w = in(ctx, 3), w_scale = cast(in(ctx, 4), DType::kF32);
  const Expr sum =
      convolution(ctx, centred_integer(x, ctx, 2, 1), centred_integer(w, ctx, 5, 0), ctx.optional_input(8));
  const Expr per_channel =
      w_scale.rank() == 1 && !(w_scale.dim(0) == Dim(1)) ? along(w_scale, 1, x.rank()) : reshape(w_scale, {});
  const Expr factor =
      reshape(cast(in(ctx, 1), DType::kF32), {}) * per_channel / reshape(cast(in(ctx, 6), DType::kF32), {});
  out(ctx, 0, requantized(cast(sum, DType::kF32) * factor, in(ctx, 7)));
}

void conv_transpose(NodeContext& ctx) {
  const Expr x = in(ctx, 0), w = in(ctx, 1);
  const int64_t spatial = spatial_axes(ctx, x, w);
  Attributes attrs = window_attributes(ctx, spatial);
  attrs["group"] = ctx.int_attr("group", 1);
  std::vector<int64_t> extra = ctx.ints_attr("output_padding");
  if (extra.empty()) extra.assign(static_cast<size_t>(spatial), 0);
  attrs["output_padding"] = extra;
  if (ctx.has_attr("output_shape")) {
    std::vector<int64_t> extents = ctx.ints_attr("output_shape");
    // Some exporters give batch and channels as well.
    if (static_cast<int64_t>(extents.size()) == spatial + 2)
      extents.erase(extents.begin(), extents.begin() + 2);
    if (!extents.empty()) attrs["output_shape"] = extents;
  }
  std::vector<ValueId> operands{x.id(), w.id()};
  if (ctx.has_input(2)) operands.push_back(ctx.input(2));
  ctx.set_output(0, ctx.emit(Op::conv_transpose, operands, attrs));
}

// Depthwise convolution over time that sees only the past; the state is the last k - 1 columns.
void causal_conv_with_state(NodeContext& ctx) {
  const Expr x = in(ctx, 0), w = in(ctx, 1);
  if (x.rank() != 3 || w.rank() != 3 || !w.dim(2).is_const() || !w.dim(0).is_const())
    ctx.refuse("needs [batch, channels, length] and a weight of known extents");
  const int64_t past = w.dim(2).value() - 1;
  const Expr joined = ctx.has_input(3) ? concat({in(ctx, 3), x}, 2) : pad_zero(x, 2, Dim(past), Dim(0));
  std::vector<ValueId> operands{joined.id(), w.id()};
  if (ctx.has_input(2)) operands.push_back(ctx.input(2));
  Attributes attrs{{"strides", std::vector<int64_t>{1}},
                   {"dilations", std::vector<int64_t>{1}},
                   {"pads", std::vector<int64_t>{0, 0}},
                   {"auto_pad", std::string("notset")},
                   {"group", w.dim(0).value()}};
  const Expr y(ctx, ctx.emit(Op::conv, operands, attrs));
  const std::string activation = ctx.string_attr("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    ctx.invalid("activation " + activation + " is not known");
  out(ctx, 0, activation == "none" ? y : swish(y, 1.0));
  const Dim length = joined.dim(2);
  out(ctx, 1, slice(joined, 2, length - past, length));
}

// x is sampled at the shifted positions of every kernel element (outside is zero), then it is a matrix
// product. Operands: x, w [O, C / group, kh, kw], offset [N, offset groups * kh * kw * 2, oh, ow], bias,
// mask.
void deform_conv(NodeContext& ctx) {
  const Expr x = in(ctx, 0), w = in(ctx, 1), offset = in(ctx, 2);
  if (x.rank() != 4 || w.rank() != 4 || !ir::is_static(w.shape()))
    ctx.refuse("two spatial axes and a known weight are needed");
  const Attributes window = window_attributes(ctx, 2);
  const auto list = [&](const char* name) { return std::get<std::vector<int64_t>>(window.at(name)); };
  const std::vector<int64_t> strides = list("strides"), dilations = list("dilations"), pads = list("pads");
  const int64_t group = ctx.int_attr("group", 1), shifts = ctx.int_attr("offset_group", 1);
  const int64_t kh = w.dim(2).value(), kw = w.dim(3).value(), kernel = kh * kw;
  const Dim n = x.dim(0), c = x.dim(1), oh = offset.dim(2), ow = offset.dim(3);
  // Position [N, offset groups, kernel, oh, ow] along one axis, as grid_sample counts it: -1 to 1 over the
  // pixels' edges.
  const auto position = [&](int64_t axis) {
    const Expr shift =
        squeeze(slice(reshape(widened(offset), {n, shifts, kernel, 2, oh, ow}), 3, axis, axis + 1), {3});
    const size_t a = static_cast<size_t>(axis);
    const Expr element = iota(ctx, kernel), width = reshape(Expr(ctx, ctx.ints({kw})), {});
    const Expr inside = axis == 0 ? element / width : emit(Op::mod, element, width);
    const Expr pixel = along(inside * static_cast<double>(dilations[a]), 2, 5) +
                       iota_along(ctx, axis == 0 ? oh : ow, 3 + axis, 5) * static_cast<double>(strides[a]) -
                       static_cast<double>(pads[a]);
    const Expr length = cast(extent(ctx, x.dim(2 + axis)), shift.dtype());
    return unsqueeze((2.0 * (shift + cast(pixel, shift.dtype())) + 1.0) / length - 1.0, {5});
  };
  const Expr grid = reshape(concat({position(1), position(0)}, 5), {n * shifts, oh * kernel, ow, 2});
  const Expr planes = reshape(x, {n * shifts, ir::floor_div(c, shifts), x.dim(2), x.dim(3)});
  Expr sampled = emit(Op::grid_sample, planes, cast(grid, x.dtype()),
                      {{"mode", std::string("linear")},
                       {"padding_mode", std::string("zeros")},
                       {"align_corners", int64_t{0}}});
  sampled = reshape(sampled, {n, shifts, ir::floor_div(c, shifts), kernel, oh, ow});
  if (ctx.has_input(4)) sampled = sampled * reshape(in(ctx, 4), {n, shifts, 1, kernel, oh, ow});
  const int64_t rows = w.dim(1).value() * kernel, outputs = w.dim(0).value();
  const Expr columns = reshape(sampled, {n, group, rows, oh * ow});
  const Expr weight = reshape(w, {1, group, outputs / group, rows});
  Expr y = reshape(matmul(weight, columns), {n, outputs, oh, ow});
  if (ctx.has_input(3)) y = y + along(in(ctx, 3), 1, 4);
  out(ctx, 0, y);
}

}  // namespace

std::vector<OperatorImport> convolution_imports() {
  return {
      {"", "Conv", 1, conv},
      {"", "ConvInteger", 10, conv_integer},
      {"", "QLinearConv", 10, qlinear_conv},
      {"", "ConvTranspose", 1, conv_transpose},
      {"", "CausalConvWithState", 27, causal_conv_with_state},
      {"", "DeformConv", 19, deform_conv},
  };
}

}  // namespace thrice::frontend::onnx
