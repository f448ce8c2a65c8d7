// grid_sample and roi_align: reads at fractional positions.
#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <cmath>

#include "ir/evaluate_groups.h"
#include "ir/evaluate_strides.h"
#include "ir/evaluate_threads.h"

namespace thrice::ir {
namespace {

// ---- grid_sample: any number of spatial axes; the last grid coordinate belongs to the first of them
// reversed.

enum class Padding { kZeros, kBorder, kReflection };
enum class Mode { kNearest, kLinear, kCubic };

struct Sampler {
  Mode mode;
  Padding padding;
  bool align_corners;
  std::vector<int64_t> extents;  // spatial extents of x
  std::vector<int64_t> strides;
};

double reflect(double x, double low, double high) {
  const double range = high - low;
  if (!(range > 0) || !std::isfinite(x)) return low;
  const double away = x < low ? low - x : x > high ? x - high : 0;
  if (away == 0) return x;
  const double turns = std::floor(away / range), rest = away - turns * range;
  const bool even = std::fmod(turns, 2) == 0;
  return (x < low) == even ? low + rest : high - rest;
}

double low_of(const Sampler& s) { return s.align_corners ? 0 : -0.5; }
double high_of(const Sampler& s, size_t d) {
  return static_cast<double>(s.extents[d]) - (s.align_corners ? 1 : 0.5);
}

double position_of(const Sampler& s, size_t d, double n) {
  const auto extent = static_cast<double>(s.extents[d]);
  double x = s.align_corners ? (n + 1) / 2 * (extent - 1) : ((n + 1) * extent - 1) / 2;
  if (s.mode == Mode::kNearest) x = std::nearbyint(x);
  if (x >= low_of(s) && x <= high_of(s, d)) return x;
  if (s.padding == Padding::kBorder) return std::clamp(x, 0.0, extent - 1);
  if (s.padding == Padding::kReflection) return reflect(x, low_of(s), high_of(s, d));
  return x;
}

// Index of a neighbour along axis d after padding; -1 reads zero.
int64_t neighbour(const Sampler& s, size_t d, double at) {
  const int64_t extent = s.extents[d];
  if (at >= 0 && at < static_cast<double>(extent)) return static_cast<int64_t>(at);
  if (s.padding == Padding::kZeros || std::isnan(at)) return -1;
  if (s.padding == Padding::kReflection) at = std::trunc(reflect(at, low_of(s), high_of(s, d)));
  return static_cast<int64_t>(std::clamp(at, 0.0, static_cast<double>(extent - 1)));
}

void weights_of(Mode mode, double x, double& first, std::vector<double>& w) {
  constexpr double kA = -0.75;
  const double below = std::floor(x), r = x - below;
  if (mode == Mode::kNearest) {
    first = std::trunc(x);
    w = {1};
  } else if (mode == Mode::kLinear) {
    first = below;
    w = {1 - r, r};
  } else {
    const auto inner = [&](double t) { return ((kA + 2) * t - (kA + 3)) * t * t + 1; };
    const auto outer = [&](double t) { return ((kA * t - 5 * kA) * t + 8 * kA) * t - 4 * kA; };
    first = below - 1;
    w = {outer(r + 1), inner(r), inner(1 - r), outer(2 - r)};
  }
}

// Weighted sum over the neighbours of one grid point, in one channel.
double blend(const Sampler& s, const std::vector<std::vector<int64_t>>& index,
             const std::vector<std::vector<double>>& weight, const double* plane, size_t d, int64_t at) {
  if (d == s.extents.size()) return plane[at];
  double sum = 0;
  for (size_t k = 0; k < weight[d].size(); ++k)
    if (index[d][k] >= 0 && weight[d][k] != 0)
      sum += weight[d][k] * blend(s, index, weight, plane, d + 1, at + index[d][k] * s.strides[d]);
  return sum;
}

ArrayPtr grid_sample(const Node& node, const Array& x, const Array& grid) {
  const size_t axes = x.shape.size() < 3 ? 0 : x.shape.size() - 2;
  if (axes == 0 || grid.shape.size() != axes + 2 || grid.shape.back() != static_cast<int64_t>(axes) ||
      grid.shape[0] != x.shape[0] || !lives_in_f(x.dtype) || !lives_in_f(grid.dtype))
    bad_node(node, "x and grid do not fit");
  const std::string mode = node.string_attr("mode", "linear"),
                    padding = node.string_attr("padding_mode", "zeros");
  Sampler s{mode == "nearest"                      ? Mode::kNearest
            : mode == "cubic" || mode == "bicubic" ? Mode::kCubic
                                                   : Mode::kLinear,
            padding == "border"       ? Padding::kBorder
            : padding == "reflection" ? Padding::kReflection
                                      : Padding::kZeros,
            node.int_attr("align_corners", 0) != 0,
            {x.shape.begin() + 2, x.shape.end()},
            {}};
  s.strides = row_major_strides(s.extents);
  std::vector<int64_t> shape{x.shape[0], x.shape[1]};
  shape.insert(shape.end(), grid.shape.begin() + 1, grid.shape.end() - 1);
  auto out = make_array(x.dtype, shape);
  if (out->size() == 0) return out;
  if (x.size() == 0) bad_node(node, "nothing to sample from");
  const int64_t points = out->size() / x.shape[0] / x.shape[1], channels = x.shape[1];
  const int64_t plane = x.size() / x.shape[0] / channels;
  parallel_for(x.shape[0] * points, channels * 20, [&](int64_t begin, int64_t end) {
    std::vector<std::vector<int64_t>> index(axes);
    std::vector<std::vector<double>> weight(axes);
    for (int64_t p = begin; p < end; ++p) {
      const int64_t n = p / points;
      for (size_t d = 0; d < axes; ++d) {
        double first = 0;
        weights_of(s.mode, position_of(s, d, grid.f[static_cast<size_t>(p) * axes + axes - 1 - d]), first,
                   weight[d]);
        index[d].clear();
        for (size_t k = 0; k < weight[d].size(); ++k)
          index[d].push_back(neighbour(s, d, first + static_cast<double>(k)));
      }
      for (int64_t c = 0; c < channels; ++c)
        out->f[static_cast<size_t>((n * channels + c) * points + p % points)] =
            blend(s, index, weight, x.f.data() + (n * channels + c) * plane, 0, 0);
    }
  });
  return out;
}

// ---- roi_align

struct Corner {
  int64_t at[4];
  double weight[4];
};

Corner corner_at(double y, double x, int64_t height, int64_t width) {
  Corner c{};
  if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width))) return c;
  y = std::max(y, 0.0);
  x = std::max(x, 0.0);
  auto y0 = static_cast<int64_t>(y), x0 = static_cast<int64_t>(x);
  int64_t y1 = y0 + 1, x1 = x0 + 1;
  if (y0 >= height - 1) y0 = y1 = height - 1, y = static_cast<double>(y0);
  if (x0 >= width - 1) x0 = x1 = width - 1, x = static_cast<double>(x0);
  const double ly = y - static_cast<double>(y0), lx = x - static_cast<double>(x0), hy = 1 - ly, hx = 1 - lx;
  return {{y0 * width + x0, y0 * width + x1, y1 * width + x0, y1 * width + x1},
          {hy * hx, hy * lx, ly * hx, ly * lx}};
}

