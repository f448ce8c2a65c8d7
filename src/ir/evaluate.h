// The float64 oracle: evaluates nodes and graphs on the host, floats in double without rounding between
// operators, integers exactly.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "ir/graph.h"

namespace thrice::ir {

// A value during evaluation. Floats (every float dtype) live in `f`, integers and bools in `i`, strings in
// `s`; dtype says what the value means. A float value is NOT rounded to dtype except by `cast` to a narrower
// float, by inputs and constants (already of that dtype), and at to_tensor.
struct Array {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::vector<double> f;
  std::vector<int64_t> i;
  std::vector<std::string> s;
  int64_t size() const;
};
using ArrayPtr = std::shared_ptr<const Array>;  // null = absent operand

ArrayPtr to_array(const Tensor& tensor);
Tensor to_tensor(const Array& array);  // rounds once to dtype

// Evaluates one node (not control). Operands index-aligned with node.inputs; result with node.outputs. Seeds
// of `random` come from its attribute. Errors: kInvalidModel (indices out of range, shapes), kUnsupported
// (operator has no evaluation; names it), kOutOfMemory.
std::vector<ArrayPtr> evaluate_node(const Node& node, const std::vector<ArrayPtr>& operands);

struct EvaluateOptions {
  // Called after each node with its results; used by bisect and by tests. May be empty.
  std::function<void(const Node&, const std::vector<ArrayPtr>&)> observe;
  std::function<bool()> cancelled;  // polled between nodes; true -> throws kCancelled
};
// Evaluates the whole graph, control flow included; frees values after their last use. `inputs` in the order
// of graph.inputs.
std::vector<ArrayPtr> evaluate_graph(const Graph& graph, const std::vector<ArrayPtr>& inputs,
                                     const EvaluateOptions& options = {});

}  // namespace thrice::ir
