#include "family/attention/attention_scores.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace thrice::family {

using ir::Op;
using ir::ValueId;

namespace {

const ir::Node* producer_of(const ir::Graph& graph, ValueId value) {
  const ir::NodeId n = graph.value(value).producer;
  return n < 0 ? nullptr : &graph.nodes[static_cast<size_t>(n)];
}

std::optional<double> number_of(const ir::Graph& graph, ValueId value) {
  const auto& constant = graph.value(value).constant;
  if (!constant || constant->size() != 1 || !is_float(constant->dtype())) return std::nullopt;
  return constant->as_double(0);
}

// A value that counts along one axis: its element is the index there, plus `start`.
struct Ramp {
  int64_t from_end = 0;  // 1: along the keys, 2: along the queries
  int64_t start = 0;
};

// Sums and differences of such stay below 2^31, where kernels count.
bool is_small(int64_t n) { return n > -(INT32_MAX / 4) && n < INT32_MAX / 4; }

std::optional<Ramp> ramp_of(const ir::Graph& graph, ValueId value) {
  const auto& shape = graph.value(value).type.shape;
  const auto rank = static_cast<int64_t>(shape.size());
  if (const auto& constant = graph.value(value).constant) {
    if (is_float(constant->dtype())) return std::nullopt;
    int64_t axis = -1;
    for (int64_t a = 0; a < rank; ++a) {
      if (shape[static_cast<size_t>(a)] == ir::Dim(1)) continue;
      if (axis >= 0) return std::nullopt;
      axis = a;
    }
    if (axis < 0) return std::nullopt;
    const int64_t start = constant->as_int(0);
    if (!is_small(start)) return std::nullopt;
    for (int64_t i = 0; i < constant->size(); ++i)
      if (constant->as_int(i) != start + i) return std::nullopt;
    return Ramp{rank - axis, start};
  }
  const ir::Node* node = producer_of(graph, value);
  if (node == nullptr) return std::nullopt;
  if (node->op == Op::iota) return Ramp{rank - node->int_attr("axis", 0), 0};
  if (node->op == Op::expand) return ramp_of(graph, node->inputs[0]);
  if (node->op == Op::add) {
    for (const size_t side : {0, 1}) {
      const auto& by = graph.value(node->inputs[1 - side]).constant;
      if (!by || by->size() != 1 || is_float(by->dtype()) || !is_small(by->as_int(0))) continue;
      auto ramp = ramp_of(graph, node->inputs[side]);
      if (!ramp) return std::nullopt;
      ramp->start += by->as_int(0);
      return is_small(ramp->start) ? ramp : std::nullopt;
    }
  }
  return std::nullopt;
}

// The shift of `n <= m + shift`; nullopt where the value is no such mask.
std::optional<int64_t> shift_of(const ir::Graph& graph, ValueId allowed) {
  const ir::Node* node = producer_of(graph, allowed);
  if (node == nullptr) return std::nullopt;
  if (node->op == Op::expand) return shift_of(graph, node->inputs[0]);
  const bool is_less = node->op == Op::less || node->op == Op::less_equal;
  if (!is_less && node->op != Op::greater && node->op != Op::greater_equal) return std::nullopt;
  const auto key = ramp_of(graph, node->inputs[is_less ? 0 : 1]),
             row = ramp_of(graph, node->inputs[is_less ? 1 : 0]);
  if (!key || !row || key->from_end != 1 || row->from_end != 2) return std::nullopt;
  const bool strict = node->op == Op::less || node->op == Op::greater;
  return row->start - key->start - (strict ? 1 : 0);
}

// where(mask, x, -Inf) with a mask as above: the shift.
std::optional<int64_t> hides_later_keys(const ir::Graph& graph, const ir::Node& node) {
  const auto other = number_of(graph, node.inputs[2]);
  if (!other || !(*other == -INFINITY)) return std::nullopt;
  return shift_of(graph, node.inputs[0]);
}

// The shift of a bias that is zero for the keys that are seen and -Inf for others.
std::optional<int64_t> shift_of_bias(const ir::Graph& graph, ValueId bias) {
  const ir::Node* node = producer_of(graph, bias);
  if (node != nullptr && (node->op == Op::cast || node->op == Op::expand))
    return shift_of_bias(graph, node->inputs[0]);
  if (node == nullptr || node->op != Op::where || number_of(graph, node->inputs[1]) != 0.0)
    return std::nullopt;
  return hides_later_keys(graph, *node);
}

bool reads(const ir::Graph& graph, ValueId value, ValueId from) {
  if (value == from) return true;
  const ir::Node* node = producer_of(graph, value);
  if (node == nullptr) return false;
  for (const ValueId input : node->inputs)
    if (input != ir::kNoValue && reads(graph, input, from)) return true;
  return false;
}

}  // namespace

ScoreForm find_scores(const Workload& workload, const AttentionForm& form) {
  const ir::Graph& graph = workload.graph;
  ScoreForm scores;
  scores.is_plain = true;
  for (const ValueId factor : form.factors) scores.scale *= *number_of(graph, factor);
  const auto hide = [&](int64_t shift) {
    scores.shift = scores.is_causal ? std::min(scores.shift, shift) : shift;
    scores.is_causal = true;
  };
  for (ValueId value = form.logits; value != form.scores;) {
    const ir::Node* node = producer_of(graph, value);
    ValueId next = ir::kNoValue;
    bool known = false;
    if (node != nullptr && node->op == Op::cast) {
      next = node->inputs[0];
      known = true;
    } else if (node != nullptr && (node->op == Op::mul || node->op == Op::add || node->op == Op::div)) {
      const size_t side = reads(graph, node->inputs[0], form.scores) ? 0 : 1;
      next = node->inputs[side];
      const ValueId other = node->inputs[1 - side];
      const auto number = number_of(graph, other);
      if (node->op == Op::add) {
        const auto shift = shift_of_bias(graph, other);
        if (shift) hide(*shift);
        known = shift.has_value();
      } else if (number && (node->op == Op::mul || side == 0)) {
        scores.scale = node->op == Op::mul ? scores.scale * *number : scores.scale / *number;
        known = true;
      }
    } else if (node != nullptr && node->op == Op::where) {
      const auto shift = hides_later_keys(graph, *node);
      if (shift) hide(*shift);
      known = shift.has_value();
      if (known) next = node->inputs[1];
    }
    scores.is_plain = scores.is_plain && known;
    if (next == ir::kNoValue || !reads(graph, next, form.scores)) {
      scores.is_plain = false;
      break;
    }
    value = next;
  }
  // A mask below something that may bring -Inf back (a division, a power) hides no more.
  if (!scores.is_plain) scores.is_causal = false;
  if (!(scores.scale > 0) || !std::isfinite(scores.scale)) scores.is_plain = scores.is_causal = false;
  return scores;
}

}  // namespace thrice::family
