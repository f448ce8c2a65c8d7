// The one measure of error (docs/numerics.md), used by tests, tuner, command line and reports.
#pragma once
#include "ir/evaluate.h"

namespace thrice::ir {

struct Comparison {
  double error = 0;  // max(||y-r||2/||r||2, max|y-r|/max|r|); +Inf where a class (NaN, Inf) differs or r is
                     // all zero and y is not
  double limit = 0;  // the limit that was applied
  bool ok =
      false;  // error <= limit AND every element within its bound AND compared > 0 or the tensor is empty
  int64_t compared = 0;      // elements in the norms
  int64_t worst_index = -1;  // flat index of the largest deviation, or of the first wrong class
  double worst_value = 0, worst_reference = 0;
  std::string reason;  // empty when ok; else one sentence
};

// Limits of numerics.md for an output (0 where it is no float: equal or wrong): base 1e-5 for f32;
// `ordinary_error` is the error of the ordinary operator in the output's dtype on the same inputs (negative =
// unknown). f32: max(min(1e-5, max(2 * ordinary, 2e-6)), 2 * ordinary where ordinary > 5e-6); f16/bf16: 1.5 x
// ordinary, or half an ulp-based 4 * eps when unknown.
double error_limit(DType dtype, double ordinary_error);

// Compares a result of the output's dtype against the float64 reference. Integers, bools and strings must be
// equal. `element_bound`, where given, bounds |y-r| of every element (same size as reference).
Comparison compare(const Tensor& result, const Array& reference, double limit,
                   const std::vector<double>* element_bound = nullptr);

// Every element agrees in class (NaN, or the same infinity) and none is a number: neither right nor wrong on
// these inputs. `compare` calls that a failure; a gate with several kinds of inputs asks the other kinds.
bool nothing_compared(const Comparison& comparison, const Tensor& result);

// ONNX's own rule for node tests: |y-r| <= atol + rtol*|r| with NaN equal to NaN; integers exact.
Comparison compare_onnx(const Tensor& result, const Tensor& expected, double rtol, double atol);

}  // namespace thrice::ir