constexpr int64_t kMostPoints = 1 << 22;  // that one element may take: a region of 2048 by 2048 pixels

ArrayPtr roi_align(const Node& node, const Array& x, const Array& rois, const Array& batches) {
  if (x.shape.size() != 4 || rois.shape.size() != 2 || rois.shape[1] != 4 ||
      batches.size() != rois.shape[0] || !lives_in_f(x.dtype) || !lives_in_f(rois.dtype))
    bad_node(node, "x [N, C, H, W], rois [R, 4] and batch_indices [R] do not fit");
  const int64_t height = node.int_attr("output_height", 1), width = node.int_attr("output_width", 1);
  const int64_t ratio = node.int_attr("sampling_ratio", 0), channels = x.shape[1], h = x.shape[2],
                w = x.shape[3];
  const double scale = node.float_attr("spatial_scale", 1.0);
  const bool half_pixel = node.string_attr("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const bool average = node.string_attr("mode", "avg") == "avg";
  auto out = make_array(x.dtype, {rois.shape[0], channels, height, width});
  if (out->size() == 0) return out;
  if (h * w == 0) bad_node(node, "nothing to sample from");
  std::vector<Corner> corners;
  for (int64_t r = 0; r < rois.shape[0]; ++r) {
    const double* roi = rois.f.data() + r * 4;
    const double offset = half_pixel ? 0.5 : 0.0;
    const double x0 = roi[0] * scale - offset, y0 = roi[1] * scale - offset;
    double roi_w = roi[2] * scale - offset - x0, roi_h = roi[3] * scale - offset - y0;
    if (!half_pixel) roi_w = std::max(roi_w, 1.0), roi_h = std::max(roi_h, 1.0);
    const int64_t batch = batches.i[static_cast<size_t>(r)];
    if (batch < 0 || batch >= x.shape[0])
      bad_node(node, fmt::format("batch index {} is out of range", batch));
    const double bin_h = roi_h / static_cast<double>(height), bin_w = roi_w / static_cast<double>(width);
    if (!(std::fabs(bin_h) < 1e6 && std::fabs(bin_w) < 1e6))
      bad_node(node, "a region is not finite or absurdly large");
    const int64_t gh = ratio > 0 ? ratio : static_cast<int64_t>(std::ceil(bin_h));
    const int64_t gw = ratio > 0 ? ratio : static_cast<int64_t>(std::ceil(bin_w));
    if (gh > kMostPoints || gw > kMostPoints || gh * gw > kMostPoints)
      bad_node(node, "a region takes absurdly many points for one element");
    const double count = static_cast<double>(std::max<int64_t>(gh * gw, 1));
    for (int64_t ph = 0; ph < height; ++ph)
      for (int64_t pw = 0; pw < width; ++pw) {
        corners.clear();
        for (int64_t iy = 0; iy < gh; ++iy)
          for (int64_t ix = 0; ix < gw; ++ix)
            corners.push_back(corner_at(y0 + static_cast<double>(ph) * bin_h +
                                            (static_cast<double>(iy) + 0.5) * bin_h / static_cast<double>(gh),
                                        x0 + static_cast<double>(pw) * bin_w +
                                            (static_cast<double>(ix) + 0.5) * bin_w / static_cast<double>(gw),
                                        h, w));
        for (int64_t c = 0; c < channels; ++c) {
          const double* plane = x.f.data() + (batch * channels + c) * h * w;
          double sum = 0, top = -std::numeric_limits<double>::infinity();
          for (const Corner& k : corners)
            for (int j = 0; j < 4; ++j) {
              const double v = k.weight[j] * plane[k.at[j]];
              sum += v;
              top = std::max(top, v);
            }
          out->f[static_cast<size_t>(((r * channels + c) * height + ph) * width + pw)] = average ? sum / count
                                                                                         : corners.empty()
                                                                                             ? 0
                                                                                             : top;
        }
      }
  }
  return out;
}

}  // namespace

Results evaluate_sample(const Node& node, const Operands& operands) {
  const Array& x = operand(node, operands, 0);
  const Array& where = operand(node, operands, 1);
  if (node.op == Op::grid_sample) return {grid_sample(node, x, where)};
  return {roi_align(node, x, where, operand(node, operands, 2))};
}

}  // namespace thrice::ir
