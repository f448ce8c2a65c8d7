// Order and names of the nodes of a model: after this, producers come first and every name means something.
#pragma once
#include <string>

#include "frontend/onnx/model.h"

namespace thrice::frontend::onnx {

// Sorts the nodes of `graph` and of all bodies in it so that producers come first; nodes in order stay where
// they are. Errors: kInvalidModel for a name defined twice in one graph, a name that nothing defines, an
// output that nothing defines, and a cycle (nodes on it are named). Cost: n log n in names; recursion over
// bodies only, not over nodes.
void sort_graph(ModelGraph& graph);
void sort_function(ModelFunction& function);

}  // namespace thrice::frontend::onnx
