// The scan whose step is a gated delta rule: `scan_sum` of kind "delta_rule" (docs/ops.md). Operands in
// order, the last two optional: q, k, v, g, beta, a_log, dt_bias, first state, offsets. Results: o, last
// state.
#pragma once
#include "ir/graph.h"

namespace thrice::ir {

inline constexpr size_t kDeltaRuleFirst = 7, kDeltaRuleOffsets = 8;

inline bool is_delta_rule(const Node& node) {
  return node.op == Op::scan_sum && node.string_attr("kind", "sum") == "delta_rule";
}

}  // namespace thrice::ir
