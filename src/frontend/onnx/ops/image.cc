// Resampling and sampling of images.
#include "frontend/onnx/ops/expr.h"
#include "frontend/onnx/ops/groups.h"

namespace thrice::frontend::onnx {
namespace {

// Operand i, or absent where it is left out or empty: exporters write an empty tensor for "none".
ValueId filled_input(NodeContext& ctx, size_t i, DType dtype) {
  if (!ctx.has_input(i)) return ir::kNoValue;
  const Expr x = in(ctx, i);
  if (x.rank() == 1 && x.dim(0) == Dim(0)) return ir::kNoValue;
  return cast(x, dtype).id();
}

void resize(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  Attributes attrs{
      {"mode", ctx.string_attr("mode", "nearest")},
      {"coordinate_transformation_mode", ctx.string_attr("coordinate_transformation_mode", "half_pixel")},
      {"nearest_mode", ctx.string_attr("nearest_mode", "round_prefer_floor")},
      {"cubic_coeff_a", ctx.float_attr("cubic_coeff_a", -0.75)},
      {"exclude_outside", ctx.int_attr("exclude_outside", 0)},
      {"extrapolation_value", ctx.float_attr("extrapolation_value", 0.0)},
      {"antialias", ctx.int_attr("antialias", 0)},
      {"keep_aspect_ratio_policy", ctx.string_attr("keep_aspect_ratio_policy", "stretch")}};
  if (ctx.string_attr("coordinate_transformation_mode", "") == "tf_half_pixel_for_nn")
    ctx.refuse("coordinate_transformation_mode tf_half_pixel_for_nn, which opset 13 dropped; use half_pixel");
  if (ctx.has_attr("axes")) {
    std::vector<int64_t> axes = ctx.ints_attr("axes");
    for (int64_t& axis : axes) axis = ctx.axis(x.id(), axis);
    attrs["axes"] = axes;
  }
  const ValueId roi = filled_input(ctx, 1, DType::kF32), scales = filled_input(ctx, 2, DType::kF32);
  const ValueId sizes = filled_input(ctx, 3, DType::kI64);
  if (scales == ir::kNoValue && sizes == ir::kNoValue) ctx.invalid("neither scales nor sizes are given");
  // The region only matters to one mode; a leftover one must not be needed on the host.
  const bool crop = ctx.string_attr("coordinate_transformation_mode", "") == "tf_crop_and_resize";
  ctx.set_output(
      0, ctx.emit(Op::resize,
                  {x.id(), crop ? roi : ir::kNoValue, sizes == ir::kNoValue ? scales : ir::kNoValue, sizes},
                  attrs));
}

// Opset 10 and Upsample: output index / scale, rounded down for nearest.
void upsample(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  std::string mode = ctx.string_attr("mode", "nearest");
  if (mode == "bilinear" || mode == "trilinear") mode = "linear";
  const ValueId scales =
      ctx.has_input(1)
          ? cast(in(ctx, 1), DType::kF32).id()
          : ctx.constant(Tensor::of(DType::kF32, {static_cast<int64_t>(ctx.floats_attr("scales").size())},
                                    ctx.floats_attr("scales")));
  ctx.set_output(0, ctx.emit(Op::resize, {x.id(), ir::kNoValue, scales, ir::kNoValue},
                             {{"mode", mode},
                              {"coordinate_transformation_mode", std::string("asymmetric")},
                              {"nearest_mode", std::string("floor")}}));
}

// Sampling positions theta * (x, y, [z,] 1) for an output of known size.
void affine_grid(NodeContext& ctx) {
  const Expr theta = in(ctx, 0);
  const std::vector<int64_t> size = ctx.structural_ints(1);
  const bool corners = ctx.int_attr("align_corners", 0) != 0;
  if (size.size() != 4 && size.size() != 5) ctx.invalid("size must have 4 or 5 elements");
  const std::vector<int64_t> spatial(size.begin() + 2, size.end());
  const auto axes = static_cast<int64_t>(spatial.size());
  const int64_t points = ir::num_elements(spatial);
  std::vector<double> grid;
  for (int64_t point = 0; point < points; ++point) {
    int64_t rest = point;
    std::vector<double> position;  // last axis first, as x, y, z
    for (int64_t axis = axes - 1; axis >= 0; --axis) {
      const int64_t n = spatial[static_cast<size_t>(axis)];
      const auto i = static_cast<double>(rest % n), extent = static_cast<double>(n);
      position.push_back(corners ? (n == 1 ? -1.0 : 2.0 * i / (extent - 1) - 1.0)
                                 : (2.0 * i + 1.0) / extent - 1.0);
      rest /= n;
    }
    grid.insert(grid.end(), position.begin(), position.end());
    grid.push_back(1.0);
  }
  const Expr base = constant(ctx, Tensor::of(theta.dtype(), {points, axes + 1}, grid));
  ir::Shape shape{theta.dim(0)};
  for (int64_t extent : spatial) shape.push_back(extent);
  shape.push_back(axes);
  out(ctx, 0, reshape(matmul(base, theta, false, true), shape));
}

void grid_sample(NodeContext& ctx) {
  std::string mode = ctx.string_attr("mode", "linear");
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  const std::string padding = ctx.string_attr("padding_mode", "zeros");
  if (mode != "linear" && mode != "nearest" && mode != "cubic") ctx.invalid("mode " + mode + " is not known");
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    ctx.invalid("padding_mode " + padding + " is not known");
  out(ctx, 0,
      emit(Op::grid_sample, in(ctx, 0), in(ctx, 1),
           {{"mode", mode}, {"padding_mode", padding}, {"align_corners", ctx.int_attr("align_corners", 0)}}));
}

void roi_align(NodeContext& ctx) {
  const std::string transform = ctx.opset() < 16
                                    ? "output_half_pixel"
                                    : ctx.string_attr("coordinate_transformation_mode", "half_pixel");
  ctx.set_output(0, ctx.emit(Op::roi_align, {ctx.input(0), ctx.input(1), ctx.input(2)},
                             {{"coordinate_transformation_mode", transform},
                              {"mode", ctx.string_attr("mode", "avg")},
                              {"output_height", ctx.int_attr("output_height", 1)},
                              {"output_width", ctx.int_attr("output_width", 1)},
                              {"sampling_ratio", ctx.int_attr("sampling_ratio", 0)},
                              {"spatial_scale", ctx.float_attr("spatial_scale", 1.0)}}));
}

// Overlapping blocks are added: a transposed convolution with an identity weight [block elements, 1,
// block...].
void col_to_im(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  const std::vector<int64_t> image = ctx.structural_ints(1), block = ctx.structural_ints(2);
  const size_t axes = image.size();
  if (x.rank() != 3 || block.size() != axes || axes < 1 || axes > 3)
    ctx.refuse("needs [batch, channels * block, columns] and 1 to 3 spatial axes");
  const auto list = [&](const char* name, size_t count, int64_t otherwise) {
    std::vector<int64_t> values = ctx.ints_attr(name);
    if (values.empty()) values.assign(count, otherwise);
    if (values.size() != count) ctx.invalid(std::string(name) + " does not fit the spatial axes");
    return values;
  };
  const std::vector<int64_t> strides = list("strides", axes, 1), dilations = list("dilations", axes, 1);
  const std::vector<int64_t> pads = list("pads", 2 * axes, 0);
  const int64_t elements = ir::num_elements(block);
  if (elements < 1) ctx.invalid("an empty block");
  const Dim batch = x.dim(0) * ir::floor_div(x.dim(1), elements);
  ir::Shape columns{batch, elements}, weight{elements, 1}, shape{x.dim(0), ir::floor_div(x.dim(1), elements)};
  std::vector<int64_t> padding;
  for (size_t i = 0; i < axes; ++i) {
    const int64_t room = image[i] + pads[i] + pads[i + axes] - dilations[i] * (block[i] - 1) - 1;
    if (room < 0 || strides[i] < 1) ctx.invalid("the block does not fit the image");
    columns.push_back(room / strides[i] + 1);
    padding.push_back(room % strides[i]);
    weight.push_back(block[i]);
    shape.push_back(image[i]);
  }
  const Expr diagonal = equal(iota_along(ctx, elements, 0, 2), iota_along(ctx, elements, 1, 2));
  const Expr identity = reshape(cast(diagonal, x.dtype()), weight);
  const Expr y = emit(Op::conv_transpose, reshape(x, columns), identity,
                      {{"strides", strides},
                       {"dilations", dilations},
                       {"pads", pads},
                       {"output_padding", padding},
                       {"group", int64_t{1}},
                       {"auto_pad", std::string("notset")}});
  out(ctx, 0, reshape(y, shape));
}

void image_decoder(NodeContext& ctx) { ctx.refuse("decode images outside and feed the pixels"); }

}  // namespace

std::vector<OperatorImport> image_imports() {
  return {
      {"", "Upsample", 7, upsample},       {"", "Resize", 10, upsample},
      {"", "Resize", 11, resize},          {"", "AffineGrid", 20, affine_grid},
      {"", "GridSample", 16, grid_sample}, {"", "RoiAlign", 10, roi_align},
      {"", "Col2Im", 18, col_to_im},       {"", "ImageDecoder", 20, image_decoder},
  };
}

}  // namespace thrice::frontend::onnx
