// Control flow: bodies run as plans of their own on the same stream; the host decides how often.
#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>

#include "exec/run.h"

namespace thrice::exec {

using ir::Node;
using ir::NodeId;
using ir::ValueId;

void Run::control_step(const StepCode& code) {
  const NodeId n = code.step->nodes[0];
  switch (graph_.nodes[static_cast<size_t>(n)].op) {
    case ir::Op::if_:
      return run_if(n);
    case ir::Op::loop:
      return run_loop(n);
    case ir::Op::scan:
      return run_scan(n);
    default:
      throw Error(Code::kInternal, "control step on an ordinary operator");
  }
}

std::vector<Operand> Run::run_body(NodeId node, int body, const std::vector<Operand>& inputs) {
  return state_.bodies.at({node, body})->run(inputs, {});
}

namespace {
Operand scalar(DType dtype, int64_t value) {
  ir::Tensor tensor(dtype, {});
  tensor.mutable_data();
  tensor.set_int(0, value);
  return Operand::from_host(std::move(tensor));
}
}  // namespace

void Run::run_if(NodeId n) {
  const Node& node = graph_.nodes[static_cast<size_t>(n)];
  const bool taken = on_host(node.inputs[0]).as_int(0) != 0;
  std::vector<Operand> inputs;
  for (size_t i = 1; i < node.inputs.size(); ++i) inputs.push_back(captured(node.inputs[i]));
  std::vector<Operand> results = run_body(n, taken ? 0 : 1, inputs);
  for (size_t o = 0; o < node.outputs.size(); ++o) set_result(node.outputs[o], std::move(results[o]));
}

void Run::run_loop(NodeId n) {
  const Node& node = graph_.nodes[static_cast<size_t>(n)];
  const size_t num_carried = static_cast<size_t>(node.int_attr("num_carried"));
  const size_t num_scans = static_cast<size_t>(node.int_attr("num_scan_outputs"));
  const int64_t trips = node.inputs[0] == ir::kNoValue ? INT64_MAX : on_host(node.inputs[0]).as_int(0);
  bool go_on = node.inputs[1] == ir::kNoValue || on_host(node.inputs[1]).as_int(0) != 0;
  std::vector<Operand> carried, outer;
  for (size_t i = 2; i < node.inputs.size(); ++i)
    (i < 2 + num_carried ? carried : outer).push_back(captured(node.inputs[i]));

  std::vector<std::vector<Operand>> scans(num_scans);
  for (int64_t trip = 0; trip < trips && go_on; ++trip) {
    std::vector<Operand> inputs{scalar(DType::kI64, trip), scalar(DType::kBool, 1)};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    inputs.insert(inputs.end(), outer.begin(), outer.end());
    std::vector<Operand> results = run_body(n, 0, inputs);
    go_on = state_.bodies.at({n, 0})->to_host(results[0]).as_int(0) != 0;
    for (size_t c = 0; c < num_carried; ++c) carried[c] = std::move(results[1 + c]);
    for (size_t s = 0; s < num_scans; ++s) scans[s].push_back(std::move(results[1 + num_carried + s]));
  }
  for (size_t o = 0; o < node.outputs.size(); ++o) {
    if (node.outputs[o] == ir::kNoValue) continue;
    if (o < num_carried)
      set_result(node.outputs[o], std::move(carried[o]));
    else
      set_result(node.outputs[o], stack(scans[o - num_carried], graph_.value(node.outputs[o]).type));
  }
}

void Run::run_scan(NodeId n) {
  const Node& node = graph_.nodes[static_cast<size_t>(n)];
  const size_t num_carried = static_cast<size_t>(node.int_attr("num_carried"));
  const size_t num_scanned = static_cast<size_t>(node.int_attr("num_scanned"));
  const auto flags = [&](const char* name) {
    return node.has_attr(name) ? node.ints_attr(name) : std::vector<int64_t>{};
  };
  const std::vector<int64_t> in_axes = flags("scan_input_axes"), out_axes = flags("scan_output_axes");
  const std::vector<int64_t> in_back = flags("scan_input_directions"),
                             out_back = flags("scan_output_directions");
  for (int64_t axis : in_axes)
    if (axis != 0) throw Error(Code::kInternal, "scan over an axis other than 0 reached the executor");
  for (int64_t axis : out_axes)
    if (axis != 0) throw Error(Code::kInternal, "scan output on an axis other than 0 reached the executor");

  std::vector<Operand> carried, scanned, outer;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    Operand o = captured(node.inputs[i]);
    (i < num_carried ? carried : i < num_carried + num_scanned ? scanned : outer).push_back(std::move(o));
  }
  const int64_t trips = scanned.empty() ? 0 : scanned[0].shape.at(0);
  const size_t num_scans = node.outputs.size() - num_carried;
  std::vector<std::vector<Operand>> scans(num_scans);
  for (int64_t trip = 0; trip < trips; ++trip) {
    std::vector<Operand> inputs = carried;
    for (size_t s = 0; s < num_scanned; ++s) {
      if (scanned[s].shape.at(0) != trips)
        throw Error(Code::kInvalidArgument, "scan: the scanned operands differ in length");
      const bool back = s < in_back.size() && in_back[s] != 0;
      inputs.push_back(slice_row(scanned[s], back ? trips - 1 - trip : trip));
    }
    inputs.insert(inputs.end(), outer.begin(), outer.end());
    std::vector<Operand> results = run_body(n, 0, inputs);
    for (size_t c = 0; c < num_carried; ++c) carried[c] = std::move(results[c]);
    for (size_t s = 0; s < num_scans; ++s) scans[s].push_back(std::move(results[num_carried + s]));
  }
  for (size_t o = 0; o < node.outputs.size(); ++o) {
    if (node.outputs[o] == ir::kNoValue) continue;
    if (o < num_carried) {
      set_result(node.outputs[o], std::move(carried[o]));
      continue;
    }
    auto& parts = scans[o - num_carried];
    if (o - num_carried < out_back.size() && out_back[o - num_carried] != 0)
      std::reverse(parts.begin(), parts.end());
    set_result(node.outputs[o], stack(parts, graph_.value(node.outputs[o]).type));
  }
}

