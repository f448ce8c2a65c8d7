#include "family/attention/attention_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace thrice::family {

using ir::Dim;
using ir::NodeId;
using ir::Op;
using ir::ValueId;

namespace {

const ir::Node* producer_of(const ir::Graph& graph, ValueId value) {
  const NodeId n = graph.value(value).producer;
  return n < 0 ? nullptr : &graph.nodes[static_cast<size_t>(n)];
}

// The node that makes `value`, which must be an `op`.
const ir::Node& expect(const ir::Graph& graph, ValueId value, Op op) {
  const ir::Node* node = producer_of(graph, value);
  if (node == nullptr || node->op != op)
    throw NotMatched{fmt::format("no {} where the softmax of attention has one", ir::op_name(op))};
  return *node;
}

bool is_number(const ir::Graph& graph, ValueId value) {
  const auto& constant = graph.value(value).constant;
  return constant && constant->size() == 1 && is_float(constant->dtype());
}

// where(is_nan(p), 0, p)
bool replaces_nan(const ir::Graph& graph, const ir::Node& node) {
  if (node.op != Op::where || !is_number(graph, node.inputs[1])) return false;
  const ir::Node* condition = producer_of(graph, node.inputs[0]);
  return condition != nullptr && condition->op == Op::is_nan && condition->inputs[0] == node.inputs[2] &&
         graph.value(node.inputs[1]).constant->as_double(0) == 0;
}

// A reduction over the last axis that keeps it.
const ir::Node& expect_reduce(const ir::Graph& graph, ValueId value, const std::string& kind) {
  const ir::Node& node = expect(graph, value, Op::reduce);
  const auto rank = static_cast<int64_t>(graph.value(node.inputs[0]).type.shape.size());
  if (node.string_attr("kind", "") != kind || node.ints_attr("axes") != std::vector<int64_t>{rank - 1} ||
      node.int_attr("keepdims", 1) == 0)
    throw NotMatched{"the softmax does not run along the keys"};
  return node;
}

int64_t constant_extent(const Dim& d, const char* what) {
  if (!d.is_const() || d.value() < 1)
    throw NotMatched{fmt::format("the {} of a head is not known beforehand", what)};
  return d.value();
}

// The axis of a reshape's operand along which its result's `axis` lies, in one piece; -1 where there is none.
int axis_before(const ir::Shape& from, const ir::Shape& to, size_t axis) {
  Dim behind(1);
  for (size_t a = axis + 1; a < to.size(); ++a) behind = behind * to[a];
  Dim rest(1);
  for (size_t a = from.size(); a-- > 0;) {
    const bool splits = from[a].is_const() && to[axis].is_const() && from[a].value() % to[axis].value() == 0;
    if (rest == behind && (from[a] == to[axis] || (splits && to[axis].value() > 1)))
      return static_cast<int>(a);
    rest = rest * from[a];
  }
  return -1;
}

// True where the slice leaves `axis` alone, or begins there at a multiple of `unit` and takes all behind it.
bool cuts_in_units(const ir::Graph& graph, const ir::Node& node, int axis, int64_t unit) {
  const auto& axes = node.ints_attr("axes");
  const auto at = std::find(axes.begin(), axes.end(), axis);
  if (at == axes.end()) return true;
  const auto number = [&](size_t operand) -> std::optional<int64_t> {
    const auto& value = graph.value(node.inputs[operand]);
    const auto i = at - axes.begin();
    if (value.constant) return value.constant->as_int(i);
    if (value.known && value.known->at(static_cast<size_t>(i)).is_const())
      return value.known->at(static_cast<size_t>(i)).value();
    return std::nullopt;
  };
  const auto start = number(1);
  const auto step = node.inputs.size() > 3 && node.inputs[3] != ir::kNoValue ? number(3) : 1;
  return start && *start >= 0 && *start % unit == 0 && step == 1;
}

// Follows views from the operand to a buffer in which the depth is contiguous, in units of 16 bytes.
void find_source(const Workload& workload, AttentionOperand& operand, int64_t depth,
                 std::vector<ValueId>* factors) {
  const ir::Graph& graph = workload.graph;
  ValueId value = operand.value;
  int axis = static_cast<int>(graph.value(value).type.shape.size()) - (operand.transposed ? 2 : 1);
  const bool wide = graph.value(operand.value).type.dtype == DType::kF32;
  const int64_t unit = wide ? 4 : 8;
  if (!wide) factors = nullptr;  // a product of 16 bits is rounded: it does not wait
  std::vector<ValueId> numbers;
  while (const ir::Node* node = producer_of(graph, value)) {
    const auto& to = graph.value(value).type.shape;
    const ValueId from = node->inputs[0];
    switch (node->op) {
      case Op::transpose:
        axis = static_cast<int>(node->ints_attr("perm")[static_cast<size_t>(axis)]);
        value = from;
        break;
      case Op::reshape:
        axis = axis_before(graph.value(from).type.shape, to, static_cast<size_t>(axis));
        if (axis < 0) return;
        value = from;
        break;
      case Op::gather: {
        const int at = static_cast<int>(node->int_attr("axis", 0));
        const int rank = static_cast<int>(graph.value(node->inputs[1]).type.shape.size());
        if (axis >= at && axis < at + rank) return;
        if (axis >= at + rank) axis += 1 - rank;
        value = from;
        break;
      }
      case Op::slice:
        if (!cuts_in_units(graph, *node, axis, unit)) return;
        value = from;
        break;
      case Op::expand: {
        const auto& inner = graph.value(from).type.shape;
        axis -= static_cast<int>(to.size()) - static_cast<int>(inner.size());
        if (axis < 0 ||
            !(inner[static_cast<size_t>(axis)] == to[static_cast<size_t>(axis) + to.size() - inner.size()]))
          return;
        value = from;
        break;
      }
      case Op::mul: {
        const size_t number = is_number(graph, node->inputs[1]) ? 1 : 0;
        const ValueId other = node->inputs[1 - number];
        if (factors == nullptr || !is_number(graph, node->inputs[number]) ||
            !(graph.value(other).type.shape == to))
          return;
        numbers.push_back(node->inputs[number]);
        operand.skipped.emplace_back(value, other);
        value = other;
        break;
      }
      default:
        return;
    }
  }
  const ir::Type& type = graph.value(value).type;
  const bool narrow = type.dtype == DType::kF16 || type.dtype == DType::kBF16;
  if (!is_stored_buffer(workload, value) || (!wide && !narrow) || depth % unit != 0) return;
  for (size_t a = static_cast<size_t>(axis) + 1; a < type.shape.size(); ++a)
    if (!(type.shape[a] == Dim(1))) return;
  const Dim& last = type.shape[static_cast<size_t>(axis)];
  if (!last.is_const() || last.value() % unit != 0) return;
  operand.source = value;
  operand.in_fours = wide;
  operand.in_eights = narrow;
  if (factors != nullptr) factors->insert(factors->end(), numbers.begin(), numbers.end());
}

// Coordinates of the batch in the shape of the scores, from its flat number.
Coords batch_of(Emitter& e, const AttentionForm& form, Index z) {
  std::vector<Index> dims = e.dims(form.logits);
  dims.resize(dims.size() - 2);
  return dims.empty() ? Coords{} : e.index().split(z, dims);
}

Coords operand_coords(Emitter& e, const AttentionForm& form, const AttentionOperand& operand, Index z,
                      Index row, Index depth) {
  const ValueId result = &operand == &form.v ? form.region.result : form.scores;
  return product_coords(e, operand.value, result, batch_of(e, form, z), operand.transposed ? depth : row,
                        operand.transposed ? row : depth);
}

// An element of the operand as it is before the numbers that wait for the scores.
std::string unscaled(Emitter& e, const AttentionForm& form, const AttentionOperand& operand, Index z,
                     Index row, Index depth) {
  if (operand.in_fours)
    for (const auto& [result, inner] : operand.skipped)
      e.bind(result, [&e, inner = inner](const Coords& coords) { return e.value(inner, coords); });
  const std::string element = e.value(operand.value, operand_coords(e, form, operand, z, row, depth));
  for (const auto& skipped : operand.skipped) e.unbind(skipped.first);
  return element;
}

// where(begin <= key and key < end, x, -Inf), where both have one element a row.
void find_window(const ir::Graph& graph, AttentionForm& form) {
  const ir::Node* node = producer_of(graph, form.logits);
  while (node != nullptr && node->op == Op::cast) node = producer_of(graph, node->inputs[0]);
  if (node == nullptr || node->op != Op::where || !is_number(graph, node->inputs[2])) return;
  const ir::Node* both = producer_of(graph, node->inputs[0]);
  if (!(graph.value(node->inputs[2]).constant->as_double(0) == -INFINITY) || both == nullptr ||
      both->op != Op::logical_and)
    return;
  const ir::Node *from = producer_of(graph, both->inputs[0]), *to = producer_of(graph, both->inputs[1]);
  if (from == nullptr || to == nullptr || from->op != Op::greater_equal || to->op != Op::less ||
      from->inputs[0] != to->inputs[0])
    return;
  const ir::Node* key = producer_of(graph, from->inputs[0]);
  const auto rank = static_cast<int64_t>(graph.value(form.logits).type.shape.size());
  if (key == nullptr || key->op != Op::iota || key->int_attr("axis", 0) != rank - 1) return;
  for (const ValueId bound : {from->inputs[1], to->inputs[1]}) {
    const auto& shape = graph.value(bound).type.shape;
    if (static_cast<int64_t>(shape.size()) != rank || !(shape.back() == Dim(1))) return;
  }
  form.begin = from->inputs[1];
  form.end = to->inputs[1];
}

bool same_batches(const ir::Shape& a, const ir::Shape& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end() - 2, b.begin());
}

