#include "family/heavy.h"

#include <fmt/format.h>

#include <map>

#include "family/scalar.h"

namespace thrice::family {

using ir::NodeId;
using ir::Op;
using ir::OpClass;
using ir::ValueId;

HeavyRegion find_heavy(const Workload& workload, const std::set<Op>& ops) {
  const ir::Graph& graph = workload.graph;
  NodeId heavy = -1;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!ops.count(graph.nodes[n].op)) continue;
    if (heavy >= 0)
      throw NotMatched{fmt::format("two heavy operators ({} and {}) in one region",
                                   ir::op_name(graph.nodes[static_cast<size_t>(heavy)].op),
                                   ir::op_name(graph.nodes[n].op))};
    heavy = static_cast<NodeId>(n);
  }
  if (heavy < 0) throw NotMatched{"no operator of this family"};
  if (auto refusal = refuse_inlining(workload, {heavy})) throw NotMatched{*refusal};
  return region_behind(workload, heavy);
}

HeavyRegion region_behind(const Workload& workload, NodeId heavy) {
  const ir::Graph& graph = workload.graph;
  HeavyRegion region;
  region.node = heavy;
  region.op = &graph.nodes[static_cast<size_t>(heavy)];
  for (const ValueId result : region.op->outputs)
    if (result != ir::kNoValue && region.result == ir::kNoValue) region.result = result;
  if (region.result == ir::kNoValue) throw NotMatched{"nobody reads the result"};

  // Views between the heavy result and each value that depends on it.
  std::map<ValueId, std::vector<NodeId>> chain;
  for (const ValueId result : region.op->outputs)
    if (result != ir::kNoValue) chain[result] = {};
  for (size_t n = static_cast<size_t>(region.node) + 1; n < graph.nodes.size(); ++n) {
    const ir::Node& node = graph.nodes[n];
    const std::vector<NodeId>* views = nullptr;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const auto it = chain.find(node.inputs[k]);
      if (it == chain.end()) continue;
      if (views != nullptr && *views != it->second)
        throw NotMatched{"the epilogue reads the result at two different coordinates"};
      views = &it->second;
      const OpClass cls = ir::op_class(node.op);
      if (cls == OpClass::kView) {
        if ((node.op != Op::reshape && node.op != Op::transpose) || k != 0)
          throw NotMatched{
              fmt::format("{} behind the product changes coordinates in a way that cannot be inverted",
                          ir::op_name(node.op))};
      } else if (!(graph.value(node.inputs[k]).type.shape == graph.value(node.outputs[0]).type.shape)) {
        throw NotMatched{fmt::format("the result is broadcast by {} in the epilogue", ir::op_name(node.op))};
      }
    }
    if (views == nullptr) continue;
    std::vector<NodeId> longer = *views;
    if (ir::op_class(node.op) == OpClass::kView) longer.push_back(static_cast<NodeId>(n));
    chain[node.outputs[0]] = std::move(longer);
  }
  for (const ValueId output : graph.outputs) {
    const auto it = chain.find(output);
    if (it == chain.end()) throw NotMatched{"an output of the region does not come from its heavy operator"};
    region.views.push_back(it->second);
  }
  return region;
}

Refusal refuse_heavy(const Workload& workload, const std::set<Op>& ops) {
  try {
    find_heavy(workload, ops);
    return std::nullopt;
  } catch (const NotMatched& reason) {
    return reason.reason;
  }
}

Coords product_coords(Emitter& e, ValueId operand, ValueId result, const Coords& batch, Index row,
                      Index col) {
  const auto& shape = e.graph().value(operand).type.shape;
  std::vector<ir::Dim> out_shape = e.graph().value(result).type.shape;
  Coords out = batch;
  for (int k = 2; k > 0; --k)
    out_shape[out_shape.size() - static_cast<size_t>(k)] = shape[shape.size() - static_cast<size_t>(k)];
  out.push_back(row);
  out.push_back(col);
  Coords coords = e.broadcast(operand, out, out_shape);
  coords[coords.size() - 2] = row;
  coords[coords.size() - 1] = col;
  return coords;
}

void emit_epilogue(Emitter& e, const HeavyRegion& region, const Coords& at,
                   const std::vector<std::string>& elements) {
  for (size_t r = 0; r < region.op->outputs.size(); ++r)
    if (region.op->outputs[r] != ir::kNoValue)
      e.bind(region.op->outputs[r], [name = elements[r]](const Coords&) { return name; });
  for (size_t o = 0; o < region.views.size(); ++o) {
    Coords coords = at;
    for (const NodeId n : region.views[o]) {
      const ir::Node& view = e.graph().nodes[static_cast<size_t>(n)];
      if (view.op == Op::transpose) {
        const auto& perm = view.ints_attr("perm");
        Coords outer(coords.size());
        for (size_t k = 0; k < perm.size(); ++k) outer[k] = coords[static_cast<size_t>(perm[k])];
        coords = outer;
      } else {
        const Index flat = e.index().linear(coords, e.dims(view.inputs[0]));
        coords = e.index().split(flat, e.dims(view.outputs[0]));
      }
    }
    e.store(o, coords, e.value(e.graph().outputs[o], coords));
  }
}

void emit_epilogue_lanes(Emitter& e, DType dtype, const std::string& at, const std::string& end, Index lane,
                         int64_t lanes, const std::string& tile,
                         const std::function<void(const std::string&)>& epilogue) {
  e.write_lanes(lane, lanes, [&] {
    e.open(fmt::format("for (; {0} + {1} <= {2}; {0} += {1})", at, lanes, end));
    epilogue(e.declare(dtype, fmt::format("vload{}(0, {})", lanes, tile)));
    e.close();
  });
}

bool is_plain_buffer(const Workload& workload, ValueId value) {
  const DType dtype = workload.graph.value(value).type.dtype;
  return storage_type(dtype) == compute_type(dtype) && is_stored_buffer(workload, value);
}

bool is_stored_buffer(const Workload& workload, ValueId value) {
  const ir::Value& v = workload.graph.value(value);
  if (v.constant || v.producer >= 0) return false;
  for (size_t i = 0; i < workload.graph.inputs.size(); ++i)
    if (workload.graph.inputs[i] == value) return !ir::is_shape_input(workload, i);
  return false;
}

std::string address(Emitter& e, const ProgramDraft& draft, ValueId value, const Coords& coords) {
  return fmt::format("({} + {})", draft.input_name(value), e.text(e.index().linear(coords, e.dims(value))));
}

bool computes_in_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

std::string multiply_add(DType dtype, const std::string& acc, const std::string& a, const std::string& b) {
  if (computes_in_float(dtype)) return fmt::format("th_fma_f32({}, {}, {})", a, b, acc);
  if (dtype == DType::kF64) return fmt::format("th_fma_f64({}, {}, {})", a, b, acc);
  const std::string u = dtype_bits(dtype) == 64 ? "th_u64" : "th_u32";
  return fmt::format("({0})(({1}){2} + ({1}){3} * ({1}){4})", compute_type(dtype), u, acc, a, b);
}

std::string zero_of(DType dtype) { return fmt::format("({})0", compute_type(dtype)); }

}  // namespace thrice::family
