// Geometry of sliding windows (conv, conv_transpose, pool) for kernels: extents, pads and positions of each
// spatial axis, auto_pad resolved at launch.
#pragma once
#include <vector>

#include "family/gemm.h"

namespace thrice::family {

struct WindowAxis {
  int64_t stride = 1, dilation = 1;
  Extent in, out, kernel;
  // Leading pad: a literal where it does not depend on extents.
  bool pad_is_const = true;
  int64_t pad = 0;
  Source pad_source;
  Source end_source;  // trailing pad
  // Every window lies inside the input: no position needs a check.
  bool always_inside = false;
  std::string pad_key;
};

struct Window {
  std::vector<WindowAxis> axes;  // one a spatial axis
  Index pad(Emitter& e, size_t axis) const;
  // out * stride - pad + tap * dilation (may be negative or beyond the input).
  Index position(Emitter& e, size_t axis, Index out, Index tap) const;
  // "0 <= p && p < in" over the axes that need it; "" when none does.
  std::string inside(Emitter& e, const std::vector<Index>& positions) const;
};

// `weights` gives kernel extents (axes 2...); kNoValue: attribute `kernel`.
Window make_window(const ir::Graph& graph, const ir::Node& node, ir::ValueId weights);

// Product of the extents of some axes of a value, as one extent.
Extent product_of(const ir::Graph& graph, ir::ValueId value, int first, int last);

}  // namespace thrice::family
