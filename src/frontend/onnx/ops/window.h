// Window attributes of convolutions and pools.
#pragma once
#include "frontend/onnx/node_context.h"

namespace thrice::frontend::onnx {

// strides, dilations, pads, auto_pad for `spatial` axes, with ONNX's defaults, checked for length and sign.
Attributes window_attributes(NodeContext& ctx, int64_t spatial);

}  // namespace thrice::frontend::onnx
