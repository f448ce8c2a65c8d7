// conv_transpose: one product gives every tap of every input position, which is then added where it lands.
#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>

#include "ir/evaluate_gemm.h"
#include "ir/evaluate_threads.h"
#include "ir/evaluate_window.h"

namespace thrice::ir {
namespace {

// Here `in` is the small side (x) and `out` the large one; position i*stride - begin + tap*dilation of out
// gets x[i].
Window transposed_window(const Node& node, const std::vector<int64_t>& x_shape,
                         const std::vector<int64_t>& kernel) {
  Window w;
  if (x_shape.size() < 3 || x_shape.size() > 5) bad_node(node, "needs 1 to 3 spatial axes");
  w.axes = kernel.size();
  const std::vector<int64_t> ones(w.axes, 1), zeros(2 * w.axes, 0), none(w.axes, 0);
  const auto strides = ints_or(node, "strides", ones), dilations = ints_or(node, "dilations", ones);
  const auto pads = ints_or(node, "pads", zeros), extra = ints_or(node, "output_padding", none);
  auto wanted = ints_or(node, "output_shape", {});
  const std::string auto_pad = node.string_attr("auto_pad", "notset");
  if (wanted.size() == w.axes + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (strides.size() != w.axes || dilations.size() != w.axes || pads.size() != 2 * w.axes ||
      extra.size() != w.axes || (!wanted.empty() && wanted.size() != w.axes))
    bad_node(node, "strides, dilations, pads, output_padding or output_shape have the wrong length");
  for (size_t k = 0; k < w.axes; ++k) {
    const size_t d = 3 - w.axes + k;
    w.in[d] = x_shape[2 + k];
    w.kernel[d] = kernel[k];
    w.stride[d] = strides[k];
    w.dilation[d] = dilations[k];
    if (strides[k] < 1 || dilations[k] < 1) bad_node(node, "strides and dilations must be positive");
    const int64_t full = strides[k] * (w.in[d] - 1) + extra[k] + dilations[k] * (kernel[k] - 1) + 1;
    w.begin[d] = pads[k];
    w.out[d] = full - pads[k] - pads[k + w.axes];
    const bool same = auto_pad == "same_upper" || auto_pad == "same_lower";
    if (!wanted.empty() || same) {
      w.out[d] = wanted.empty() ? w.in[d] * strides[k] : wanted[k];
      const int64_t total = std::max<int64_t>(0, full - w.out[d]);
      w.begin[d] = auto_pad == "same_upper" ? total / 2 : total - total / 2;
    } else if (auto_pad == "valid") {
      w.begin[d] = 0;
      w.out[d] = full;
    }
    w.out[d] = std::max<int64_t>(0, w.out[d]);
  }
  return w;
}

// Input positions of one axis whose landing place for `tap` lies inside the output.
std::pair<int64_t, int64_t> landing_range(const Window& w, size_t axis, int64_t tap) {
  const int64_t shift = tap * w.dilation[axis] - w.begin[axis], s = w.stride[axis];
  const int64_t first = shift >= 0 ? 0 : (-shift + s - 1) / s;
  const int64_t room = w.out[axis] - 1 - shift;
  const int64_t last = room < 0 ? 0 : room / s + 1;
  return {first, std::min(last, w.in[axis])};
}

template <class T>
void scatter_taps(const Window& w, const T* products, T* out) {
  for (int64_t kd = 0; kd < w.kernel[0]; ++kd)
    for (int64_t kh = 0; kh < w.kernel[1]; ++kh)
      for (int64_t kw = 0; kw < w.kernel[2]; ++kw, products += w.in_size()) {
        const auto [d0, d1] = landing_range(w, 0, kd);
        const auto [h0, h1] = landing_range(w, 1, kh);
        const auto [w0, w1] = landing_range(w, 2, kw);
        for (int64_t d = d0; d < d1; ++d)
          for (int64_t h = h0; h < h1; ++h) {
            const int64_t od = d * w.stride[0] - w.begin[0] + kd * w.dilation[0];
            const int64_t oh = h * w.stride[1] - w.begin[1] + kh * w.dilation[1];
            const T* from = products + (d * w.in[1] + h) * w.in[2];
            T* to = out + (od * w.out[1] + oh) * w.out[2] + kw * w.dilation[2] - w.begin[2];
            for (int64_t i = w0; i < w1; ++i) to[i * w.stride[2]] += from[i];
          }
      }
}

template <class T>
void transposed(const Window& w, int64_t batch, int64_t channels, int64_t outputs, int64_t group,
                const std::vector<T>& x, const std::vector<T>& weights, const std::vector<T>* bias,
                std::vector<T>& out) {
  const int64_t cg = channels / group, og = outputs / group, taps = w.taps(), positions = w.in_size();
  const int64_t slice = std::min<int64_t>(og, 8), slices = (og + slice - 1) / slice;
  if (bias != nullptr)
    for (int64_t piece = 0; piece < batch * outputs; ++piece)
      std::fill_n(out.begin() + piece * w.out_size(), w.out_size(),
                  (*bias)[static_cast<size_t>(piece % outputs)]);
  if (out.empty() || x.empty() || weights.empty()) return;
  parallel_for(batch * group * slices, slice * taps * positions * cg / 4, [&](int64_t begin, int64_t end) {
    std::vector<T> products;
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t s = piece % slices, g = piece / slices % group, n = piece / slices / group;
      const int64_t first = s * slice, count = std::min(slice, og - first);
      products.assign(static_cast<size_t>(count * taps * positions), T{0});
      // weights [C, O/group, taps]: row (o, tap) of the transposed matrix has stride 1, column c one channel.
      gemm(count * taps, positions, cg,
           MatrixView<T>{weights.data() + (g * cg * og + first) * taps, 1, og * taps},
           MatrixView<T>{x.data() + (n * channels + g * cg) * positions, positions, 1}, products.data(),
           positions);
      for (int64_t o = 0; o < count; ++o)
        scatter_taps(w, products.data() + o * taps * positions,
                     out.data() + (n * outputs + g * og + first + o) * w.out_size());
    }
  });
}

}  // namespace

Results evaluate_conv_transpose(const Node& node, const Operands& operands) {
  const Array& x = operand(node, operands, 0);
  const Array& weights = operand(node, operands, 1);
  const Array* bias = has_operand(operands, 2) ? operands[2].get() : nullptr;
  if (x.shape.size() < 3 || weights.shape.size() != x.shape.size())
    bad_node(node, "x and weights need the same rank, 3 to 5");
  if (x.dtype != weights.dtype || lives_in_s(x.dtype)) bad_node(node, "operands need one numeric dtype");
  const int64_t group = node.int_attr("group", 1), channels = x.shape[1], outputs = weights.shape[1] * group;
  if (group < 1 || channels != weights.shape[0] || channels % group != 0)
    bad_node(node, fmt::format("{} channels, weights for {} and {} groups do not fit", channels,
                               weights.shape[0], group));
  if (bias != nullptr && bias->size() != outputs) bad_node(node, "bias does not match the output channels");
  const Window w = transposed_window(node, x.shape, {weights.shape.begin() + 2, weights.shape.end()});
  auto out = make_array(x.dtype, w.out_shape(x.shape[0], outputs));
  if (lives_in_f(x.dtype)) {
    transposed(w, x.shape[0], channels, outputs, group, x.f, weights.f, bias != nullptr ? &bias->f : nullptr,
               out->f);
  } else {
    transposed(w, x.shape[0], channels, outputs, group, x.i, weights.i, bias != nullptr ? &bias->i : nullptr,
               out->i);
    for (int64_t& v : out->i) v = wrap_to(x.dtype, v);
  }
  return {out};
}

}  // namespace thrice::ir
