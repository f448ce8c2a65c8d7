#include "frontend/onnx/body.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>

namespace thrice::frontend::onnx {

void close_bodies(const std::vector<GraphBuilder*>& bodies, const std::vector<std::vector<ValueId>>& results,
                  ir::Node& node) {
  std::vector<ValueId> outer;
  for (const GraphBuilder* body : bodies) {
    for (const ValueId value : body->captured()) {
      if (std::find(outer.begin(), outer.end(), value) == outer.end()) outer.push_back(value);
    }
  }
  node.inputs.insert(node.inputs.end(), outer.begin(), outer.end());
  for (size_t b = 0; b < bodies.size(); ++b) {
    GraphBuilder& body = *bodies[b];
    ir::Graph& graph = body.graph();
    for (const ValueId value : outer) {
      const ValueId inner = body.capture(value);
      graph.inputs.push_back(inner);
      graph.input_names.push_back(graph.value(inner).name);
    }
    for (const ValueId result : results[b]) {
      graph.outputs.push_back(result);
      graph.output_names.push_back(graph.value(result).name);
    }
    node.bodies.push_back(std::make_shared<ir::Graph>(std::move(graph)));
  }
}

std::vector<ValueId> emit_scan(NodeContext& ctx, GraphBuilder& body, const std::vector<ValueId>& carried,
                               const std::vector<ValueId>& scanned, const std::vector<ValueId>& body_results,
                               const ScanLayout& layout) {
  const size_t num_carried = carried.size();
  if (body.graph().inputs.size() != num_carried + scanned.size() || body_results.size() < num_carried) {
    throw Error(Code::kInternal, "emit_scan: the body's inputs or results do not match the operands");
  }
  const size_t num_stacked = body_results.size() - num_carried;
  const auto or_zeros = [](std::vector<int64_t> given, size_t count) {
    if (given.empty()) given.assign(count, 0);
    return given;
  };
  ScanLayout full{or_zeros(layout.input_axes, scanned.size()),
                  or_zeros(layout.input_directions, scanned.size()),
                  or_zeros(layout.output_axes, num_stacked), or_zeros(layout.output_directions, num_stacked)};
  for (size_t i = 0; i < scanned.size(); ++i) full.input_axes[i] = ctx.axis(scanned[i], full.input_axes[i]);
  for (size_t i = 0; i < num_stacked; ++i) {
    const auto rank = static_cast<int64_t>(body.type(body_results[num_carried + i]).shape.size()) + 1;
    int64_t& axis = full.output_axes[i];
    if (axis < -rank || axis >= rank)
      ctx.invalid(fmt::format("scan output axis {} is outside rank {}", axis, rank));
    if (axis < 0) axis += rank;
  }
  for (size_t i = 0; i < num_carried; ++i) {
    const ir::Type& begin = ctx.type(carried[i]);
    const ir::Type& next = body.type(body_results[i]);
    if (begin.dtype != next.dtype || begin.shape.size() != next.shape.size()) {
      ctx.invalid(fmt::format(
          "the carried value {} is {}{} before the step and {}{} after it; it must keep type and rank", i,
          dtype_name(begin.dtype), ir::shape_str(begin.shape), dtype_name(next.dtype),
          ir::shape_str(next.shape)));
    }
  }
  ir::Node node;
  node.op = Op::scan;
  node.inputs = carried;
  node.inputs.insert(node.inputs.end(), scanned.begin(), scanned.end());
  node.attrs = {{"num_carried", static_cast<int64_t>(num_carried)},
                {"num_scanned", static_cast<int64_t>(scanned.size())},
                {"scan_input_axes", full.input_axes},
                {"scan_input_directions", full.input_directions},
                {"scan_output_axes", full.output_axes},
                {"scan_output_directions", full.output_directions}};
  close_bodies({&body}, {body_results}, node);
  return ctx.builder().emit_node(std::move(node), body_results.size());
}

}  // namespace thrice::frontend::onnx
