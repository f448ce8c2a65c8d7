// Graph -> better graph: same inputs, outputs and names, same results within numerics.md.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace thrice::transform {

struct TransformOptions {
  // A folded constant may have so many bytes; larger ones only where they take no more memory than what they
  // replace.
  int64_t max_folded_bytes = int64_t{1} << 20;
  bool fold_conv_scale = true;  // per-channel scale and shift behind a convolution go into its weights
  // One line a pass: "fold: 12 changes", "(unchanged)". May be empty.
  std::function<void(const std::string&)> log;
};

struct PassReport {
  std::string pass;
  int64_t changes = 0;  // nodes removed or replaced, over all rounds
};

// Runs all passes, in rounds until none changes anything, bodies of control nodes included; then drops what
// is dead, numbers values and nodes anew and infers. Never assumes that x*0 is 0 or x-x is 0 (Inf and NaN are
// values). Graph outputs keep a node of their own. Errors: those of evaluation for an operand that is out of
// range.
std::vector<PassReport> run_transforms(ir::Graph& graph, const TransformOptions& options = {});

}  // namespace thrice::transform