// A value as an operand of a body: whatever side it is on; constants and shape arithmetic come from the host.
Operand Run::captured(ValueId v) {
  if (!operand(v).device.buffer && !operand(v).host) on_host(v);
  return operand(v);
}

Operand Run::slice_row(const Operand& whole, int64_t row) {
  Operand part;
  part.dtype = whole.dtype;
  part.shape.assign(whole.shape.begin() + 1, whole.shape.end());
  const size_t bytes = part.bytes();
  if (whole.host) {
    ir::Tensor tensor(part.dtype, part.shape);
    std::copy_n(whole.host->data() + static_cast<size_t>(row) * bytes, bytes, tensor.mutable_data());
    part.host = std::move(tensor);
    return part;
  }
  part.device = state_.pool->take(bytes);
  if (bytes > 0)
    state_.stream->copy(part.device,
                        {whole.device.buffer, whole.device.offset + static_cast<size_t>(row) * bytes, bytes});
  return part;
}

Operand Run::stack(const std::vector<Operand>& parts, const ir::Type& type) {
  Operand whole;
  whole.dtype = type.dtype;
  if (parts.empty()) {
    // No trip: the extents beyond the first are those of the declared type; what only a trip would tell is
    // empty.
    whole.shape.push_back(0);
    for (size_t axis = 1; axis < type.shape.size(); ++axis)
      whole.shape.push_back(type.shape[axis].is_const() ? type.shape[axis].value() : 0);
    whole.host = ir::Tensor(whole.dtype, whole.shape);
    return whole;
  }
  whole.shape = parts[0].shape;
  whole.shape.insert(whole.shape.begin(), static_cast<int64_t>(parts.size()));
  whole.device = state_.pool->take(whole.bytes());
  const size_t bytes = parts[0].bytes();
  for (size_t p = 0; p < parts.size() && bytes > 0; ++p) {
    if (parts[p].shape != parts[0].shape)
      throw Error(Code::kInvalidModel, "loop: a scan output changes its shape between trips");
    const backend::BufferSpan to{whole.device.buffer, whole.device.offset + p * bytes, bytes};
    if (parts[p].device.buffer)
      state_.stream->copy(to, {parts[p].device.buffer, parts[p].device.offset, bytes});
    else
      state_.stream->copy_to_device(to, {parts[p].host->data(), bytes});
  }
  return whole;
}

}  // namespace thrice::exec
