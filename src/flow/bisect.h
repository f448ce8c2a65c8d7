// A release's run compared step by step with the float64 oracle: which region is wrong first.
#pragma once
#include <string>
#include <vector>

#include "exec/executor.h"
#include "ir/compare.h"

namespace thrice::flow {

struct StepCheck {
  size_t segment = 0, step = 0;
  std::string name, schedule;
  double error = 0, limit = 0;  // of the tensor with the largest error
  bool ok = true;
  std::string reason;  // where wrong; or, of an output, that it holds no finite number and agrees in what it
                       // holds instead
};
struct RunCheck {
  std::vector<StepCheck> outputs;  // one a model output
  std::vector<StepCheck>
      steps;  // with `bisect`: every region in order, up to and including the first wrong one
  bool ok = true;
};
// `bisect`: compares every region's results too, each against the oracle's value of the same tensor; the
// limit of a region is that of numerics.md with the error already present in its operands allowed for twice.
// Costs the whole model in float64 with all values kept.
RunCheck check_run(exec::Executor& executor, const std::vector<ir::Tensor>& inputs, bool bisect);

}  // namespace thrice::flow
