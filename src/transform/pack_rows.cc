#include "transform/pack_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/infer.h"

namespace thrice::transform {

using ir::Graph;
using ir::kNoValue;
using ir::Node;
using ir::Op;
using ir::Tensor;
using ir::ValueId;

namespace {

using Ints = std::vector<int64_t>;

// Axes in front, the others behind in their order.
Ints to_front(size_t rank, const Ints& front) {
  Ints perm = front;
  for (int64_t a = 0; a < static_cast<int64_t>(rank); ++a)
    if (std::find(front.begin(), front.end(), a) == front.end()) perm.push_back(a);
  return perm;
}
Ints inverse(const Ints& perm) {
  Ints back(perm.size());
  for (size_t a = 0; a < perm.size(); ++a) back[static_cast<size_t>(perm[a])] = static_cast<int64_t>(a);
  return back;
}

}  // namespace

PackRows::PackRows(Graph& graph, std::vector<Node>& nodes, ValueId mask)
    : graph_(graph), nodes_(nodes), mask_(mask) {}

ValueId PackRows::emit(const std::string& name, Op op, std::vector<ValueId> inputs, ir::Attributes attrs,
                       ValueId into) {
  Node node;
  node.op = op;
  node.inputs = std::move(inputs);
  node.attrs = std::move(attrs);
  node.outputs = {into == kNoValue ? graph_.add_value({}) : into};
  node.origin = static_cast<int32_t>(graph_.origins.size());
  graph_.origins.push_back({"Packed", name, 0});
  const ValueId result = node.outputs[0];
  add(std::move(node));
  return result;
}

std::vector<ValueId> PackRows::copy(const Node& node, const std::vector<ValueId>& inputs) {
  Node own = node;
  own.inputs = inputs;
  for (ValueId& output : own.outputs)
    if (output != kNoValue) output = graph_.add_value({});
  const std::vector<ValueId> results = own.outputs;
  add(std::move(own));
  return results;
}

void PackRows::add(Node node) {
  std::vector<ir::Fact> facts(node.inputs.size());
  std::vector<const ir::Fact*> operands;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != kNoValue) {
      const ir::Value& value = graph_.value(node.inputs[i]);
      facts[i] = {value.type, value.constant ? &*value.constant : nullptr, value.known};
    }
    operands.push_back(node.inputs[i] == kNoValue ? nullptr : &facts[i]);
  }
  const std::vector<ir::Fact> results =
      ir::infer_node(node, operands, [](const std::string&) { return ir::Dim::symbol("rows"); });
  for (size_t o = 0; o < node.outputs.size(); ++o) {
    if (node.outputs[o] == kNoValue) continue;
    graph_.value(node.outputs[o]).type = results[o].type;
    graph_.value(node.outputs[o]).known = results[o].known;
  }
  nodes_.push_back(std::move(node));
}

ValueId PackRows::number(DType dtype, double value) {
  return graph_.add_constant(Tensor::scalar(dtype, value));
}

ValueId PackRows::once(const std::string& what) {
  const auto it = made_.find(what);
  if (it != made_.end()) return it->second;
  const ValueId value = make(what);
  made_[what] = value;
  return value;
}

// Everything that is read off the mask, by name; each is made once.
ValueId PackRows::make(const std::string& what) {
  const auto ints = [&](Ints values) { return graph_.add_constant(Tensor::ints(std::move(values))); };
  const auto cast = [&](ValueId v, DType to) {
    return emit(what, Op::cast, {v}, {{"to", static_cast<int64_t>(to)}, {"saturate", int64_t{1}}});
  };
  const auto i64 = static_cast<int64_t>(DType::kI64);
  if (what == "places") return emit(what, Op::nonzero, {mask_});  // [2, rows]: sequence, position
  if (what == "count")
    return emit(what, Op::shape, {once("places")}, {{"start", int64_t{1}}, {"end", int64_t{2}}});
  if (what == "sequence" || what == "position")
    return emit(what, Op::gather, {once("places"), number(DType::kI64, what == "position" ? 1 : 0)},
                {{"axis", int64_t{0}}});
  if (what == "index") {  // [1, rows, 2]
    const ValueId apart =
        emit(what, Op::reshape, {once("places"), shape_of_rows({2, 1, -1})}, {{"allowzero", int64_t{1}}});
    return emit(what, Op::transpose, {apart}, {{"perm", Ints{1, 2, 0}}});
  }
  if (what == "flags") return type(mask_).dtype == DType::kBool ? mask_ : cast(mask_, DType::kBool);
  if (what == "ones") return emit(what, Op::cast, {once("flags")}, {{"to", i64}, {"saturate", int64_t{1}}});
  if (what == "lengths")
    return emit(what, Op::reduce, {once("ones")},
                {{"kind", std::string("sum")}, {"axes", Ints{1}}, {"keepdims", int64_t{0}}});
  const auto running = [&](ValueId v, int64_t axis, int64_t exclusive) {
    return emit(
        what, Op::scan_sum, {v},
        {{"axis", axis}, {"exclusive", exclusive}, {"reverse", int64_t{0}}, {"kind", std::string("sum")}});
  };
  if (what == "ends") return running(once("lengths"), 0, 0);
  if (what == "starts") return running(once("lengths"), 0, 1);
  const auto of_rows = [&](const char* of) {
    return emit(what, Op::gather, {once(of), once("sequence")}, {{"axis", int64_t{0}}});
  };
  if (what == "begin") return of_rows("starts");
  if (what == "end") return of_rows("ends");
  if (what == "causal end") {
    const ValueId own = emit(what, Op::iota, {once("count")}, {{"axis", int64_t{0}}});
    return emit(what, Op::add, {own, number(DType::kI64, 1)});
  }
  if (what == "slot") {  // [batch, length]: the row of each position, -1 for padding
    const ValueId within = running(once("ones"), 1, 1);
    const ValueId start =
        emit(what, Op::reshape, {once("starts"), ints({-1, 1})}, {{"allowzero", int64_t{0}}});
    return emit(what, Op::where,
                {once("flags"), emit(what, Op::add, {within, start}), number(DType::kI64, -1)});
  }
  // "all slots": [batch * length]
  return emit(what, Op::reshape, {once("slot"), ints({-1})}, {{"allowzero", int64_t{0}}});
}

