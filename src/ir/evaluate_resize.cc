// resize: every mode is separable, so each axis is one pass with a few weights an output index.
#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/evaluate_groups.h"
#include "ir/evaluate_threads.h"

namespace thrice::ir {
namespace {

struct Axis {
  int64_t in = 1, out = 1;
  double scale = 1;
  double roi_begin = 0, roi_end = 1;
  bool listed = false;  // named by `axes` (all, by default)
};

struct Options {
  std::string mode, coordinates, nearest, policy;
  double cubic_a, extrapolation;
  bool exclude_outside, antialias;
};

// One output index of one axis: neighbours (clamped to the edge) with weights, or the extrapolation value.
struct Taps {
  std::vector<int64_t> index;
  std::vector<double> weight;
  bool outside = false;
};

double source_position(const Axis& a, const Options& o, int64_t x, bool& outside) {
  const double out_width = a.scale * static_cast<double>(a.in), at = static_cast<double>(x);
  const double in = static_cast<double>(a.in);
  if (o.coordinates == "align_corners") return out_width == 1 ? 0 : at * (in - 1) / (out_width - 1);
  if (o.coordinates == "tf_half_pixel_for_nn") return (at + 0.5) / a.scale;
  if (o.coordinates == "asymmetric") return at / a.scale;
  if (o.coordinates == "pytorch_half_pixel") return a.out == 1 ? -0.5 : (at + 0.5) / a.scale - 0.5;
  if (o.coordinates == "half_pixel_symmetric") {
    const double adjustment = static_cast<double>(a.out) / out_width;
    return in / 2 * (1 - adjustment) + (at + 0.5) / a.scale - 0.5;
  }
  if (o.coordinates == "tf_crop_and_resize") {
    const double span = a.roi_end - a.roi_begin;
    double p = out_width == 1 ? span * (in - 1) / 2 : at * span * (in - 1) / (out_width - 1);
    p += a.roi_begin * (in - 1);
    outside = p < 0 || p > in - 1;
    return p;
  }
  return (at + 0.5) / a.scale - 0.5;  // half_pixel
}

double cubic_weight(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return a * (((x - 5) * x + 8) * x - 4);
  return 0;
}

// Weights of the neighbours from floor' - half + 1 on, where floor' + ratio = position and ratio is in (0,
// 1].
std::vector<double> weights_at(const Options& o, double ratio, double scale, int64_t& first) {
  std::vector<double> w;
  first = 0;
  if (o.mode == "nearest") {
    bool upper = ratio > 0.5;  // round_prefer_floor
    if (o.nearest == "round_prefer_ceil") upper = ratio >= 0.5;
    if (o.nearest == "floor") upper = false;
    if (o.nearest == "ceil") upper = true;
    if (ratio == 1) upper = true;
    return {upper ? 0.0 : 1.0, upper ? 1.0 : 0.0};
  }
  const bool cubic = o.mode == "cubic";
  const double s = o.antialias ? std::min(scale, 1.0) : 1.0;
  first = static_cast<int64_t>(std::floor((cubic ? -2 : -1) / s)) + 1;
  for (int64_t k = first; k < 2 - first; ++k) {
    const double x = s * (static_cast<double>(k) - ratio);
    w.push_back(cubic ? cubic_weight(x, o.cubic_a) : std::clamp(1 - std::fabs(x), 0.0, 1.0));
  }
  if (o.antialias) {
    const double sum = std::accumulate(w.begin(), w.end(), 0.0);
    for (double& v : w) v /= sum;
  }
  return w;
}

Taps taps_at(const Axis& a, const Options& o, int64_t x) {
  Taps t;
  const double p = source_position(a, o, x, t.outside);
  if (t.outside) return t;
  const double below =
      std::ceil(p) - 1;  // floor, but one less at whole numbers: the left neighbour is preferred
  int64_t first = 0;
  t.weight = weights_at(o, p - below, a.scale, first);
  double kept = 0;
  for (size_t k = 0; k < t.weight.size(); ++k) {
    const int64_t index = static_cast<int64_t>(below) + first + static_cast<int64_t>(k);
    if (o.exclude_outside && o.mode != "nearest" && (index < 0 || index >= a.in)) t.weight[k] = 0;
    kept += t.weight[k];
    t.index.push_back(std::clamp<int64_t>(index, 0, a.in - 1));
  }
  if (o.exclude_outside && o.mode != "nearest")
    for (double& w : t.weight) w /= kept;
  return t;
}

// One pass along `axis` of data with the given shape. `outside` marks output indices of this axis to be
// extrapolated.
std::vector<double> resize_axis(const std::vector<double>& in, std::vector<int64_t>& shape, size_t axis,
                                const std::vector<Taps>& taps) {
  int64_t outer = 1, inner = 1;
  for (size_t d = 0; d < axis; ++d) outer *= shape[d];
  for (size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
  const int64_t from = shape[axis], to = static_cast<int64_t>(taps.size());
  std::vector<double> out(static_cast<size_t>(outer * to * inner), 0.0);
  parallel_for(outer, to * inner * 2, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o)
      for (int64_t x = 0; x < to; ++x) {
        double* line = out.data() + (o * to + x) * inner;
        const Taps& t = taps[static_cast<size_t>(x)];
        for (size_t k = 0; k < t.index.size(); ++k) {
          if (t.weight[k] == 0) continue;  // so that a NaN beside the window stays outside
          const double* source = in.data() + (o * from + t.index[k]) * inner;
          for (int64_t i = 0; i < inner; ++i) line[i] += t.weight[k] * source[i];
        }
      }
  });
  shape[axis] = to;
  return out;
}

std::vector<Axis> axes_of(const Node& node, const Array& x, const Operands& operands, const Options& o) {
  const size_t rank = x.shape.size();
  std::vector<int64_t> listed(rank);
  std::iota(listed.begin(), listed.end(), int64_t{0});
  listed = ints_or(node, "axes", listed);
  std::vector<Axis> axes(rank);
  for (size_t d = 0; d < rank; ++d) axes[d].in = axes[d].out = x.shape[d];
  const auto values_of = [&](size_t i) -> const std::vector<double>* {
    return has_operand(operands, i) && !operands[i]->f.empty() ? &operands[i]->f : nullptr;
  };
  const std::vector<double>*roi = values_of(1), *scales = values_of(2);
  const bool sized = has_operand(operands, 3) && !operands[3]->i.empty();
  const size_t n = listed.size();
  if ((scales == nullptr) == !sized) bad_node(node, "needs either scales or sizes");
  if ((sized ? operands[3]->i.size() : scales->size()) != n)
    bad_node(node, "one scale or size an axis is needed");
  double chosen = 0;
  for (size_t k = 0; k < n; ++k) {
    const auto d = static_cast<size_t>(listed[k] < 0 ? listed[k] + static_cast<int64_t>(rank) : listed[k]);
    if (d >= rank) bad_node(node, "axis out of range");
    Axis& a = axes[d];
    a.listed = true;
    const auto in = static_cast<double>(a.in);
    a.scale = sized ? static_cast<double>(operands[3]->i[k]) / in : (*scales)[k];
    if (!(a.scale >= 0) || !(a.scale * in < 1e15))
      bad_node(node, "a scale is negative, absurdly large or not a number");
    a.out = sized ? operands[3]->i[k] : static_cast<int64_t>(std::floor(a.scale * in));
    chosen = k == 0                      ? a.scale
             : o.policy == "not_smaller" ? std::max(chosen, a.scale)
                                         : std::min(chosen, a.scale);
    if (roi != nullptr && roi->size() == 2 * n) {
      a.roi_begin = (*roi)[k];
      a.roi_end = (*roi)[k + n];
    }
  }
  if (sized && o.policy != "stretch")
    for (Axis& a : axes)
      if (a.listed) {
        a.scale = chosen;
        if (!(chosen * static_cast<double>(a.in) < 1e15)) bad_node(node, "sizes make an absurdly large axis");
        a.out = static_cast<int64_t>(chosen * static_cast<double>(a.in) + 0.5);
      }
  return axes;
}

}  // namespace

