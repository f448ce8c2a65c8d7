#include <algorithm>
#include <optional>

#include "transform/canonicalize.h"
#include "transform/rewrite.h"

namespace thrice::transform {
namespace {

using ir::Dim;
using ir::Graph;
using ir::kNoValue;
using ir::Node;
using ir::Op;
using ir::Tensor;
using ir::ValueId;

// Smaller masks are read faster than computed, and indices that inference knows would be the host's.
constexpr int64_t kLeastExtent = ir::kMaxKnown + 1;

constexpr int64_t kMostStart = INT32_MAX / 4;  // of a ramp: differences of two stay below 2^31

// Key n and query m: `shown` where n <= m + shift, else `hidden`; nothing of both for flags.
struct Mask {
  int64_t rank = 0, queries = 0, keys = 0, shift = 0;
  DType dtype = DType::kBool;
  double shown = 1, hidden = 0;
};

// A constant that counts along one of its last two axes.
struct Ramp {
  bool along_keys = false;
  int64_t start = 0, length = 0, rank = 0;
};

std::optional<Ramp> ramp_of(const Graph& graph, ValueId value) {
  const Tensor* t = constant_of(graph, value);
  if (t == nullptr || !is_integer(t->dtype()) || t->size() < kLeastExtent || t->shape().size() < 2)
    return std::nullopt;
  const auto& shape = t->shape();
  const bool keys = shape.back() == t->size();
  if (!keys && shape[shape.size() - 2] != t->size()) return std::nullopt;
  // Indices are small; sums of others would wrap.
  const int64_t start = t->as_int(0);
  if (start < -kMostStart || start > kMostStart) return std::nullopt;
  for (int64_t i = 0; i < t->size(); ++i)
    if (t->as_int(i) != start + i) return std::nullopt;
  return Ramp{keys, start, t->size(), static_cast<int64_t>(shape.size())};
}

std::optional<Mask> mask_of_elements(const Tensor& t) {
  const auto& shape = t.shape();
  if (shape.size() < 2 || (t.dtype() != DType::kBool && !is_float(t.dtype()))) return std::nullopt;
  Mask mask;
  mask.rank = static_cast<int64_t>(shape.size());
  mask.queries = shape[shape.size() - 2];
  mask.keys = shape.back();
  mask.dtype = t.dtype();
  if (mask.queries * mask.keys != t.size() || std::min(mask.queries, mask.keys) < kLeastExtent)
    return std::nullopt;
  mask.shown = t.as_double((mask.queries - 1) * mask.keys);
  mask.hidden = t.as_double(mask.keys - 1);
  if (!(mask.shown != mask.hidden)) return std::nullopt;
  bool found = false;
  for (int64_t m = 0; m < mask.queries && !found; ++m) {
    int64_t count = 0;
    while (count < mask.keys && t.as_double(m * mask.keys + count) == mask.shown) ++count;
    found = count > 0;
    mask.shift = count - 1 - m;
  }
  for (int64_t i = 0; found && i < t.size(); ++i) {
    const bool seen = i % mask.keys <= i / mask.keys + mask.shift;
    found = t.as_double(i) == (seen ? mask.shown : mask.hidden);
  }
  return found ? std::optional(mask) : std::nullopt;
}

// The mask that a value is for all inputs.
std::optional<Mask> mask_of(const Graph& graph, ValueId value) {
  if (const Tensor* t = constant_of(graph, value)) return mask_of_elements(*t);
  const ir::NodeId producer = graph.value(value).producer;
  if (producer < 0) return std::nullopt;
  const Node& node = graph.nodes[static_cast<size_t>(producer)];
  if (node.op == Op::where) {
    const Tensor *shown = constant_of(graph, node.inputs[1]), *hidden = constant_of(graph, node.inputs[2]);
    if (shown == nullptr || hidden == nullptr || shown->size() != 1 || hidden->size() != 1 ||
        !is_float(shown->dtype()))
      return std::nullopt;
    auto mask = mask_of(graph, node.inputs[0]);
    if (!mask || mask->shown != 1 || mask->rank != static_cast<int64_t>(graph.value(value).type.shape.size()))
      return std::nullopt;
    mask->dtype = shown->dtype();
    mask->shown = shown->as_double(0);
    mask->hidden = hidden->as_double(0);
    return mask;
  }
  const bool is_less = node.op == Op::less_equal || node.op == Op::less;
  if (!is_less && node.op != Op::greater_equal && node.op != Op::greater) return std::nullopt;
  const auto keys = ramp_of(graph, node.inputs[is_less ? 0 : 1]),
             queries = ramp_of(graph, node.inputs[is_less ? 1 : 0]);
  if (!keys || !queries || !keys->along_keys || queries->along_keys || keys->rank != queries->rank)
    return std::nullopt;
  const bool strict = node.op == Op::less || node.op == Op::greater;
  return Mask{keys->rank, queries->length, keys->length, queries->start - keys->start - (strict ? 1 : 0)};
}

// The nodes that compute it, for one reader.
std::vector<Node> nodes_of(Graph& graph, const Mask& mask, int32_t origin) {
  std::vector<Node> made;
  const auto make = [&](Op op, std::vector<ValueId> inputs, DType dtype, ir::Shape shape,
                        ir::Attributes attrs = {}) {
    Node node;
    node.op = op;
    node.inputs = std::move(inputs);
    node.attrs = std::move(attrs);
    node.origin = origin;
    node.outputs = {graph.add_value({dtype, std::move(shape)})};
    made.push_back(node);
    return node.outputs[0];
  };
  const auto count = [&](int64_t axis, int64_t length) {
    std::vector<int64_t> shape(static_cast<size_t>(mask.rank), 1);
    shape[static_cast<size_t>(axis)] = length;
    return make(Op::iota, {graph.add_constant(Tensor::ints(shape))}, DType::kI64, ir::to_shape(shape),
                {{"axis", axis}});
  };
  ir::Shape shape(static_cast<size_t>(mask.rank), Dim(1));
  shape[shape.size() - 2] = Dim(mask.queries);
  const ValueId key = count(mask.rank - 1, mask.keys);
  ValueId last = count(mask.rank - 2, mask.queries);
  if (mask.shift != 0)
    last = make(Op::add,
                {last, graph.add_constant(Tensor::scalar(DType::kI64, static_cast<double>(mask.shift)))},
                DType::kI64, shape);
  shape.back() = Dim(mask.keys);
  const ValueId seen = make(Op::less_equal, {key, last}, DType::kBool, shape);
  if (mask.dtype != DType::kBool)
    make(Op::where,
         {seen, graph.add_constant(Tensor::scalar(mask.dtype, mask.shown)),
          graph.add_constant(Tensor::scalar(mask.dtype, mask.hidden))},
         mask.dtype, shape);
  return made;
}

bool is_number(const Graph& graph, ValueId value) {
  const Tensor* t = constant_of(graph, value);
  return t != nullptr && t->size() == 1;
}

}  // namespace

int64_t unfold_masks(Graph& graph) {
  std::vector<Node> nodes;
  int64_t changes = 0;
  for (Node node : std::vector<Node>(graph.nodes)) {
    const bool chooses =
        node.op == Op::where && !(is_number(graph, node.inputs[1]) && is_number(graph, node.inputs[2]));
    if (node.op == Op::add || chooses) {
      for (size_t i = 0; i < (chooses ? 1 : 2); ++i) {
        const auto mask = mask_of(graph, node.inputs[i]);
        if (!mask || (mask->dtype == DType::kBool) != chooses || (chooses && mask->shown != 1)) continue;
        const std::vector<Node> made = nodes_of(graph, *mask, node.origin);
        node.inputs[i] = made.back().outputs[0];
        nodes.insert(nodes.end(), made.begin(), made.end());
        ++changes;
        break;
      }
    }
    nodes.push_back(std::move(node));
  }
  if (changes > 0) exchange_nodes(graph, std::move(nodes));
  return changes;
}

}  // namespace thrice::transform
