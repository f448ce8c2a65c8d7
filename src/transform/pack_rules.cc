#include "transform/pack_rules.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>

#include "ir/infer.h"
#include "transform/rewrite.h"

namespace thrice::transform {

using ir::Graph;
using ir::kNoValue;
using ir::Node;
using ir::Op;
using ir::OpClass;
using ir::ValueId;

PackRules::PackRules(Graph& graph, const Graph& model, ValueId mask, std::vector<Node>& nodes)
    : graph_(graph),
      model_(model),
      mask_(mask),
      sizes_(model, mask),
      rows_(graph, nodes, mask),
      nodes_(nodes),
      states_(model.values.size()),
      of_mask_(model.values.size(), 0) {
  for (size_t v = 0; v < model.values.size(); ++v) {
    states_[v].value = static_cast<ValueId>(v);
    of_mask_[v] = model.values[v].constant || model.values[v].known ? 1 : 0;
  }
  of_mask_[static_cast<size_t>(mask)] = 1;
}

void PackRules::refuse(const Node& node, const std::string& why) const {
  std::string name = fmt::format("operator {}", ir::op_name(node.op));
  if (node.origin >= 0) {
    const ir::Origin& origin = model_.origins[static_cast<size_t>(node.origin)];
    name = fmt::format("operator {} at node '{}' ({})", origin.op_type, origin.name, ir::op_name(node.op));
  }
  throw Error(Code::kUnsupported, fmt::format("the model cannot be packed: {}: {}", name, why));
}
void PackRules::require(const Node& node, bool condition, const std::string& why) const {
  if (!condition) refuse(node, why);
}

std::optional<double> PackRules::number_of(ValueId v) const {
  const ir::Tensor* t = v == kNoValue ? nullptr : constant_of(model_, v);
  if (t == nullptr || t->size() != 1 || t->dtype() == DType::kString) return std::nullopt;
  return t->as_double(0);
}

// Work on numbers of positions, on what the mask alone says, and on whole sequences is left as it is: the
// same values, and no more of them than the padded input has.
bool PackRules::stays_padded(const Node& node) const {
  bool of_mask = node.op != Op::random, small = true, has_positions = false;
  for (const ValueId v : node.inputs) {
    if (v == kNoValue || (of_mask_[static_cast<size_t>(v)] && node.op != Op::random)) continue;
    if (node.op != Op::shape) of_mask = false;
    if (sizes_.padded_axes(v)) has_positions = true;
  }
  for (const ValueId v : node.outputs)
    if (v != kNoValue && !sizes_.is_small(v)) small = false;
  return of_mask || small || !has_positions;
}

void PackRules::keep(const Node& node, Kind kind, const PackAxes& axes) {
  const bool of_mask =
      kind == Kind::kPadded && node.op != Op::random &&
      (node.op == Op::shape || std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
         return v == kNoValue || of_mask_[static_cast<size_t>(v)];
       }));
  for (const ValueId v : node.outputs) {
    if (v == kNoValue) continue;
    state(v).kind = kind;
    state(v).axes = axes;
    if (of_mask) of_mask_[static_cast<size_t>(v)] = 1;
  }
  nodes_.push_back(node);
}

std::vector<ValueId> PackRules::copy(const Node& node, std::vector<ValueId> inputs) {
  try {
    return rows_.copy(node, inputs);
  } catch (const Error& e) {
    refuse(node, fmt::format("without padding its shapes do not fit ({})", e.what()));
  }
}

void PackRules::set_rows(const Node& node, const std::vector<ValueId>& results, const PackAxes& axes) {
  for (size_t o = 0; o < results.size(); ++o) {
    if (node.outputs[o] == kNoValue) continue;
    PackState& next = state(node.outputs[o]);
    next.kind = Kind::kRows;
    next.axes = axes;
    next.value = results[o];
  }
  has_packed_ = true;
}

