#include "transform/canonicalize.h"
#include "transform/rewrite.h"

namespace thrice::transform {

using ir::Graph;
using ir::Node;
using ir::Op;

int64_t turn_weights(Graph& graph) {
  int64_t changes = 0;
  for (Node& node : graph.nodes) {
    if (node.op != Op::matmul) continue;
    for (size_t side = 0; side < 2; ++side) {
      const ir::NodeId before = graph.value(node.inputs[side]).producer;
      if (before < 0) continue;
      const Node& turn = graph.nodes[static_cast<size_t>(before)];
      if (turn.op != Op::transpose || turn.ints_attr("perm") != std::vector<int64_t>{1, 0} ||
          constant_of(graph, turn.inputs[0]) == nullptr)
        continue;
      const char* attr = side == 0 ? "trans_a" : "trans_b";
      node.attrs[attr] = int64_t{node.int_attr(attr, 0) == 0 ? 1 : 0};
      node.inputs[side] = turn.inputs[0];
      ++changes;
    }
  }
  return changes;
}

}  // namespace thrice::transform
