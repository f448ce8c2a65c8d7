// Rules for rows of positions: operators that treat each position alike.
#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>

#include "ir/inputs.h"
#include "transform/pack_rules.h"
#include "transform/rewrite.h"

namespace thrice::transform {

using ir::kNoValue;
using ir::Node;
using ir::Op;
using ir::ValueId;

namespace {

const char* const kMixes = "it mixes positions, or sequences, with each other";

PackAxes shifted(PackAxes axes, int by) {
  for (int* axis : {&axes.batch, &axes.tokens, &axes.keys})
    if (*axis >= 0) *axis += by;
  return axes;
}

}  // namespace

void PackRules::elementwise(const Node& node) {
  const int r = rank(node.outputs[0]);
  std::optional<PackAxes> axes;
  bool of_scores = false;
  for (const Kind kind : {Kind::kScores, Kind::kRows})
    for (const ValueId v : node.inputs) {
      if (axes || !is(v, kind)) continue;
      axes = shifted(state(v).axes, r - rank(v));
      of_scores = kind == Kind::kScores;
    }
  if (of_scores) return scores(node, *axes);
  if (hides_rows(node, *axes)) return;
  std::vector<ValueId> inputs;
  // Below zero: an axis that the operand does not have.
  for (const ValueId v : node.inputs) {
    PackAxes own{axes->batch + rank(v) - r, axes->tokens + rank(v) - r, -1, axes->inner};
    own.batch = std::max(own.batch, -1);
    own.tokens = std::max(own.tokens, -1);
    inputs.push_back(rows_of(node, v, own));
  }
  const auto fill = state(node.inputs[0]).fill;
  set_rows(node, copy(node, inputs), *axes);
  if (node.op == Op::identity || (node.op == Op::cast && ir::is_elementwise(node.op)))
    state(node.outputs[0]).fill = fill;
}

// x * mask, and a number where the mask hides: what the padded model has at padded positions is known then.
bool PackRules::hides_rows(const Node& node, const PackAxes& axes) {
  if (node.op != Op::mul && node.op != Op::where) return false;
  const int r = rank(node.outputs[0]);
  for (size_t i = 0; i < (node.op == Op::mul ? 2u : 1u); ++i) {
    const ValueId v = node.inputs[i];
    if (!is(v, Kind::kPadded) || !of_mask_[static_cast<size_t>(v)] || constant_of(model_, v)) continue;
    const auto meaning = meaning_of(v, shifted({axes.batch, axes.tokens}, rank(v) - r));
    if (!meaning || !meaning->padding) continue;
    ValueId x = node.inputs[1 - std::min<size_t>(i, 1)];
    double fill = 0;
    if (node.op == Op::where) {
      const bool straight = meaning->shown > meaning->hidden;
      x = node.inputs[straight ? 1 : 2];
      const auto other = number_of(node.inputs[straight ? 2 : 1]);
      if (!other) continue;
      fill = *other;
    } else if (meaning->hidden != 0 || !meaning->is_even) {
      continue;
    }
    const auto same = [&](size_t p) { return sizes_.of(x, p) == sizes_.of(node.outputs[0], p); };
    if (!is(x, Kind::kRows) || !same(0) || !same(1)) continue;
    PackState next = state(x);
    if (node.op == Op::mul && meaning->shown != 1)
      next.value = rows_.emit("mask", Op::mul,
                              {next.value, rows_.number(rows_.type(next.value).dtype, meaning->shown)});
    next.fill = fill;
    state(node.outputs[0]) = next;
    return true;
  }
  return false;
}

void PackRules::view(const Node& node) {
  size_t main = 0;
  while (!is(node.inputs[main], Kind::kRows) && !is(node.inputs[main], Kind::kScores)) ++main;
  const ValueId x = node.inputs[main];
  const PackAxes before = state(x).axes;
  const auto axes = axes_after(node, main, before);
  if (!axes && node.op == Op::slice && is(x, Kind::kRows) &&
      node.ints_attr("axes") == std::vector<int64_t>{before.tokens})
    return pick(node);
  require(node, axes.has_value(), kMixes);
  std::vector<ValueId> inputs = node.inputs;
  Node own = node;
  if (node.op == Op::concat) {
    for (ValueId& v : inputs) v = is(v, Kind::kScores) ? state(v).value : rows_of(node, v, before);
  } else {
    require(node, main == 0, kMixes);
    inputs[0] = state(x).value;
    for (size_t i = 1; i < inputs.size(); ++i)
      require(node, inputs[i] == kNoValue || is(inputs[i], Kind::kPadded), "positions decide what it reads");
  }
  if (node.op == Op::reshape || node.op == Op::expand) {
    const ValueId y = node.outputs[0];
    std::vector<int64_t> extents;
    for (int a = 0; a < rank(y); ++a) {
      const auto fixed = sizes_.fixed(y, a);
      if (a == axes->tokens || a == axes->keys)
        extents.push_back(-1);
      else if (a == axes->batch)
        extents.push_back(axes->inner);
      else if (fixed)
        extents.push_back(*fixed);
      else
        refuse(node, fmt::format("axis {} of its result changes with the batch or the length", a));
    }
    inputs[1] = rows_.shape_of_rows(extents);
    if (node.op == Op::reshape) own.attrs["allowzero"] = int64_t{1};
  }
  const PackState state_before = state(x);
  const size_t first = rows_.emitted();
  const std::vector<ValueId> results = copy(own, inputs);
  set_rows(node, results, *axes);
  PackState& next = state(node.outputs[0]);
  if (state_before.kind == Kind::kScores) {
    require(node, node.op == Op::transpose || node.op == Op::reshape || node.op == Op::expand,
            "it takes scores of attention apart");
    const ValueId value = next.value;
    next = state_before;
    next.axes = *axes;
    next.value = value;
    next.trail->push_back(first);
  } else if (node.op == Op::transpose || node.op == Op::reshape || node.op == Op::expand) {
    next.fill = state_before.fill;
  }
}

void PackRules::gather(const Node& node) {
  const ValueId x = node.inputs[0], at = node.inputs[1];
  if (is(at, Kind::kRows)) {
    require(node, is(x, Kind::kPadded) && of_mask_[static_cast<size_t>(x)],
            "positions choose among what changes with the input");
    set_rows(node, copy(node, {x, state(at).value}), *axes_after(node, 1, state(at).axes));
    return;
  }
  require(node, is(x, Kind::kRows) && is(at, Kind::kPadded), kMixes);
  if (state(x).axes.tokens == static_cast<int>(node.int_attr("axis", 0))) return pick(node);
  const auto axes = axes_after(node, 0, state(x).axes);
  require(node, axes.has_value() && of_mask_[static_cast<size_t>(at)], kMixes);
  set_rows(node, copy(node, {state(x).value, at}), *axes);
}

void PackRules::pick(const Node& node) {
  const ValueId x = node.inputs[0], y = node.outputs[0];
  require(node, is(x, Kind::kRows) && state(x).axes == PackAxes{0, 1}, kMixes);
  for (size_t i = 1; i < node.inputs.size(); ++i)
    require(node, is(node.inputs[i], Kind::kPadded), "positions decide what it reads");
  const ir::Tensor* at = constant_of(model_, node.inputs[1]);
  if (node.op == Op::gather_nd) {
    require(node,
            node.int_attr("batch_dims", 0) == 0 &&
                sizes_.fixed(node.inputs[1], rank(node.inputs[1]) - 1) == int64_t{2},
            kMixes);
  } else {
    require(node, at != nullptr, "the positions that it picks are computed");
    const auto steps = node.op == Op::slice ? number_of(node.inputs[3]) : 1;
    const auto count = node.op == Op::slice ? sizes_.fixed(y, 1) : at->size();
    require(node, count && *count > 0 && steps == 1.0, "it picks positions that depend on the length");
    for (int64_t i = 0; i < *count; ++i)
      picks_.push_back(node.op == Op::slice ? at->as_int(0) + i : at->as_int(i));
  }
  require(node, sizes_.is_batch(y, 0), "its result does not begin with the batch");
  rows_.pick(state(x).value, node, y);
  state(y).kind = Kind::kPicked;
  state(y).axes = {0};
}

void PackRules::reduce(const Node& node) {
  const ValueId x = node.inputs[0];
  const PackState before = state(x);
  const std::vector<int64_t>& list = node.ints_attr("axes");
  if (before.kind == Kind::kScores) {
    const std::string kind = node.string_attr("kind", "sum");
    require(node, list == std::vector<int64_t>{before.axes.keys} && (kind == "max" || kind == "sum"),
            "scores of attention are reduced otherwise than by a softmax");
    if (kind == "max")
      cut(node, x);
    else
      require(node, before.stage == Stage::kWeights, "scores are summed before their exponential");
    PackAxes axes{before.axes.batch, before.axes.tokens, -1, before.axes.inner};
    if (node.int_attr("keepdims", 1) == 0)
      for (int* axis : {&axes.batch, &axes.tokens})
        if (before.axes.keys < *axis) --*axis;
    const size_t first = rows_.emitted();
    set_rows(node, copy(node, {state(x).value}), axes);
    before.trail->push_back(first);
    return;
  }
  if (const auto axes = axes_after(node, 0, before.axes)) {
    set_rows(node, copy(node, {before.value}), *axes);
    return;
  }
  require(node,
          std::find(list.begin(), list.end(), before.axes.batch) == list.end() ||
              before.axes.batch == before.axes.tokens,
          "it mixes sequences with each other");
  require(node, before.fill.has_value() && before.axes.inner == 1,
          "it takes all positions together, and no mask hides the padded ones");
  rows_.unpack(before.value, before.axes, *before.fill, x);
  state(x) = PackState{};
  state(x).value = x;
  keep(node);
}

void PackRules::product(const Node& node) {
  const ValueId a = node.inputs[0], b = node.inputs[1];
  const int ra = rank(a), rb = rank(b), r = rank(node.outputs[0]);
  const bool ta = node.int_attr("trans_a", 0) != 0, tb = node.int_attr("trans_b", 0) != 0;
  const int am = ra - (ta ? 1 : 2), ak = ra - (ta ? 2 : 1), bk = rb - (tb ? 1 : 2), bn = rb - (tb ? 2 : 1);
  // The axis of the result where an operand's is; -1: it is summed over.
  const auto in_result = [&](int axis, bool first) {
    if (axis < 0) return -1;
    if (axis == (first ? ak : bk)) return -1;
    if (axis == (first ? am : bn)) return first ? r - 2 : r - 1;
    return axis + r - (first ? ra : rb);
  };
  const auto placed = [&](const PackAxes& axes, bool first) {
    PackAxes next{in_result(axes.batch, first), in_result(axes.tokens, first), -1, axes.inner};
    require(node, next.batch >= 0 && next.tokens >= 0, kMixes);
    return next;
  };
  const auto of_weights = [&](ValueId w, const PackAxes& axes, bool first) {
    require(node, is(w, Kind::kPadded) && of_mask_[static_cast<size_t>(w)],
            "its other operand changes with the input");
    for (const int axis : {axes.batch, axes.tokens}) {
      const int own = in_result(axis, first) + rank(w) - r;
      if (in_result(axis, first) < r - 2 && own >= 0)
        require(node, sizes_.is_one(w, own), "its other operand changes with the position");
    }
  };
  if (is(a, Kind::kScores)) {
    const PackState s = state(a);
    require(node, s.stage == Stage::kWeights && !s.is_nan && is(b, Kind::kRows),
            "scores of attention are multiplied before a softmax");
    const PackAxes& v = state(b).axes;
    require(node,
            s.axes.keys == ak && v.tokens == bk && in_result(s.axes.tokens, true) == r - 2 &&
                in_result(s.axes.batch, true) == in_result(v.batch, false) && s.axes.inner == v.inner,
            "weights and values of attention do not fit");
    s.trail->push_back(rows_.emitted());
    set_rows(node, copy(node, {s.value, state(b).value}),
             {in_result(s.axes.batch, true), r - 2, -1, s.axes.inner});
    // One operator, whatever the model wrote it as: it is never computed in parts of rows by rows.
    graph_.origins.push_back(
        {ir::kPackedAttention, graph_.origins[static_cast<size_t>(std::max(node.origin, 0))].name, 0});
    for (const size_t n : *s.trail) rows_.node(n).origin = static_cast<int32_t>(graph_.origins.size()) - 1;
    return;
  }
  require(node, !is(b, Kind::kScores), "scores of attention are multiplied from the other side");
  if (is(a, Kind::kRows) && is(b, Kind::kRows)) {
    const PackAxes x = state(a).axes, y = state(b).axes;
    const int batch = in_result(x.batch, true);
    require(node, batch >= 0 && batch == in_result(y.batch, false) && x.inner == y.inner, kMixes);
    const int row = in_result(x.tokens, true), key = in_result(y.tokens, false);
    const std::vector<ValueId> operands{state(a).value, state(b).value};
    if (row >= 0 && row == key) {
      set_rows(node, copy(node, operands), {batch, row, -1, x.inner});
      return;
    }
    require(node, row == r - 2 && key == r - 1 && batch < r - 2, kMixes);
    const size_t first = rows_.emitted();
    const std::vector<ValueId> results = copy(node, operands);
    set_rows(node, results, {batch, row, key, x.inner});
    PackState& next = state(node.outputs[0]);
    next.kind = Kind::kScores;
    next.trail = std::make_shared<std::vector<size_t>>(std::vector<size_t>{first});
    return;
  }
  const bool first = is(a, Kind::kRows);
  const PackAxes axes = state(first ? a : b).axes;
  of_weights(first ? b : a, axes, first);
  const PackAxes next = placed(axes, first);
  set_rows(node, copy(node, {state(a).value, state(b).value}), next);
}

// Values of whole sequences after a picked position: the model's own operators, as long as they keep
// sequences apart.
void PackRules::picked(const Node& node) {
  std::optional<PackAxes> axes;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId v = node.inputs[i];
    if (!is(v, Kind::kPicked)) continue;
    std::optional<PackAxes> next;
    if (node.op == Op::matmul) {
      const int r = rank(node.outputs[0]), own = rank(v), axis = state(v).axes.batch;
      const bool transposed = node.int_attr(i == 0 ? "trans_a" : "trans_b", 0) != 0;
      const int summed = own - (i == 0) - (i != 0) * 2 + (transposed ? (i == 0 ? -1 : 1) : 0);
      const bool both = is(node.inputs[0], Kind::kPicked) && is(node.inputs[1], Kind::kPicked);
      if (axis < own - 2)
        next = PackAxes{axis + r - own, -1, -1, state(v).axes.inner};
      else if (axis != summed && !both)
        next = PackAxes{i == 0 ? r - 2 : r - 1, -1, -1, state(v).axes.inner};
    } else {
      next = axes_after(node, i, state(v).axes);
    }
    require(node, next && (!axes || *axes == *next), "it mixes sequences, of which one may be all padding");
    axes = next;
  }
  keep(node, Kind::kPicked, *axes);
}

}  // namespace thrice::transform