Results evaluate_resize(const Node& node, const Operands& operands) {
  const Array& x = operand(node, operands, 0);
  const Options o{node.string_attr("mode", "nearest"),
                  node.string_attr("coordinate_transformation_mode", "half_pixel"),
                  node.string_attr("nearest_mode", "round_prefer_floor"),
                  node.string_attr("keep_aspect_ratio_policy", "stretch"),
                  node.float_attr("cubic_coeff_a", -0.75),
                  node.float_attr("extrapolation_value", 0.0),
                  node.int_attr("exclude_outside", 0) != 0,
                  node.int_attr("antialias", 0) != 0};
  if (o.mode != "nearest" && o.mode != "linear" && o.mode != "cubic")
    bad_node(node, fmt::format("unknown mode '{}'", o.mode));
  if (lives_in_s(x.dtype)) bad_node(node, "not defined on strings");
  const std::vector<Axis> axes = axes_of(node, x, operands, o);
  std::vector<int64_t> shape = x.shape, final_shape;
  for (const Axis& a : axes) final_shape.push_back(a.out);
  auto out = make_array(x.dtype, final_shape);
  if (out->size() == 0) return {out};
  if (x.size() == 0) bad_node(node, "nothing to resize from");
  std::vector<double> data = lives_in_f(x.dtype) ? x.f : std::vector<double>(x.i.begin(), x.i.end());
  std::vector<std::vector<bool>> outside(axes.size());
  for (size_t d = 0; d < axes.size(); ++d) {
    const Axis& a = axes[d];
    if (!a.listed || (a.scale == 1 && a.in == a.out && o.coordinates != "tf_crop_and_resize")) continue;
    std::vector<Taps> taps;
    for (int64_t i = 0; i < a.out; ++i) taps.push_back(taps_at(a, o, i));
    for (const Taps& t : taps) outside[d].push_back(t.outside);
    data = resize_axis(data, shape, d, taps);
  }
  int64_t inner = out->size();
  for (size_t d = 0; d < axes.size(); ++d) {
    inner /= axes[d].out;
    if (std::find(outside[d].begin(), outside[d].end(), true) == outside[d].end()) continue;
    for (int64_t i = 0; i < out->size(); ++i)
      if (outside[d][static_cast<size_t>(i / inner % axes[d].out)])
        data[static_cast<size_t>(i)] = o.extrapolation;
  }
  if (lives_in_f(x.dtype))
    out->f = std::move(data);
  else
    for (size_t i = 0; i < data.size(); ++i) out->i[i] = wrap_to(x.dtype, clamp_to(DType::kI64, data[i]));
  return {out};
}

}  // namespace thrice::ir
