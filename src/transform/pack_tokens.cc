#include "transform/pack_tokens.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <optional>

#include "ir/infer.h"
#include "ir/inputs.h"
#include "transform/pack_rules.h"
#include "transform/rewrite.h"

namespace thrice::transform {

using ir::Graph;
using ir::Node;
using ir::Op;
using ir::ValueId;

namespace {

bool can_be_mask(const Graph& graph, ValueId input) {
  const ir::Type& type = graph.value(input).type;
  return type.shape.size() == 2 && type.dtype != DType::kString;
}

size_t find_mask(const Graph& graph, const std::string& name) {
  std::string known;
  std::vector<size_t> called;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::string& own = graph.input_names[i];
    if (can_be_mask(graph, graph.inputs[i])) {
      known += (known.empty() ? "" : ", ") + own;
      if (!name.empty() ? own == name : own.find("mask") != std::string::npos) called.push_back(i);
    }
  }
  if (called.size() == 1) return called[0];
  if (!name.empty())
    throw Error(Code::kInvalidArgument,
                fmt::format("--packed-mask: the model has no input '{}' of shape [batch, length]; it has: {}",
                            name, known.empty() ? "none" : known));
  throw Error(
      Code::kUnsupported,
      fmt::format("the model cannot be packed: {} of shape [batch, length] is called mask; name it "
                  "with --packed-mask (inputs of that shape: {})",
                  called.empty() ? "no input" : "more than one input", known.empty() ? "none" : known));
}

}  // namespace

Packing pack_tokens(Graph& graph, const std::string& mask_name) {
  Packing packing;
  packing.mask_input = find_mask(graph, mask_name);
  packing.mask = graph.input_names[packing.mask_input];
  const ValueId mask = graph.inputs[packing.mask_input];
  const Graph model = graph;
  std::vector<Node> nodes;
  PackRules rules(graph, model, mask, nodes);
  for (const Node& node : model.nodes) rules.apply(node);
  if (!rules.has_packed())
    throw Error(Code::kUnsupported,
                fmt::format("the model cannot be packed: nothing in it has the batch and the length of its "
                            "mask '{}'",
                            packing.mask));
  for (const ValueId output : model.outputs) packing.outputs.push_back(rules.finish(output));
  packing.picks = rules.picks();
  exchange_nodes(graph, std::move(nodes));
  remove_dead(graph);
  compact(graph);
  ir::infer_graph(graph);
  for (const Node& node : graph.nodes)
    if (node.op == Op::nonzero && node.inputs[0] == graph.inputs[packing.mask_input])
      packing.rows = graph.value(node.outputs[0]).type.shape[1].str();
  graph.metadata[ir::kPackedMask] = packing.mask;
  return packing;
}

}  // namespace thrice::transform
