// What a region of a delta rule looks like: the operator alone, behind what can be inlined into its operands.
#pragma once
#include "family/emitter.h"

namespace thrice::family {

struct DeltaRuleForm {
  const ir::Node* node = nullptr;
  ir::ValueId q, k, v, g, beta, a_log, dt_bias, first, offsets;  // the last two may be kNoValue
  ir::ValueId last = ir::kNoValue;                               // last state, wanted or not
  int out = -1, last_out = -1;  // positions among the graph's outputs; -1: not wanted
  int64_t depth = 0;            // of q and k, a number
  double lower_bound = 0, epsilon = 0, scale = 0;
};

// Throws NotMatched with a sentence.
DeltaRuleForm find_delta_rule(const ir::Graph& graph);

}  // namespace thrice::family
