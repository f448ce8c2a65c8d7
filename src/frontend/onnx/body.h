// Closing a body: captured values become its last inputs, and the operands of its node.
#pragma once
#include <memory>
#include <vector>

#include "frontend/onnx/graph_builder.h"

namespace thrice::frontend::onnx {

// Finishes the bodies of one node with these results. Every outer value that one of them captured is appended
// to node.inputs and, in the same order, to the inputs of each body; the graphs are moved into node.bodies.
void close_bodies(const std::vector<GraphBuilder*>& bodies, const std::vector<std::vector<ValueId>>& results,
                  ir::Node& node);

}  // namespace thrice::frontend::onnx