ValueId PackRules::rows_of(const Node& node, ValueId v, const PackAxes& axes) {
  if (is(v, Kind::kRows)) {
    require(node, state(v).axes == axes, "its operands have batch or positions at different axes");
    return state(v).value;
  }
  require(node, is(v, Kind::kPadded), "it reads a picked position beside others");
  const auto varies = [&](int axis) { return axis >= 0 && !sizes_.is_one(v, axis); };
  const bool of_batch = varies(axes.batch), of_tokens = varies(axes.tokens);
  if (!of_batch && !of_tokens) return v;
  require(node,
          axes.batch != axes.tokens && axes.inner == 1 && (!of_batch || sizes_.is_batch(v, axes.batch)) &&
              (!of_tokens || sizes_.is_length(v, axes.tokens)),
          "an operand has neither one element nor one a position there");
  const PackAxes at{of_batch ? axes.batch : -1, of_tokens ? axes.tokens : -1};
  const auto key = std::make_pair(v, std::make_pair(at.batch, at.tokens));
  if (const auto it = rows_made_.find(key); it != rows_made_.end()) return it->second;
  ValueId made = rows_.pack(v, at);
  if (!of_tokens) {
    require(node, axes.tokens >= 0, "an operand has one element a sequence at another axis");
    std::vector<int64_t> swap(static_cast<size_t>(rank(v)));
    for (size_t a = 0; a < swap.size(); ++a) swap[a] = static_cast<int64_t>(a);
    std::swap(swap[static_cast<size_t>(axes.batch)], swap[static_cast<size_t>(axes.tokens)]);
    made = rows_.emit("pack", Op::transpose, {made}, {{"perm", swap}});
  }
  rows_made_[key] = made;
  return made;
}

void PackRules::apply(const Node& node) {
  const auto any = [&](Kind kind) {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return is(v, kind); });
  };
  const bool rows = any(Kind::kRows) || any(Kind::kScores);
  if (node.op == Op::shape && (rows || any(Kind::kPicked))) return shape_of(node);
  if (rows) return packed(node);
  if (any(Kind::kPicked)) return picked(node);
  if (stays_padded(node)) return keep(node);
  // What is wider than the numbers of positions begins without padding.
  std::vector<std::pair<ValueId, PackState>> saved;
  for (const ValueId v : node.inputs) {
    if (v == kNoValue || of_mask_[static_cast<size_t>(v)] || is(v, Kind::kRows)) continue;
    const auto axes = sizes_.padded_axes(v);
    if (!axes) continue;
    const ValueId made = rows_of(node, v, *axes);
    saved.emplace_back(v, state(v));
    state(v).kind = Kind::kRows;
    state(v).axes = *axes;
    state(v).value = made;
  }
  packed(node);
  for (const auto& [v, before] : saved) state(v) = before;
}

void PackRules::packed(const Node& node) {
  if (ir::is_elementwise(node.op)) return elementwise(node);
  switch (node.op) {
    case Op::transpose:
    case Op::reshape:
    case Op::expand:
    case Op::slice:
    case Op::concat:
    case Op::pad:
    case Op::arg_reduce:
    case Op::top_k:
    case Op::scan_sum:
      return view(node);
    case Op::gather:
      return gather(node);
    case Op::gather_nd:
      return pick(node);
    case Op::reduce:
      return reduce(node);
    case Op::matmul:
      return product(node);
    default:
      refuse(node, "it may mix positions of a sequence with its padding");
  }
}

// Extents of the padded model.
void PackRules::shape_of(const Node& node) {
  const ValueId x = node.inputs[0];
  const int64_t count = rank(x);
  const auto clamp = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + count : i, 0, count); };
  const int64_t start = clamp(node.int_attr("start", 0)), end = clamp(node.int_attr("end", count));
  std::vector<ValueId> parts;
  for (int64_t i = start; i < end; ++i) {
    const int axis = static_cast<int>(i);
    if (const auto n = sizes_.fixed(x, axis)) {
      parts.push_back(graph_.add_constant(ir::Tensor::ints({*n})));
    } else {
      const bool batch = sizes_.is_batch(x, axis);
      require(node, batch || sizes_.is_length(x, axis), "an extent is neither the batch nor the length");
      parts.push_back(rows_.emit("shape", Op::shape, {mask_},
                                 {{"start", int64_t{batch ? 0 : 1}}, {"end", int64_t{batch ? 1 : 2}}}));
    }
  }
  require(node, !parts.empty(), "it asks for no extent");
  rows_.emit("shape", Op::concat, parts, {{"axis", int64_t{0}}}, node.outputs[0]);
}

