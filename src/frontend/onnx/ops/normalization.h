// Normalizations that other operators share.
#pragma once
#include <vector>

#include "frontend/onnx/ops/expr.h"

namespace thrice::frontend::onnx {

// Mean and population variance over `axes`, lengths kept as 1. The variance is the mean of the squared
// centred values: the difference of two large means would cancel.
struct Moments {
  Expr mean, centred, variance;
};
Moments moments(const Expr& x, const std::vector<int64_t>& axes);

// LayerNormalization of x (already wide) from `axis` on, before scale and bias.
struct Normalized {
  Expr value, mean, inverse_deviation;
};
Normalized layer_normalized(const Expr& x, int64_t axis, double epsilon);

// 1 / sqrt(mean of squares over `axes` + epsilon) of x (already wide): RMS normalization before the scale.
Expr inverse_rms(const Expr& x, const std::vector<int64_t>& axes, double epsilon);

}  // namespace thrice::frontend::onnx
