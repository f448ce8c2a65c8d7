// The cores of attention in a graph: two products and what lies between them. No sequence of merges of two
// regions reaches such a region, since a product and half a softmax is no kernel; it is merged at once.
#pragma once
#include <vector>

#include "ir/graph.h"

namespace thrice::plan {

// For every product whose first operand comes from one other product through element-wise operators and
// reductions: the nodes of both and of all paths between, in topological order.
std::vector<std::vector<ir::NodeId>> attention_cores(const ir::Graph& graph);

}  // namespace thrice::plan
