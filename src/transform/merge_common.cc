#include <fmt/format.h>

#include <map>
#include <string>

#include "transform/canonicalize.h"
#include "transform/rewrite.h"

namespace thrice::transform {
namespace {

using ir::Graph;
using ir::kNoValue;
using ir::Node;
using ir::ValueId;

// Larger constants are rarely equal, and comparing them costs.
constexpr size_t kMaxMergedBytes = 4096;

std::string constant_key(const ir::Tensor& tensor) {
  std::string key = fmt::format("{}[", dtype_name(tensor.dtype()));
  for (const int64_t extent : tensor.shape()) key += fmt::format("{},", extent);
  key += "]";
  key.append(reinterpret_cast<const char*>(tensor.data()), tensor.bytes());
  return key;
}

// Every attribute takes part, with its kind: two nodes that differ in one of them are two nodes.
std::string attribute_text(const ir::Attribute& attribute) {
  std::string text = fmt::format("{}:", attribute.index());
  if (const auto* i = std::get_if<int64_t>(&attribute)) text += fmt::format("{}", *i);
  if (const auto* f = std::get_if<double>(&attribute)) text += fmt::format("{:a}", *f);
  if (const auto* s = std::get_if<std::string>(&attribute)) text += fmt::format("{}:{}", s->size(), *s);
  if (const auto* is = std::get_if<std::vector<int64_t>>(&attribute)) {
    for (const int64_t i : *is) text += fmt::format("{},", i);
  }
  if (const auto* fs = std::get_if<std::vector<double>>(&attribute)) {
    for (const double f : *fs) text += fmt::format("{:a},", f);
  }
  return text;
}

std::string node_key(const Graph& graph, const Node& node) {
  std::string key = fmt::format("{}(", static_cast<int>(node.op));
  for (const ValueId input : node.inputs) key += fmt::format("{},", input);
  key += ")";
  for (const auto& [name, attribute] : node.attrs)
    key += fmt::format("{}:{}={};", name.size(), name, attribute_text(attribute));
  for (const ValueId output : node.outputs) {
    key += output == kNoValue ? "-"
                              : fmt::format("{}{}", dtype_name(graph.value(output).type.dtype),
                                            graph.value(output).type.shape.size());
  }
  return key;
}

}  // namespace

int64_t merge_common(Graph& graph) {
  Replacements replacements(graph);
  std::map<std::string, ValueId> constants;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const auto& constant = graph.values[i].constant;
    if (!constant || constant->dtype() == DType::kString || constant->bytes() > kMaxMergedBytes) continue;
    const auto id = static_cast<ValueId>(i);
    const auto [at, added] = constants.emplace(constant_key(*constant), id);
    if (!added) replacements.replace(graph, id, at->second);
  }
  std::map<std::string, size_t> seen;
  int64_t merged = 0;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    for (ValueId& input : node.inputs) input = replacements.of(input);
    if (node.op == ir::Op::random || node.op == ir::Op::host_function ||
        ir::op_class(node.op) == ir::OpClass::kControl) {
      continue;
    }
    const auto [at, added] = seen.emplace(node_key(graph, node), n);
    if (added) continue;
    const Node& first = graph.nodes[at->second];
    int64_t replaced = 0;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue) continue;
      if (replacements.replace(graph, node.outputs[i], first.outputs[i])) ++replaced;
    }
    merged += replaced > 0;
  }
  replacements.apply(graph);
  return merged;
}

}  // namespace thrice::transform