// Writes everything once: what cannot be written is not matched.
void try_writing(const Workload& workload, const AttentionForm& form) {
  ProgramDraft draft(workload);
  Emitter e(draft, "probe");
  const Index z = e.index().var("z", form.batches.dim), m = e.index().var("m", form.rows.dim),
              n = e.index().var("n", form.keys.dim), d = e.index().var("d", Dim(form.depth)),
              w = e.index().var("w", Dim(form.width));
  operand_element(e, form, form.q, z, m, d);
  operand_element(e, form, form.k, z, n, d);
  operand_element(e, form, form.v, z, n, w);
  logit_element(e, form, z, m, n, "score");
  if (form.has_window()) window_of_row(e, form, z, m);
}

}  // namespace

AttentionForm find_attention(const Workload& workload) {
  const ir::Graph& graph = workload.graph;
  std::vector<NodeId> products;
  std::set<NodeId> own;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const ir::Node& node = graph.nodes[n];
    const bool reduces = node.op == Op::reduce && !node.ints_attr("axes").empty();
    if (node.op == Op::matmul) products.push_back(static_cast<NodeId>(n));
    if (node.op == Op::matmul || reduces) own.insert(static_cast<NodeId>(n));
  }
  if (products.size() != 2 || own.size() != 4) throw NotMatched{"not two products around one softmax"};
  if (auto refusal = refuse_inlining(workload, own)) throw NotMatched{*refusal};
  AttentionForm form;
  form.region = region_behind(workload, products[1]);
  const ir::Node& second = *form.region.op;
  const ir::Node& first = graph.nodes[static_cast<size_t>(products[0])];
  form.scores = first.outputs[0];
  if (second.int_attr("trans_a", 0) != 0) throw NotMatched{"the weights of attention are transposed"};

  ValueId weights = second.inputs[0];
  for (const ir::Node* node = producer_of(graph, weights); node != nullptr;
       node = producer_of(graph, weights)) {
    if (replaces_nan(graph, *node)) {
      form.nan_to_zero = true;
      weights = node->inputs[2];
    } else if (node->op == Op::cast) {
      weights = node->inputs[0];
    } else {
      break;
    }
  }
  const ir::Node& share = expect(graph, weights, Op::div);
  const ir::Node& power = expect(graph, share.inputs[0], Op::exp);
  if (expect_reduce(graph, share.inputs[1], "sum").inputs[0] != share.inputs[0])
    throw NotMatched{"the softmax divides by another sum"};
  const ir::Node& centred = expect(graph, power.inputs[0], Op::sub);
  form.logits = centred.inputs[0];
  if (expect_reduce(graph, centred.inputs[1], "max").inputs[0] != form.logits)
    throw NotMatched{"the softmax subtracts another maximum"};

  form.q = {first.inputs[0], first.int_attr("trans_a", 0) != 0, {}, ir::kNoValue, false};
  form.k = {first.inputs[1], first.int_attr("trans_b", 0) == 0, {}, ir::kNoValue, false};
  form.v = {second.inputs[1], second.int_attr("trans_b", 0) != 0, {}, ir::kNoValue, false};
  const ir::Type& result = graph.value(form.region.result).type;
  const auto& scores = graph.value(form.scores).type.shape;
  const auto& logits = graph.value(form.logits).type.shape;
  if (result.dtype != DType::kF32 && result.dtype != DType::kF16 && result.dtype != DType::kBF16)
    throw NotMatched{"attention is written for f32, f16 and bf16"};
  if (!same_batches(logits, result.shape) || !(scores == logits))
    throw NotMatched{"scores and result of attention have different heads"};
  const int rank = static_cast<int>(logits.size());
  const auto& q = graph.value(form.q.value).type.shape;
  form.depth = constant_extent(q[q.size() - (form.q.transposed ? 2 : 1)], "depth");
  form.width = constant_extent(result.shape.back(), "width");
  const ValueId y = form.logits;
  Dim batches(1);
  for (int a = 0; a < rank - 2; ++a) batches = batches * logits[static_cast<size_t>(a)];
  form.batches = {batches, [y, rank](const Facts& facts) {
                    int64_t n = 1;
                    for (int a = 0; a < rank - 2; ++a) n *= extent_at(facts, y, a);
                    return n;
                  }};
  form.rows = {logits[static_cast<size_t>(rank - 2)], extent_of(y, rank - 2)};
  form.keys = {logits[static_cast<size_t>(rank - 1)], extent_of(y, rank - 1)};
  find_window(graph, form);
  find_source(workload, form.q, form.depth, &form.factors);
  find_source(workload, form.k, form.depth, &form.factors);
  find_source(workload, form.v, form.width, nullptr);
  try_writing(workload, form);
  return form;
}

