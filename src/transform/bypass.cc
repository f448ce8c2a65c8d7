#include <algorithm>
#include <numeric>

#include "transform/canonicalize.h"
#include "transform/rewrite.h"

namespace thrice::transform {
namespace {

using ir::Graph;
using ir::kNoValue;
using ir::Node;
using ir::Op;
using ir::ValueId;

bool all_elements(const Graph& graph, ValueId value, int64_t wanted) {
  if (value == kNoValue) return false;
  const auto& held = graph.value(value);
  if (held.known) {
    return std::all_of(held.known->begin(), held.known->end(),
                       [&](const ir::Dim& d) { return d == ir::Dim(wanted); });
  }
  if (!held.constant) return false;
  for (int64_t i = 0; i < held.constant->size(); ++i) {
    if (held.constant->as_int(i) != wanted) return false;
  }
  return true;
}

bool is_identity_perm(const std::vector<int64_t>& perm) {
  for (size_t i = 0; i < perm.size(); ++i) {
    if (perm[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

bool changes_nothing(const Graph& graph, const Node& node) {
  const ValueId in = node.inputs.empty() ? kNoValue : node.inputs[0];
  if (in == kNoValue || node.outputs.size() != 1 || node.outputs[0] == kNoValue) return false;
  const ir::Type &before = graph.value(in).type, &after = graph.value(node.outputs[0]).type;
  if (!(before == after)) return false;
  switch (node.op) {
    case Op::identity:
    case Op::cast:     // same dtype
    case Op::reshape:  // same extents, row-major
    case Op::expand:   // same extents
      return true;
    case Op::transpose:
      return is_identity_perm(node.ints_attr("perm"));
    case Op::concat:
      return node.inputs.size() == 1;
    case Op::slice:
      // The same extents after a step of 1 mean that nothing was cut off; a step of -1 would reverse.
      return node.inputs.size() == 4 && all_elements(graph, node.inputs[3], 1);
    case Op::tile:
      return node.inputs.size() == 2 && all_elements(graph, node.inputs[1], 1);
    case Op::pad:
      return node.inputs.size() >= 2 && all_elements(graph, node.inputs[1], 0);
    case Op::reduce:
      return node.ints_attr("axes").empty();
    default:
      return false;
  }
}

}  // namespace

int64_t bypass_identities(Graph& graph) {
  Replacements replacements(graph);
  for (Node& node : graph.nodes) {
    for (ValueId& input : node.inputs) input = replacements.of(input);
    if (changes_nothing(graph, node)) replacements.replace(graph, node.outputs[0], node.inputs[0]);
  }
  replacements.apply(graph);
  return replacements.count();
}

int64_t merge_views(Graph& graph) {
  int64_t changes = 0;
  for (Node& node : graph.nodes) {
    if (node.op != Op::transpose && node.op != Op::reshape) continue;
    const ir::NodeId before = graph.value(node.inputs[0]).producer;
    if (before < 0) continue;
    const Node& inner = graph.nodes[static_cast<size_t>(before)];
    if (inner.op != node.op) continue;
    if (node.op == Op::transpose) {
      const auto& first = inner.ints_attr("perm");
      const auto& second = node.ints_attr("perm");
      std::vector<int64_t> both;
      for (const int64_t axis : second) both.push_back(first[static_cast<size_t>(axis)]);
      node.attrs["perm"] = both;
    } else {
      const ir::Tensor* shape = constant_of(graph, node.inputs[1]);
      if (shape == nullptr) continue;
      bool has_zero = false;
      for (int64_t i = 0; i < shape->size(); ++i) has_zero = has_zero || shape->as_int(i) == 0;
      if (has_zero) continue;
    }
    node.inputs[0] = inner.inputs[0];
    ++changes;
  }
  return changes;
}

}  // namespace thrice::transform
