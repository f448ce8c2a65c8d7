// Closing a body: captured values become its last inputs, and the operands of its node.
#pragma once
#include <memory>
#include <vector>

#include "frontend/onnx/graph_builder.h"

namespace thrice::frontend::onnx {

// Finishes `body` with these results. Captured outer values are appended to node.inputs and to the body's
// inputs, and the body to node.bodies. The builder's graph is moved away.
void close_body(GraphBuilder& body, const std::vector<ValueId>& results, ir::Node& node);

}  // namespace thrice::frontend::onnx
