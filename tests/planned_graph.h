// A graph of a test with an origin for each node, so that the planner takes each node for an operator of its
// own.
#pragma once
#include "plan/planner.h"
#include "unit/ir/graph_maker.h"

namespace thrice::test {

inline std::shared_ptr<ir::Graph> with_origins(ir::GraphMaker maker) {
  maker.infer();
  for (size_t n = 0; n < maker.graph.nodes.size(); ++n) {
    ir::Node& node = maker.graph.nodes[n];
    node.origin = static_cast<int32_t>(maker.graph.origins.size());
    maker.graph.origins.push_back({std::string(ir::op_name(node.op)), "node" + std::to_string(n), 17});
  }
  return std::make_shared<ir::Graph>(std::move(maker.graph));
}

inline plan::PlanResult planned(const ir::Graph& graph, const std::string& planner = "greedy",
                                bool allow_slow = false) {
  plan::PlanOptions options;
  options.planner = planner;
  options.allow_slow = allow_slow;
  return plan::make_plan(graph, target::DeviceSpec{}, options);
}

}  // namespace thrice::test
