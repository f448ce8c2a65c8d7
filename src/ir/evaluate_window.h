// Geometry of sliding windows (conv, conv_transpose, pool): always three spatial axes, leading ones of
// extent 1.
#pragma once
#include <array>

#include "ir/evaluate_groups.h"

namespace thrice::ir {

struct Window {
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1};
  std::array<int64_t, 3> begin{0, 0, 0}, end{0, 0, 0};  // pads
  size_t axes = 0;                                      // real spatial axes; they are the last of the three

  int64_t in_size() const { return in[0] * in[1] * in[2]; }
  int64_t out_size() const { return out[0] * out[1] * out[2]; }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  std::vector<int64_t> out_shape(int64_t n, int64_t channels) const;  // [n, channels, real spatial extents]
};

// Strides, dilations and pads from attributes for x [N, C, spatial...] (1 to 3 axes). in and kernel are set;
// auto_pad is resolved; out is the convolution's (rounded down) or, with ceil_mode, pooling's.
Window make_window(const Node& node, const std::vector<int64_t>& x_shape, const std::vector<int64_t>& kernel,
                   bool ceil_mode);

// Output positions [first, last) of one axis whose input position o*stride - begin + tap*dilation lies
// inside.
std::pair<int64_t, int64_t> valid_range(const Window& w, size_t axis, int64_t tap);

}  // namespace thrice::ir
