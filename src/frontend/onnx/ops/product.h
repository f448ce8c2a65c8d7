// Matrix products that other operators share.
#pragma once
#include "frontend/onnx/ops/expr.h"

namespace thrice::frontend::onnx {

// NumPy's matmul: vectors are rows on the left and columns on the right, their axis leaves the result.
Expr numpy_matmul(const Expr& a, const Expr& b);
// x - zero point in i32, so that products are exact. The zero point (absent, a scalar, or a vector along
// `axis`) may be that of an 8-bit or 16-bit type.
Expr centred_integer(const Expr& x, NodeContext& ctx, size_t zero_point_input, int64_t axis);

}  // namespace thrice::frontend::onnx
