// Types, shapes and small integer values of a node's results. The SAME code runs symbolically at import and
// concretely when a run is bound.
#pragma once
#include <functional>

#include "ir/graph.h"

namespace thrice::ir {

// What inference knows of a value. `type` must be complete (dtype, rank) for operands.
struct Fact {
  Type type;
  const Tensor* constant =
      nullptr;  // host value, where there is one (constants; inputs and host results when bound)
  std::optional<std::vector<Dim>> known;  // integer value as expressions; filled from `constant` by
                                          // infer_node where it is small and integer
};

// Infers all outputs of `node` from facts of its operands (index-aligned with node.inputs; absent operands
// have nullptr). fresh_symbol gives a new symbol for an extent that depends on data ("nonzero_3.0"); when
// bound it throws instead, and the caller runs the host step. Result is index-aligned with node.outputs.
// Control nodes: bodies are inferred recursively by this function's caller (see infer_graph). Errors:
// kInvalidModel (shapes do not fit; the message says which), kUnsupported (a shape operand whose length is
// unknown).
std::vector<Fact> infer_node(const Node& node, const std::vector<const Fact*>& operands,
                             const std::function<Dim(const std::string& hint)>& fresh_symbol);

// True where operand `index` of `node` is a shape operand (its value is needed on the host to bind the node).
bool is_shape_operand(const Node& node, size_t index);

// Fills Value::type and Value::known of every node result, in order, bodies included; graph inputs and
// constants must be typed. Idempotent. Errors: as infer_node, with the node's origin in the message.
void infer_graph(Graph& graph);

// Derived integers that kernels need beside extents, one function each so that the host and generated code
// agree (floors: launch arguments).
struct SliceRange {
  int64_t start, step, length;
};
SliceRange resolve_slice(int64_t extent, int64_t start, int64_t end,
                         int64_t step);  // ONNX clamping; length >= 0
// Effective begin/end pads of one spatial axis of conv and pool after auto_pad; `extent` in elements.
std::pair<int64_t, int64_t> resolve_pads(const std::string& auto_pad, int64_t extent, int64_t kernel,
                                         int64_t stride, int64_t dilation, int64_t begin, int64_t end);

}  // namespace thrice::ir
