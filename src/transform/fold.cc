#include "transform/fold.h"

#include <thrice/status.h>

#include "ir/evaluate.h"
#include "transform/rewrite.h"

namespace thrice::transform {
namespace {

using ir::Graph;
using ir::kNoValue;
using ir::Node;
using ir::ValueId;

// The interpreter holds 8 bytes an element; larger tensors are left to the device.
constexpr int64_t kMaxFoldedElements = int64_t{1} << 26;

bool may_fold(const Node& node) {
  return node.op != ir::Op::random && node.op != ir::Op::host_function &&
         ir::op_class(node.op) != ir::OpClass::kControl && !node.inputs.empty();
}

// Bytes of operands that disappear with this node.
int64_t freed_bytes(const Graph& graph, const Node& node,
                    const std::vector<std::vector<ir::NodeId>>& readers) {
  int64_t bytes = 0;
  for (const ValueId input : node.inputs) {
    if (input == kNoValue) continue;
    if (readers[static_cast<size_t>(input)].size() == 1) {
      bytes += static_cast<int64_t>(graph.value(input).constant->bytes());
    }
  }
  return bytes;
}

bool worth_folding(const Graph& graph, const Node& node, const std::vector<std::vector<ir::NodeId>>& readers,
                   int64_t max_bytes) {
  int64_t bytes = 0;
  for (const ValueId input : node.inputs) {
    if (input == kNoValue) continue;
    const auto& constant = graph.value(input).constant;
    if (!constant || constant->size() > kMaxFoldedElements) return false;
  }
  for (const ValueId output : node.outputs) {
    if (output == kNoValue) continue;
    const auto& type = graph.value(output).type;
    if (!ir::is_static(type.shape)) return false;
    const int64_t count = ir::num_elements(ir::static_shape(type.shape));
    if (count > kMaxFoldedElements) return false;
    bytes += count * static_cast<int64_t>(dtype_bytes(type.dtype));
  }
  return bytes <= max_bytes || bytes <= freed_bytes(graph, node, readers);
}

std::vector<ir::ArrayPtr> evaluate(const Graph& graph, const Node& node) {
  std::vector<ir::ArrayPtr> operands;
  for (const ValueId input : node.inputs) {
    operands.push_back(input == kNoValue ? nullptr : ir::to_array(*graph.value(input).constant));
  }
  try {
    return ir::evaluate_node(node, operands);
  } catch (const Error&) {
    return {};  // the run will give the error, should it ever get there
  }
}

std::optional<ir::Tensor> known_tensor(const ir::Value& value) {
  if (value.constant || !value.known || !is_integer(value.type.dtype) || !ir::is_static(value.type.shape))
    return {};
  std::vector<int64_t> numbers;
  for (const auto& element : *value.known) {
    if (!element.is_const()) return {};
    numbers.push_back(element.value());
  }
  const auto shape = ir::static_shape(value.type.shape);
  if (ir::num_elements(shape) != static_cast<int64_t>(numbers.size())) return {};
  return ir::Tensor::of(value.type.dtype, shape, numbers);
}

}  // namespace

int64_t fold_constants(Graph& graph, int64_t max_bytes) {
  const auto readers = ir::consumers(graph);
  Replacements replacements(graph);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (ValueId& input : graph.nodes[n].inputs) input = replacements.of(input);
    const Node node = graph.nodes[n];
    if (!may_fold(node)) continue;
    std::vector<std::optional<ir::Tensor>> results(node.outputs.size());
    bool all_known = true;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue) continue;
      results[i] = known_tensor(graph.value(node.outputs[i]));
      all_known = all_known && results[i].has_value();
    }
    if (!all_known && worth_folding(graph, node, readers, max_bytes)) {
      const auto arrays = evaluate(graph, node);
      for (size_t i = 0; i < arrays.size() && i < results.size(); ++i) {
        if (arrays[i] && node.outputs[i] != kNoValue) results[i] = ir::to_tensor(*arrays[i]);
      }
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i] || is_output(graph, node.outputs[i])) continue;
      const ValueId constant = graph.add_constant(std::move(*results[i]), graph.value(node.outputs[i]).name);
      replacements.replace(graph, node.outputs[i], constant);
    }
  }
  replacements.apply(graph);
  return replacements.count();
}

}  // namespace thrice::transform
