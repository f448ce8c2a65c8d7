// Types of operators with spatial axes: convolutions, pooling, resize, samplers.
#include <cmath>

#include "ir/infer_rules.h"

namespace thrice::ir {
namespace {

Fact fact(DType dtype, Shape shape) { return Fact{{dtype, std::move(shape)}, nullptr, std::nullopt}; }

// Geometry of the windows: one entry a spatial axis.
struct Windows {
  std::vector<int64_t> strides, dilations, pads;
  std::string auto_pad;
  bool same() const { return auto_pad == "same_upper" || auto_pad == "same_lower"; }
};

Windows windows(const InferContext& c, size_t spatial) {
  Windows w{c.ints("strides", spatial, 1), c.ints("dilations", spatial, 1), c.ints("pads", 2 * spatial, 0),
            c.node.string_attr("auto_pad", "notset")};
  for (int64_t s : w.strides) c.require(s >= 1, "a stride is below 1");
  for (int64_t d : w.dilations) c.require(d >= 1, "a dilation is below 1");
  if (w.auto_pad == "valid") w.pads.assign(2 * spatial, 0);
  return w;
}

// Windows of `reach` elements (dilation counted) along an axis.
Dim window_count(const InferContext& c, const Windows& w, size_t axis, const Dim& extent, const Dim& reach,
                 bool ceil_mode) {
  const int64_t stride = w.strides[axis];
  if (w.same()) return ceil_div(extent, stride);
  const Dim begin = w.pads[axis], end = w.pads[axis + w.strides.size()];
  const Dim room = extent + begin + end - reach;
  if (room.is_const() && room.value() < -stride)
    c.fail(fmt::format("a window of {} elements is larger than the padded extent {}", reach.str(),
                       (extent + begin + end).str()));
  if (!ceil_mode) return floor_div(room, stride) + 1;
  // The second bound drops a window that would start in the trailing padding.
  return dim_min(ceil_div(room, stride) + 1, ceil_div(extent + begin, stride));
}

size_t spatial_rank(const InferContext& c) {
  if (c.rank(0) < 3) c.fail(fmt::format("needs [N, C, spatial...], got shape {}", shape_str(c.shape(0))));
  return c.shape(0).size() - 2;
}

Dim reach_of(const Dim& kernel, int64_t dilation) { return (kernel - 1) * Dim(dilation) + 1; }

void check_bias(const InferContext& c, const Dim& channels) {
  if (!c.has(2)) return;
  c.require(c.rank(2) == 1, "the bias is no vector");
  unify(c, c.shape(2)[0], channels);
}

Fact conv(const InferContext& c) {
  const size_t spatial = spatial_rank(c);
  const Shape &x = c.shape(0), &w = c.shape(1);
  c.require_same_dtype(0, 1);
  c.require(w.size() == x.size(), "weights and data differ in rank");
  const int64_t group = c.node.int_attr("group", 1);
  c.require(group >= 1, "group is below 1");
  if (x[1].is_const() && w[1].is_const() && x[1].value() != w[1].value() * group)
    c.fail(
        fmt::format("data has {} channels, weights take {} x {} groups", x[1].value(), w[1].value(), group));
  c.require(!w[0].is_const() || w[0].value() % group == 0, "output channels are no multiple of group");
  check_bias(c, w[0]);
  const Windows g = windows(c, spatial);
  Shape shape{x[0], w[0]};
  for (size_t i = 0; i < spatial; ++i)
    shape.push_back(window_count(c, g, i, x[i + 2], reach_of(w[i + 2], g.dilations[i]), false));
  return fact(c.dtype(0), std::move(shape));
}

Fact conv_transpose(const InferContext& c) {
  const size_t spatial = spatial_rank(c);
  const Shape &x = c.shape(0), &w = c.shape(1);
  c.require_same_dtype(0, 1);
  c.require(w.size() == x.size(), "weights and data differ in rank");
  unify(c, x[1], w[0]);
  const Dim channels = w[1] * Dim(c.node.int_attr("group", 1));
  check_bias(c, channels);
  const Windows g = windows(c, spatial);
  const std::vector<int64_t> extra = c.ints("output_padding", spatial, 0);
  Shape shape{x[0], channels};
  for (size_t i = 0; i < spatial; ++i) {
    const Dim stride = g.strides[i];
    if (c.node.has_attr("output_shape"))
      shape.emplace_back(c.ints("output_shape", spatial, 0)[i]);
    else if (g.same())
      shape.push_back(x[i + 2] * stride);
    else
      shape.push_back(stride * (x[i + 2] - 1) + extra[i] + reach_of(w[i + 2], g.dilations[i]) - g.pads[i] -
                      g.pads[i + spatial]);
  }
  return fact(c.dtype(0), std::move(shape));
}

std::vector<Fact> pool(const InferContext& c) {
  const size_t spatial = spatial_rank(c);
  const Windows g = windows(c, spatial);
  const std::vector<int64_t> kernel = c.ints("kernel", spatial, 1);
  Shape shape{c.shape(0)[0], c.shape(0)[1]};
  for (size_t i = 0; i < spatial; ++i)
    shape.push_back(window_count(c, g, i, c.shape(0)[i + 2], reach_of(kernel[i], g.dilations[i]),
                                 c.node.int_attr("ceil_mode", 0) != 0));
  return {fact(c.dtype(0), shape), fact(DType::kI64, shape)};
}

// An extent from a scale of the file: no larger than doubles count one by one.
Dim whole_extent(const InferContext& c, double extent) {
  c.require(extent >= 0 && extent <= 0x1p53, "a scale makes an extent that is no number of elements");
  return static_cast<int64_t>(extent);
}

// floor(extent * scale). Symbolic extents: where the scale is a whole number or a whole number over a power
// of two, which float products get exactly; other scales depend on rounding and are resolved when bound.
std::optional<Dim> scaled(const InferContext& c, const Dim& extent, double scale) {
  if (extent.is_const())
    return whole_extent(c, std::floor(static_cast<float>(extent.value()) * static_cast<float>(scale)));
  for (int64_t denominator = 1; denominator <= 64; denominator *= 2) {
    const double numerator = scale * static_cast<double>(denominator);
    if (numerator == std::floor(numerator) && numerator >= 0 && numerator < 1e6)
      return floor_div(extent * Dim(static_cast<int64_t>(numerator)), denominator);
  }
  return std::nullopt;
}

// Sizes under keep_aspect_ratio_policy: one scale for all axes, the smallest or the largest that the sizes
// ask for.
std::optional<std::vector<Dim>> keep_aspect(const InferContext& c, const std::string& policy,
                                            const std::vector<Dim>& extents, const std::vector<Dim>& sizes) {
  if (!is_static(extents) || !is_static(sizes)) return std::nullopt;
  double scale = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const double s = static_cast<double>(sizes[i].value()) / static_cast<double>(extents[i].value());
    if (i == 0 || (policy == "not_larger" ? s < scale : s > scale)) scale = s;
  }
  std::vector<Dim> result;
  for (const Dim& d : extents)
    result.push_back(whole_extent(c, std::floor(scale * static_cast<double>(d.value()) + 0.5)));
  return result;
}

Fact resize(const InferContext& c) {
  Shape shape = c.shape(0);
  std::vector<int64_t> axes;
  if (c.node.has_attr("axes")) {
    axes = c.node.ints_attr("axes");
  } else {
    for (int64_t i = 0; i < c.rank(0); ++i) axes.push_back(i);
  }
  std::vector<Dim> extents;
  for (int64_t a : axes) {
    c.require(a >= 0 && a < c.rank(0), "an axis is outside the rank");
    extents.push_back(shape[static_cast<size_t>(a)]);
  }
  std::vector<std::optional<Dim>> found(axes.size());
  if (c.has(3)) {
    if (c.shape_operand_length(3) != static_cast<int64_t>(axes.size()))
      c.fail(fmt::format("sizes has {} entries for {} axes", c.shape_operand_length(3), axes.size()));
    auto sizes = c.known(3);
    const std::string policy = c.node.string_attr("keep_aspect_ratio_policy", "stretch");
    if (sizes && policy != "stretch") sizes = keep_aspect(c, policy, extents, *sizes);
    if (sizes)
      for (size_t i = 0; i < axes.size(); ++i) found[i] = (*sizes)[i];
  } else if (const auto scales = c.numbers(2)) {
    if (scales->size() != axes.size())
      c.fail(fmt::format("scales has {} entries for {} axes", scales->size(), axes.size()));
    for (size_t i = 0; i < axes.size(); ++i) {
      c.require((*scales)[i] > 0, "a scale is not positive");
      found[i] = scaled(c, extents[i], (*scales)[i]);
    }
  } else {
    c.require(c.has(2), "has neither scales nor sizes");
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<size_t>(axes[i]);
    shape[a] = found[i] ? *found[i] : c.fresh(0, a);
  }
  return fact(c.dtype(0), std::move(shape));
}

Fact grid_sample(const InferContext& c) {
  const size_t spatial = spatial_rank(c);
  const Shape& grid = c.shape(1);
  c.require(grid.size() == spatial + 2, "grid and data differ in rank");
  unify(c, grid.back(), Dim(static_cast<int64_t>(spatial)));
  Shape shape{unify(c, c.shape(0)[0], grid[0]), c.shape(0)[1]};
  for (size_t i = 0; i < spatial; ++i) shape.push_back(grid[i + 1]);
  return fact(c.dtype(0), std::move(shape));
}

Fact roi_align(const InferContext& c) {
  c.require(c.rank(0) == 4 && c.rank(1) == 2 && c.rank(2) == 1,
            "needs data of rank 4, rois of rank 2, batch_indices of rank 1");
  return fact(c.dtype(0), {unify(c, c.shape(1)[0], c.shape(2)[0]), c.shape(0)[1],
                           c.node.int_attr("output_height", 1), c.node.int_attr("output_width", 1)});
}

}  // namespace

std::vector<Fact> infer_spatial(const InferContext& c) {
  switch (c.node.op) {
    case Op::conv:
      return {conv(c)};
    case Op::conv_transpose:
      return {conv_transpose(c)};
    case Op::pool:
      return pool(c);
    case Op::resize:
      return {resize(c)};
    case Op::grid_sample:
      return {grid_sample(c)};
    case Op::roi_align:
      return {roi_align(c)};
    default:
      throw Error(Code::kInternal, fmt::format("{} has no spatial axes", op_name(c.node.op)));
  }
}

}  // namespace thrice::ir
