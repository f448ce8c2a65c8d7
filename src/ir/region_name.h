// What people call a group of nodes: in tables, traces and notes.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"

namespace thrice::ir {

// The operators of the model that the nodes come from, each once, in order: "Conv + Relu + 2 more". Nodes
// that come from none give the name of the first node's operator, no nodes "".
std::string region_name(const Graph& graph, const std::vector<int32_t>& nodes);

}  // namespace thrice::ir