std::optional<PackAxes> PackRules::axes_after(const Node& node, size_t at, const PackAxes& axes) const {
  const ValueId x = node.inputs[at], y = node.outputs[0];
  PackAxes next = axes;
  const auto move = [&](const auto& where) {
    for (int* axis : {&next.batch, &next.tokens, &next.keys})
      if (*axis >= 0) *axis = where(*axis);
  };
  const auto touches = [&](const std::vector<int64_t>& list) {
    return std::any_of(list.begin(), list.end(), [&](int64_t a) { return axes.has(static_cast<int>(a)); });
  };
  switch (node.op) {
    case Op::transpose: {
      const auto& perm = node.ints_attr("perm");
      move([&](int a) { return static_cast<int>(std::find(perm.begin(), perm.end(), a) - perm.begin()); });
      return next;
    }
    case Op::reshape:
      return sizes_.reshaped(x, axes, y);
    case Op::expand:
      move([&](int a) { return a + rank(y) - rank(x); });
      return next;
    case Op::pad:
      return touches(node.ints_attr("axes")) ? std::nullopt : std::optional(next);
    case Op::slice: {
      // Whole at every extent, not at those of the probes alone, and not reversed.
      const auto& list = node.ints_attr("axes");
      const ir::Tensor* steps = constant_of(model_, node.inputs[3]);
      for (size_t i = 0; i < list.size(); ++i) {
        const auto a = static_cast<size_t>(list[i]);
        if (axes.has(static_cast<int>(a)) &&
            !(steps && steps->as_int(static_cast<int64_t>(i)) == 1 &&
              model_.value(x).type.shape[a] == model_.value(y).type.shape[a]))
          return std::nullopt;
      }
      return next;
    }
    case Op::concat:
    case Op::top_k:
    case Op::scan_sum:
      if (node.string_attr("kind", "sum") == "delta_rule" ||
          axes.has(static_cast<int>(node.int_attr("axis"))))
        return std::nullopt;
      return next;
    case Op::reduce:
    case Op::arg_reduce: {
      const std::vector<int64_t> list =
          node.op == Op::reduce ? node.ints_attr("axes") : std::vector<int64_t>{node.int_attr("axis")};
      if (touches(list)) return std::nullopt;
      if (node.int_attr("keepdims", 1) == 0)
        move([&](int a) {
          return a -
                 static_cast<int>(std::count_if(list.begin(), list.end(), [&](int64_t b) { return b < a; }));
        });
      return next;
    }
    case Op::gather: {
      const int axis = static_cast<int>(node.int_attr("axis", 0));
      if (at == 1) {
        move([&](int a) { return a + axis; });
        return next;
      }
      if (axes.has(axis)) return std::nullopt;
      move([&](int a) { return a < axis ? a : a + rank(node.inputs[1]) - 1; });
      return next;
    }
    default:
      if (!ir::is_elementwise(node.op)) return std::nullopt;
      move([&](int a) { return a + rank(y) - rank(x); });
      return next;
  }
}

PackedOutput PackRules::finish(ValueId output) {
  const PackState& s = state(output);
  if (s.kind == Kind::kPadded) return {PackedOutput::Kind::kExact, {}};
  if (s.kind == Kind::kPicked) return {PackedOutput::Kind::kPicked, s.axes};
  if (s.kind == Kind::kScores)
    throw Error(Code::kUnsupported,
                "the model cannot be packed: weights of attention are an output, and have padding as keys");
  if (s.axes.inner != 1)
    throw Error(Code::kUnsupported, "the model cannot be packed: an output has batch and heads in one axis");
  rows_.unpack(s.value, s.axes, 0, output);
  return {PackedOutput::Kind::kPositions, s.axes};
}

}  // namespace thrice::transform
