#include "analysis/placement.h"

#include "ir/infer.h"

namespace thrice::analysis {

using ir::Node;
using ir::Op;
using ir::OpClass;
using ir::ValueId;

namespace {

// Shape arithmetic stays on the host even where its value is wanted as data: integers few enough that a
// launch would cost more than the upload.
bool is_shape_arithmetic(const ir::Graph& graph, const Node& node) {
  if (ir::op_class(node.op) == OpClass::kControl) return false;
  for (ValueId v : node.outputs)
    if (v != ir::kNoValue && !graph.value(v).known) return false;
  return true;
}

// Values that the host can have without waiting for the device: small, and computed from constants, known
// shapes and small inputs alone.
std::vector<uint8_t> cheap_on_host(const ir::Graph& graph) {
  std::vector<uint8_t> cheap(graph.values.size(), 0);
  const auto is_small = [&](ValueId v) {
    const ir::Dim count = ir::num_elements(graph.value(v).type.shape);
    return count.is_const() && count.value() <= ir::kMaxKnown;
  };
  for (size_t v = 0; v < graph.values.size(); ++v)
    cheap[v] = graph.values[v].constant || graph.values[v].known;
  for (ValueId v : graph.inputs) cheap[static_cast<size_t>(v)] |= is_small(v);
  for (const Node& node : graph.nodes) {
    if (ir::op_class(node.op) == OpClass::kControl || node.op == Op::random) continue;
    bool all = true;
    for (ValueId v : node.inputs)
      all &= v == ir::kNoValue || cheap[static_cast<size_t>(v)] || node.op == Op::shape;
    for (ValueId v : node.outputs)
      if (v != ir::kNoValue && all && is_small(v)) cheap[static_cast<size_t>(v)] = 1;
  }
  return cheap;
}

}  // namespace

Placement place(const ir::Graph& graph, const std::function<bool(const Node&)>& runs_on_device) {
  Placement placement;
  placement.nodes.assign(graph.nodes.size(), Place::kNowhere);
  placement.host_values.assign(graph.values.size(), 0);
  placement.device_values.assign(graph.values.size(), 0);
  auto& host = placement.host_values;
  auto& device = placement.device_values;
  for (ValueId v : graph.outputs) device[static_cast<size_t>(v)] = 1;
  const std::vector<uint8_t> cheap = cheap_on_host(graph);

  // Backwards: by the time a node is looked at, all of its consumers have said what they need of its results.
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    bool as_data = false, unseen_on_host = false, is_cheap = true;
    for (ValueId v : node.outputs) {
      if (v == ir::kNoValue) continue;
      is_cheap &= cheap[static_cast<size_t>(v)] != 0;
      as_data |= device[static_cast<size_t>(v)] != 0;
      unseen_on_host |= host[static_cast<size_t>(v)] != 0 && !graph.value(v).known;
    }
    if (!as_data && !unseen_on_host) continue;

    const OpClass cls = ir::op_class(node.op);
    Place place = Place::kDevice;
    if (cls == OpClass::kControl)
      place = Place::kControl;
    else if (cls == OpClass::kHost || is_shape_arithmetic(graph, node) || (!as_data && is_cheap))
      place = Place::kHost;
    else if (node.op == Op::reshape || node.op == Op::identity)
      place = Place::kAlias;
    else if (!runs_on_device(node))
      place = Place::kHost;
    placement.nodes[n] = place;

    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      if (v == ir::kNoValue) continue;
      const bool on_host = place == Place::kHost || ir::is_shape_operand(node, i) ||
                           (node.op == Op::if_ && i == 0) || (node.op == Op::loop && i < 2);
      // `shape` looks at extents only: its operand's bytes are not needed anywhere for its sake.
      if (node.op == Op::shape) continue;
      (on_host ? host : device)[static_cast<size_t>(v)] = 1;
    }
  }
  return placement;
}

}  // namespace thrice::analysis
