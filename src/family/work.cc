// The two floors of a workload: bytes that must move, operations that must be done.
#include <algorithm>

#include "family/family.h"
#include "ir/delta_rule.h"

namespace thrice::family {
namespace {

double elements(const Fact& fact) {
  double n = 1;
  for (const ir::Dim& d : fact.type.shape) n *= static_cast<double>(d.value());
  return n;
}

double axis_extent(const Fact& fact, int64_t axis) {
  const auto rank = static_cast<int64_t>(fact.type.shape.size());
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank ? static_cast<double>(fact.type.shape[static_cast<size_t>(axis)].value())
                                  : 1;
}

// Operations of one node; moving elements counts none.
double node_flops(const ir::Node& node, const std::vector<Fact>& facts) {
  const auto operand = [&](size_t i) -> const Fact& { return facts[static_cast<size_t>(node.inputs[i])]; };
  double made = 0;
  for (ir::ValueId id : node.outputs)
    if (id != ir::kNoValue && made == 0) made = elements(facts[static_cast<size_t>(id)]);
  switch (node.op) {
    case ir::Op::matmul:
      return 2 * made * axis_extent(operand(0), node.int_attr("trans_a", 0) ? -2 : -1);
    case ir::Op::conv:
      return 2 * made * elements(operand(1)) / std::max(1.0, axis_extent(operand(1), 0));
    case ir::Op::conv_transpose:  // each input element meets every weight of its channel once
      return 2 * elements(operand(0)) * elements(operand(1)) / std::max(1.0, axis_extent(operand(1), 0));
    case ir::Op::pool: {
      double window = 1;
      for (int64_t k : node.ints_attr("kernel")) window *= static_cast<double>(k);
      return made * window;
    }
    case ir::Op::reduce:
    case ir::Op::arg_reduce:
      return elements(operand(0));
    case ir::Op::scan_sum:  // delta rule: k^T S, its update and q^T S, two operations an element of the state
      return ir::is_delta_rule(node) ? 6 * made * axis_extent(operand(0), 3) : made;
    case ir::Op::resize:
    case ir::Op::grid_sample:
    case ir::Op::roi_align:
      return 8 * made;  // bilinear: four products and sums an element
    default:
      break;
  }
  switch (ir::op_class(node.op)) {
    case ir::OpClass::kUnary:
    case ir::OpClass::kBinary:
    case ir::OpClass::kTernary:
      return node.op == ir::Op::identity || node.op == ir::Op::cast ? 0 : made;
    case ir::OpClass::kHeavy:
      return made;
    default:
      return 0;
  }
}

// Elements of an input that must be read: all, but where only views that pick take it (gather from a table,
// slice) no more than these make.
double read_elements(const ir::Graph& graph, ir::ValueId id, const std::vector<Fact>& facts) {
  double picked = 0;
  for (const ir::Node& node : graph.nodes)
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] != id) continue;
      const bool picks = i == 0 && (node.op == ir::Op::gather || node.op == ir::Op::gather_elements ||
                                    node.op == ir::Op::gather_nd || node.op == ir::Op::slice);
      if (!picks) return elements(facts[static_cast<size_t>(id)]);
      picked += elements(facts[static_cast<size_t>(node.outputs[0])]);
    }
  return std::min(picked, elements(facts[static_cast<size_t>(id)]));
}

}  // namespace

Work count_work(const Workload& workload, const std::vector<Fact>& facts) {
  const ir::Graph& graph = workload.graph;
  const std::vector<Fact> all = ir::bind(graph, facts);
  Work work;
  const auto add_bytes = [&](ir::ValueId id, double count) {
    work.bytes += count * static_cast<double>(dtype_bytes(all[static_cast<size_t>(id)].type.dtype));
  };
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    if (!ir::is_shape_input(workload, i))
      add_bytes(graph.inputs[i], read_elements(graph, graph.inputs[i], all));
  for (ir::ValueId id : graph.outputs) add_bytes(id, elements(all[static_cast<size_t>(id)]));
  for (const ir::Node& node : graph.nodes) work.flops += node_flops(node, all);
  return work;
}

}  // namespace thrice::family
