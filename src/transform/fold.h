// Constant folding. Runs first in a round: it makes shape operands and weights constant, on which the other
// passes decide.
#pragma once
#include <cstdint>

#include "ir/graph.h"

namespace thrice::transform {

// Replaces results of nodes whose operands are all constants by constants (evaluated in float64, rounded
// once, as the oracle does), and integer results whose elements inference knows as numbers. Random and host
// functions are never folded. A result above `max_bytes` is folded only where it takes no more bytes than the
// operands that nobody else reads. Where evaluation refuses, the node stays. Returns the number of values
// made constant.
int64_t fold_constants(ir::Graph& graph, int64_t max_bytes);

}  // namespace thrice::transform
