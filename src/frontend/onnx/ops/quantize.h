// Rounding to quantized types, shared by QuantizeLinear and the QLinear operators.
#pragma once
#include "frontend/onnx/ops/expr.h"

namespace thrice::frontend::onnx {

// x (a float, already divided by its scale) to the type of `zero`: ties to even, zero point added, saturated.
// `zero` has one element, or broadcasts against x.
Expr requantized(const Expr& x, const Expr& zero);
// (x - zero) * scale in f32 for a quantized operand with scalar parameters at `scale_input` and `scale_input`
// + 1.
Expr dequantized(const Expr& x, NodeContext& ctx, size_t scale_input);

}  // namespace thrice::frontend::onnx
