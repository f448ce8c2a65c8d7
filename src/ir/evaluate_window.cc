#include "ir/evaluate_window.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>

#include "ir/infer.h"

namespace thrice::ir {

std::vector<int64_t> Window::out_shape(int64_t n, int64_t channels) const {
  std::vector<int64_t> shape{n, channels};
  shape.insert(shape.end(), out.end() - static_cast<std::ptrdiff_t>(axes), out.end());
  return shape;
}

Window make_window(const Node& node, const std::vector<int64_t>& x_shape, const std::vector<int64_t>& kernel,
                   bool ceil_mode) {
  Window w;
  if (x_shape.size() < 3 || x_shape.size() > 5 || kernel.size() + 2 != x_shape.size())
    bad_node(node, "needs 1 to 3 spatial axes and a kernel extent for each");
  w.axes = kernel.size();
  const std::vector<int64_t> ones(w.axes, 1), zeros(2 * w.axes, 0);
  const auto strides = ints_or(node, "strides", ones), dilations = ints_or(node, "dilations", ones);
  const auto pads = ints_or(node, "pads", zeros);
  if (strides.size() != w.axes || dilations.size() != w.axes || pads.size() != 2 * w.axes)
    bad_node(node, "strides, dilations or pads have the wrong length");
  const std::string auto_pad = node.string_attr("auto_pad", "notset");
  for (size_t k = 0; k < w.axes; ++k) {
    const size_t d = 3 - w.axes + k;
    w.in[d] = x_shape[2 + k];
    w.kernel[d] = kernel[k];
    w.stride[d] = strides[k];
    w.dilation[d] = dilations[k];
    if (kernel[k] < 1 || strides[k] < 1 || dilations[k] < 1)
      bad_node(node, "kernel, strides and dilations must be positive");
    std::tie(w.begin[d], w.end[d]) =
        resolve_pads(auto_pad, w.in[d], kernel[k], strides[k], dilations[k], pads[k], pads[k + w.axes]);
    const int64_t room = w.in[d] + w.begin[d] + w.end[d] - dilations[k] * (kernel[k] - 1) - 1;
    if (room < 0) {
      w.out[d] = 0;
      continue;
    }
    w.out[d] = (room + (ceil_mode ? strides[k] - 1 : 0)) / strides[k] + 1;
    if (ceil_mode && (w.out[d] - 1) * strides[k] >= w.in[d] + w.begin[d]) --w.out[d];
  }
  return w;
}

std::pair<int64_t, int64_t> valid_range(const Window& w, size_t axis, int64_t tap) {
  const int64_t shift = tap * w.dilation[axis] - w.begin[axis], s = w.stride[axis];
  const int64_t first = shift >= 0 ? 0 : (-shift + s - 1) / s;
  const int64_t room = w.in[axis] - 1 - shift;  // largest o*stride that still fits
  const int64_t last = room < 0 ? 0 : room / s + 1;
  return {std::min(first, w.out[axis]), std::max(std::min(first, w.out[axis]), std::min(last, w.out[axis]))};
}

}  // namespace thrice::ir