ValueId PackRows::shape_of_rows(const Ints& extents) {
  std::vector<ValueId> parts;
  Ints numbers;
  const auto flush = [&] {
    if (!numbers.empty()) parts.push_back(graph_.add_constant(Tensor::ints(numbers)));
    numbers.clear();
  };
  for (const int64_t n : extents) {
    if (n >= 0) {
      numbers.push_back(n);
      continue;
    }
    flush();
    parts.push_back(once("count"));
  }
  flush();
  return parts.size() == 1 ? parts[0] : emit("shape", Op::concat, parts, {{"axis", int64_t{0}}});
}

ValueId PackRows::transposed(ValueId value, const Ints& perm, ValueId into) {
  if (std::is_sorted(perm.begin(), perm.end()) && into == kNoValue) return value;
  return emit("turn", Op::transpose, {value}, {{"perm", perm}}, into);
}

ValueId PackRows::pack(ValueId value, const PackAxes& axes) {
  const size_t rank = type(value).shape.size();
  if (axes.batch < 0)
    return emit("pack", Op::gather, {value, once("position")}, {{"axis", int64_t{axes.tokens}}});
  if (axes.tokens < 0)
    return emit("pack", Op::gather, {value, once("sequence")}, {{"axis", int64_t{axes.batch}}});
  const Ints perm = to_front(rank, {axes.batch, axes.tokens});
  return transposed(
      emit("pack", Op::gather_nd, {transposed(value, perm), once("index")}, {{"batch_dims", int64_t{0}}}),
      inverse(perm));
}

// [rows + 1, ...], the last of them `fill`.
ValueId PackRows::rows_first(ValueId packed, const PackAxes& axes, double fill) {
  const size_t rank = type(packed).shape.size();
  const bool joined = axes.batch == axes.tokens;
  ValueId rows =
      transposed(packed, to_front(rank, joined ? Ints{axes.tokens} : Ints{axes.batch, axes.tokens}));
  if (!joined) rows = emit("unpack", Op::gather, {rows, number(DType::kI64, 0)}, {{"axis", int64_t{0}}});
  return emit("unpack", Op::pad,
              {rows, graph_.add_constant(Tensor::ints({0, 1})), number(type(packed).dtype, fill)},
              {{"mode", std::string("constant")}, {"axes", Ints{0}}});
}

ValueId PackRows::unpack(ValueId packed, const PackAxes& axes, double fill, ValueId into) {
  const size_t rank = type(packed).shape.size();
  const bool joined = axes.batch == axes.tokens;
  const Ints back = inverse(to_front(rank, joined ? Ints{axes.tokens} : Ints{axes.batch, axes.tokens}));
  const bool turns = !std::is_sorted(back.begin(), back.end());
  const ValueId padded =
      emit("unpack", Op::gather, {rows_first(packed, axes, fill), once(joined ? "all slots" : "slot")},
           {{"axis", int64_t{0}}}, turns ? kNoValue : into);
  return turns ? transposed(padded, back, into) : padded;
}

void PackRows::pick(ValueId packed, const Node& choose, ValueId into) {
  std::vector<ValueId> operands = choose.inputs;
  operands[0] = once("slot");
  const ValueId slots = emit("pick", choose.op, operands, choose.attrs);
  emit("pick", Op::gather, {rows_first(packed, {0, 1}, 0), slots}, {{"axis", int64_t{0}}}, into);
}

void PackRows::prepare_window(bool causal) {
  once("begin");
  once(causal ? "causal end" : "end");
}

ValueId PackRows::window(ValueId scores, const PackAxes& axes, bool causal) {
  const size_t rank = type(scores).shape.size();
  const auto along = [&](int axis) {
    Ints shape(rank, 1);
    shape[static_cast<size_t>(axis)] = -1;
    return shape_of_rows(shape);
  };
  const auto of_queries = [&](const char* what) {
    return emit("window", Op::reshape, {once(what), along(axes.tokens)}, {{"allowzero", int64_t{1}}});
  };
  // For each reader anew: attention takes in what nobody else reads.
  const ValueId key = emit("window", Op::iota, {along(axes.keys)}, {{"axis", int64_t{axes.keys}}});
  const ValueId begin = of_queries("begin"), end = of_queries(causal ? "causal end" : "end");
  const ValueId shown =
      emit("window", Op::logical_and,
           {emit("window", Op::greater_equal, {key, begin}), emit("window", Op::less, {key, end})});
  return emit("window", Op::where, {shown, scores, number(type(scores).dtype, -INFINITY)});
}

}  // namespace thrice::transform
