// Imports nodes, local functions and bodies into a GraphBuilder.
#pragma once
#include <vector>

#include "frontend/onnx/graph_builder.h"
#include "frontend/onnx/model.h"

namespace thrice::frontend::onnx {

// Imports nodes in order. A node that is not supported is noted in the state and its results are marked
// refused. Errors: kInvalidModel with the node's name.
void import_nodes(GraphBuilder& builder, const std::vector<ModelNode>& nodes);

// Imports the inside of a body: initializers and nodes; formal inputs must have been added and defined by the
// caller. Returns the results' values. Throws RefusedOperand when a result depends on a refused node.
std::vector<ValueId> import_body(GraphBuilder& body, const ModelGraph& graph);

}  // namespace thrice::frontend::onnx
