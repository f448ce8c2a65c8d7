#include "family/delta_rule/delta_rule_form.h"

#include <cmath>

#include "ir/delta_rule.h"

namespace thrice::family {

namespace {

int output_of(const ir::Graph& graph, ir::ValueId value) {
  for (size_t o = 0; o < graph.outputs.size(); ++o)
    if (graph.outputs[o] == value) return static_cast<int>(o);
  return -1;
}

}  // namespace

DeltaRuleForm find_delta_rule(const ir::Graph& graph) {
  DeltaRuleForm form;
  for (const ir::Node& node : graph.nodes) {
    if (!ir::is_delta_rule(node)) continue;
    if (form.node != nullptr) throw NotMatched{"more than one delta rule in the region"};
    form.node = &node;
  }
  if (form.node == nullptr) throw NotMatched{"there is no delta rule"};
  const ir::Node& node = *form.node;
  const auto operand = [&](size_t i) { return i < node.inputs.size() ? node.inputs[i] : ir::kNoValue; };
  form.q = operand(0);
  form.k = operand(1);
  form.v = operand(2);
  form.g = operand(3);
  form.beta = operand(4);
  form.a_log = operand(5);
  form.dt_bias = operand(6);
  form.first = operand(ir::kDeltaRuleFirst);
  form.offsets = operand(ir::kDeltaRuleOffsets);
  if (node.outputs.size() != 2 || node.outputs[1] == ir::kNoValue)
    throw NotMatched{"a delta rule has two results"};
  form.last = node.outputs[1];
  form.out = output_of(graph, node.outputs[0]);
  form.last_out = output_of(graph, form.last);
  for (const ir::ValueId y : graph.outputs)
    if (y != node.outputs[0] && y != form.last)
      throw NotMatched{"what comes after the operator is not fused with it"};
  const ir::Dim& depth = graph.value(form.q).type.shape[3];
  if (!depth.is_const() || depth.value() < 1 || depth.value() > 256)
    throw NotMatched{"heads of q and k must have a known width of 1 to 256"};
  form.depth = depth.value();
  form.lower_bound = node.float_attr("lower_bound", -5);
  form.epsilon = node.float_attr("epsilon", 1e-6);
  form.scale = node.float_attr("scale", 0);
  if (form.scale == 0) form.scale = 1 / std::sqrt(static_cast<double>(form.depth));
  return form;
}

}  // namespace thrice::family
