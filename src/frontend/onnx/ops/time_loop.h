// A loop over the first axis of some values: written out for short sequences of known length, a `scan`
// otherwise.
#pragma once
#include <functional>
#include <vector>

#include "frontend/onnx/ops/expr.h"

namespace thrice::frontend::onnx {

struct TimeLoop {
  std::vector<Expr> sequences;  // at least one; time is their first axis
  std::vector<Expr> carried;    // initial state
  std::vector<Expr> fixed;      // read by every step
  bool reverse = false;         // the last step first; results stay in the order of time
};
struct TimeStep {
  std::vector<Expr> carried;
  std::optional<Expr> y;  // set by every step
};
// The function may be called in another graph than the caller's: it may use its arguments only.
using StepFunction = std::function<TimeStep(const std::vector<Expr>& fixed, const std::vector<Expr>& carried,
                                            const std::vector<Expr>& now)>;
// Last state, and y of all steps along a new first axis.
TimeStep over_time(const TimeLoop& loop, const StepFunction& step);

}  // namespace thrice::frontend::onnx
