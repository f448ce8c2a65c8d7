// Softmax forms that other operators share.
#pragma once
#include <vector>

#include "frontend/onnx/ops/expr.h"

namespace thrice::frontend::onnx {

// Over `axes` together; the maximum is subtracted first. 16-bit floats are computed in f32 by the caller. A
// row of -Inf gives NaN, as the formula does.
Expr softmax(const Expr& x, const std::vector<int64_t>& axes);
Expr log_softmax(const Expr& x, const std::vector<int64_t>& axes);

}  // namespace thrice::frontend::onnx
