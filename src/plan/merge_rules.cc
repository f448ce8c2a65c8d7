#include "plan/merge_rules.h"

#include <algorithm>

#include "plan/planner.h"

namespace thrice::plan {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::Op;
using ir::OpClass;

namespace {

const Node& node_at(const Graph& graph, NodeId n) { return graph.nodes[static_cast<size_t>(n)]; }

bool is_core(const Node& node) {
  const OpClass cls = ir::op_class(node.op);
  return cls == OpClass::kHeavy || cls == OpClass::kReduce;
}

// Few enough instructions that computing it again for every element costs less than a round trip through
// memory.
bool is_cheap(const Node& node) {
  switch (node.op) {
    case Op::neg:
    case Op::abs:
    case Op::relu:
    case Op::cast:
    case Op::identity:
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::min:
    case Op::max:
    case Op::where:
    case Op::logical_not:
    case Op::equal:
    case Op::less:
    case Op::greater:
    case Op::less_equal:
    case Op::greater_equal:
      return true;
    default:
      return ir::op_class(node.op) == OpClass::kView;
  }
}

ir::Dim largest_output(const Graph& graph, const std::vector<NodeId>& nodes) {
  ir::Dim largest = 0;
  for (NodeId n : nodes)
    for (ir::ValueId v : node_at(graph, n).outputs)
      if (v != ir::kNoValue) {
        const ir::Dim count = ir::num_elements(graph.value(v).type.shape);
        if (!(count.is_const() && largest.is_const()) || count.value() > largest.value()) largest = count;
      }
  return largest;
}

// A producer whose results are spread over more elements of the consumer would be computed once for each of
// them.
bool would_recompute(const Graph& graph, const std::vector<NodeId>& producers,
                     const std::vector<NodeId>& consumer) {
  const ir::Dim wanted = largest_output(graph, consumer);
  for (NodeId n : producers) {
    const Node& node = node_at(graph, n);
    if (is_cheap(node)) continue;
    for (ir::ValueId v : node.outputs)
      if (v != ir::kNoValue && !(ir::num_elements(graph.value(v).type.shape) == wanted)) return true;
  }
  return false;
}

}  // namespace

bool is_read_through(const Graph& graph, const Node& node) {
  const auto is_number = [&](ir::ValueId v) {
    const auto& constant = graph.value(v).constant;
    return constant && constant->size() == 1;
  };
  switch (node.op) {
    case Op::reshape:
    case Op::transpose:
    case Op::slice:
    case Op::expand:
    case Op::gather:
    case Op::cast:
      return true;
    case Op::mul:
      return is_number(node.inputs[0]) || is_number(node.inputs[1]);
    default:
      return false;
  }
}

MergeVerdict judge_merge(const Graph& graph, const std::vector<NodeId>& nodes,
                         const std::vector<NodeId>& consumer) {
  if (nodes.size() > kMaxRegionNodes)
    return {"the region would have more than " + std::to_string(kMaxRegionNodes) + " operators"};
  std::vector<NodeId> producers;
  std::set_difference(nodes.begin(), nodes.end(), consumer.begin(), consumer.end(),
                      std::back_inserter(producers));
  const auto heavy = [&](NodeId n) { return ir::op_class(node_at(graph, n).op) == OpClass::kHeavy; };
  if (std::count_if(consumer.begin(), consumer.end(), heavy) > 1) {
    // Attention reads every operand a few times, a tile of rows at once: views cost only index arithmetic.
    for (NodeId n : producers)
      if (!is_read_through(graph, node_at(graph, n)))
        return {"the operator before attention would be computed again at every read of it"};
  } else if (std::any_of(consumer.begin(), consumer.end(), heavy)) {
    // The core reads each operand element many times: only what costs nothing may be computed at each read.
    for (NodeId n : producers)
      if (node_at(graph, n).op != Op::cast)
        return {"the operator before a product or window would be computed again at every read of it"};
  }
  const ir::Region region = ir::make_region(graph, nodes);
  if (region.inputs.size() + region.outputs.size() > kMaxRegionBuffers)
    return {"too many buffers for one kernel"};
  const ir::Workload workload = ir::extract(graph, region);
  std::string reasons;
  const family::Family* family = match_family(workload, &reasons);
  if (!family) return {reasons};
  const bool has_core =
      std::any_of(nodes.begin(), nodes.end(), [&](NodeId n) { return is_core(node_at(graph, n)); });
  if (!has_core && would_recompute(graph, producers, consumer))
    return {"the smaller operand would be computed again for every element it is spread over"};
  return {{}, family};
}

}  // namespace thrice::plan