std::string operand_element(Emitter& e, const AttentionForm& form, const AttentionOperand& operand, Index z,
                            Index row, Index depth) {
  return unscaled(e, form, operand, z, row, depth);
}

std::string operand_address(Emitter& e, const ProgramDraft& draft, const AttentionForm& form,
                            const AttentionOperand& operand, Index z, Index row, Index depth) {
  std::string at;
  e.bind(operand.source, [&](const Coords& coords) {
    at = address(e, draft, operand.source, coords);
    return std::string("0.0f");
  });
  unscaled(e, form, operand, z, row, depth);
  e.unbind(operand.source);
  return at;
}

std::string logit_element(Emitter& e, const AttentionForm& form, Index z, Index row, Index key,
                          const std::string& score) {
  Coords at = batch_of(e, form, z);
  at.push_back(row);
  at.push_back(key);
  // Where an extent is one, broadcasting operators read at zero, whatever the name of the coordinate.
  const auto& shape = e.graph().value(form.scores).type.shape;
  for (size_t a = 0; a < at.size(); ++a)
    if (shape[a] == Dim(1)) at[a] = e.constant(0);
  const Index flat = e.index().linear(at, e.dims(form.scores));
  std::string product = score;
  for (const ValueId factor : form.factors)
    product += " * " + e.value(factor, Coords(e.graph().value(factor).type.shape.size(), e.constant(0)));
  const std::string held = e.declare(DType::kF32, product);
  e.bind(form.scores, [&e, &form, flat, held](const Coords& coords) {
    if (!(e.index().linear(coords, e.dims(form.scores)) == flat))
      throw NotMatched{"the softmax reads scores at other places than its own"};
    return held;
  });
  const std::string logit = e.value(form.logits, at);
  e.unbind(form.scores);
  return logit;
}

std::pair<std::string, std::string> window_of_row(Emitter& e, const AttentionForm& form, Index z, Index row) {
  const auto bound = [&](ValueId value) {
    Coords at = batch_of(e, form, z);
    at.push_back(row);
    at.push_back(e.constant(0));
    const auto& shape = e.graph().value(value).type.shape;
    for (size_t a = 0; a < at.size(); ++a)
      if (shape[a] == Dim(1)) at[a] = e.constant(0);
    return e.value(value, at);
  };
  const std::string keys = extent_text(e, form.keys), from = bound(form.begin), to = bound(form.end);
  return {fmt::format("({0} > 0 ? (int)({0}) : 0)", from),
          fmt::format("({0} < {1} ? (int)({0}) : {1})", to, keys)};
}

void store_element(Emitter& e, const AttentionForm& form, Index z, Index row, Index column,
                   const std::string& element) {
  Coords at = batch_of(e, form, z);
  at.push_back(row);
  at.push_back(column);
  emit_epilogue(e, form.region, at, {element});
}

}  // namespace thrice::family
