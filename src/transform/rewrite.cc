#include "transform/rewrite.h"

#include <algorithm>

namespace thrice::transform {

using ir::Graph;
using ir::kNoValue;
using ir::Node;
using ir::ValueId;

bool is_output(const Graph& graph, ValueId value) {
  return std::find(graph.outputs.begin(), graph.outputs.end(), value) != graph.outputs.end();
}

Replacements::Replacements(const Graph& graph) : target_(graph.values.size()) {
  for (size_t i = 0; i < target_.size(); ++i) target_[i] = static_cast<ValueId>(i);
}

ValueId Replacements::of(ValueId value) const {
  if (value == kNoValue || static_cast<size_t>(value) >= target_.size())
    return value;  // made by the pass itself
  return target_[static_cast<size_t>(value)];
}

bool Replacements::replace(Graph& graph, ValueId from, ValueId to) {
  to = of(to);
  if (from == to) return false;
  if (is_output(graph, from)) {
    if (graph.value(to).producer < 0 || is_output(graph, to)) return false;
    std::replace(graph.outputs.begin(), graph.outputs.end(), from, to);
  }
  for (ValueId& target : target_) {
    if (target == from) target = to;
  }
  ++count_;
  return true;
}

void Replacements::apply(Graph& graph) const {
  if (count_ == 0) return;
  for (Node& node : graph.nodes) {
    for (ValueId& input : node.inputs) input = of(input);
  }
}

void exchange_nodes(Graph& graph, std::vector<Node> nodes) {
  graph.nodes = std::move(nodes);
  for (auto& value : graph.values) value.producer = -1;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const ValueId output : graph.nodes[n].outputs) {
      if (output != kNoValue) graph.value(output).producer = static_cast<ir::NodeId>(n);
    }
  }
}

int64_t remove_dead(Graph& graph) {
  std::vector<bool> needed(graph.values.size(), false);
  for (const ValueId output : graph.outputs) needed[static_cast<size_t>(output)] = true;
  std::vector<Node> kept;
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    Node& node = graph.nodes[n];
    bool live = false;
    for (const ValueId output : node.outputs)
      live = live || (output != kNoValue && needed[static_cast<size_t>(output)]);
    if (!live) continue;
    // Results of control nodes stay: their count is the bodies' business.
    if (ir::op_class(node.op) != ir::OpClass::kControl) {
      for (ValueId& output : node.outputs) {
        if (output != kNoValue && !needed[static_cast<size_t>(output)]) output = kNoValue;
      }
    }
    for (const ValueId input : node.inputs) {
      if (input != kNoValue) needed[static_cast<size_t>(input)] = true;
    }
    kept.push_back(std::move(node));
  }
  const auto removed = static_cast<int64_t>(graph.nodes.size() - kept.size());
  std::reverse(kept.begin(), kept.end());
  exchange_nodes(graph, std::move(kept));
  return removed;
}

void compact(Graph& graph) {
  std::vector<bool> used(graph.values.size(), false);
  std::vector<bool> origin_used(graph.origins.size(), false);
  const auto mark = [&](ValueId value) {
    if (value != kNoValue) used[static_cast<size_t>(value)] = true;
  };
  for (const Node& node : graph.nodes) {
    for (const ValueId input : node.inputs) mark(input);
    for (const ValueId output : node.outputs) mark(output);
    if (node.origin >= 0) origin_used[static_cast<size_t>(node.origin)] = true;
  }
  for (const ValueId input : graph.inputs) mark(input);
  for (const ValueId output : graph.outputs) mark(output);

  std::vector<ValueId> number(graph.values.size(), kNoValue);
  std::vector<ir::Value> values;
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) continue;
    number[i] = static_cast<ValueId>(values.size());
    values.push_back(std::move(graph.values[i]));
  }
  graph.values = std::move(values);
  std::vector<int32_t> origin_number(graph.origins.size(), -1);
  std::vector<ir::Origin> origins;
  for (size_t i = 0; i < origin_used.size(); ++i) {
    if (!origin_used[i]) continue;
    origin_number[i] = static_cast<int32_t>(origins.size());
    origins.push_back(std::move(graph.origins[i]));
  }
  graph.origins = std::move(origins);
  const auto renumber = [&](std::vector<ValueId>& list) {
    for (ValueId& value : list) {
      if (value != kNoValue) value = number[static_cast<size_t>(value)];
    }
  };
  for (Node& node : graph.nodes) {
    renumber(node.inputs);
    renumber(node.outputs);
    if (node.origin >= 0) node.origin = origin_number[static_cast<size_t>(node.origin)];
  }
  renumber(graph.inputs);
  renumber(graph.outputs);
}

const ir::Tensor* constant_of(const Graph& graph, ValueId value) {
  if (value == kNoValue) return nullptr;
  const auto& constant = graph.value(value).constant;
  return constant ? &*constant : nullptr;
}

}  // namespace thrice::transform
