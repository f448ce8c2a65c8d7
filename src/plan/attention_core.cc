#include "plan/attention_core.h"

#include <algorithm>
#include <set>

namespace thrice::plan {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::Op;

namespace {

constexpr size_t kMostBetween = 32;  // scale, bias and softmax are about ten, a mask of indices five more

bool is_between(const Node& node) {
  return ir::is_elementwise(node.op) || node.op == Op::reduce || node.op == Op::iota;
}

// The nodes of where(first <= key < end, score, ..) that are computed where a score is: packed sequences.
std::vector<NodeId> window_of(const Graph& graph, const Node& choice) {
  const auto producer = [&](ir::ValueId v) { return graph.value(v).producer; };
  const auto is = [&](NodeId n, Op op) { return n >= 0 && graph.nodes[static_cast<size_t>(n)].op == op; };
  if (choice.op != Op::where || !is(producer(choice.inputs[0]), Op::logical_and)) return {};
  const NodeId both = producer(choice.inputs[0]);
  const Node& shown = graph.nodes[static_cast<size_t>(both)];
  const NodeId from = producer(shown.inputs[0]), to = producer(shown.inputs[1]);
  if (!is(from, Op::greater_equal) || !is(to, Op::less)) return {};
  const ir::ValueId key = graph.nodes[static_cast<size_t>(from)].inputs[0];
  if (!is(producer(key), Op::iota) || graph.nodes[static_cast<size_t>(to)].inputs[0] != key) return {};
  return {both, from, to, producer(key)};
}

// What lies between a product and the one its first operand comes from; empty where that is not so.
std::vector<NodeId> core_behind(const Graph& graph, const std::vector<std::vector<NodeId>>& readers,
                                NodeId second) {
  const auto node_at = [&](NodeId n) -> const Node& { return graph.nodes[static_cast<size_t>(n)]; };
  std::set<NodeId> above;  // everything the first operand is made of, down to the first product
  std::vector<NodeId> waiting{graph.value(node_at(second).inputs[0]).producer};
  NodeId first = -1;
  const auto only_read_by = [&](NodeId n, const std::set<NodeId>& core) {
    for (const ir::ValueId v : node_at(n).outputs) {
      if (v == ir::kNoValue) continue;
      if (std::find(graph.outputs.begin(), graph.outputs.end(), v) != graph.outputs.end()) return false;
      for (const NodeId reader : readers[static_cast<size_t>(v)])
        if (!core.count(reader)) return false;
    }
    return true;
  };
  while (!waiting.empty()) {
    const NodeId n = waiting.back();
    waiting.pop_back();
    if (n < 0 || above.count(n)) continue;
    if (node_at(n).op == Op::matmul) {
      if (first >= 0 && first != n) return {};
      first = n;
    } else if (is_between(node_at(n)) && above.size() < kMostBetween) {
      above.insert(n);
      for (const ir::ValueId v : node_at(n).inputs)
        if (v != ir::kNoValue) waiting.push_back(graph.value(v).producer);
    }
  }
  if (first < 0) return {};
  std::set<NodeId> core{first};  // those of them that the first product reaches
  for (const NodeId n : above)   // ascending: producers come first
    for (const ir::ValueId v : node_at(n).inputs)
      if (v != ir::kNoValue && core.count(graph.value(v).producer)) core.insert(n);
  // A mask made of indices and numbers alone, which nobody else reads, is computed where a score is.
  std::set<NodeId> indices;
  for (const NodeId n : above) {
    const Node& node = node_at(n);
    const bool made = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ir::ValueId v) {
      return v == ir::kNoValue || graph.value(v).constant || indices.count(graph.value(v).producer);
    });
    if (made && node.op != Op::reduce) indices.insert(n);
  }
  for (auto n = indices.rbegin(); n != indices.rend(); ++n)  // readers first
    if (only_read_by(*n, core)) core.insert(*n);
  const std::set<NodeId> reached = core;
  for (const NodeId n : reached)
    for (const NodeId inner : window_of(graph, node_at(n)))
      if (only_read_by(inner, core)) core.insert(inner);
  core.insert(second);
  const bool reduces =
      std::any_of(core.begin(), core.end(), [&](NodeId n) { return node_at(n).op == Op::reduce; });
  return reduces ? std::vector<NodeId>(core.begin(), core.end()) : std::vector<NodeId>{};
}

}  // namespace

std::vector<std::vector<NodeId>> attention_cores(const Graph& graph) {
  const auto readers = ir::consumers(graph);
  std::vector<std::vector<NodeId>> cores;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].op != Op::matmul) continue;
    std::vector<NodeId> core = core_behind(graph, readers, static_cast<NodeId>(n));
    if (!core.empty()) cores.push_back(std::move(core));
  }
  return cores;
}

}  // namespace thrice::plan
