#include <algorithm>
#include <map>
#include <optional>

#include "transform/canonicalize.h"
#include "transform/rewrite.h"

namespace thrice::transform {
namespace {

using ir::Dim;
using ir::Graph;
using ir::Node;
using ir::Op;
using ir::ValueId;

using Axis = std::pair<ValueId, int64_t>;

// Where an extent is seen first: in an input, or in the result of the earliest node.
std::map<std::string, Axis> first_axes(const Graph& graph) {
  std::map<std::string, Axis> first;
  const auto add = [&](ValueId value) {
    const auto& shape = graph.value(value).type.shape;
    for (size_t a = 0; a < shape.size(); ++a)
      first.emplace(shape[a].str(), Axis{value, static_cast<int64_t>(a)});
  };
  for (const ValueId input : graph.inputs) add(input);
  for (const Node& node : graph.nodes)
    for (const ValueId output : node.outputs)
      if (output != ir::kNoValue) add(output);
  return first;
}

// Writes nodes that compute extents from the shapes of graph inputs, or of the first value that has them.
class FromInputs {
 public:
  FromInputs(Graph& graph, const std::map<std::string, Axis>& first, std::vector<Node>& nodes)
      : graph_(graph), first_(first), nodes_(nodes) {}

  // False where the extent is seen in `reader`, of which the shape is asked, and nowhere before.
  bool can_write(const Dim& dim, ValueId reader) const {
    if (is_of_inputs(dim)) return true;
    const auto it = first_.find(dim.str());
    return it != first_.end() && it->second.first != reader;
  }

  // A vector of one element.
  ValueId write(const Dim& dim, int32_t origin) {
    if (!is_of_inputs(dim)) return extent(first_.at(dim.str()), dim, origin);
    ValueId sum = ir::kNoValue;
    for (const auto& [atoms, factor] : dim.terms()) {
      ValueId product = ir::kNoValue;
      for (const auto& atom : atoms)
        product =
            combine(Op::mul, product, extent(*axis_of(atom->name), Dim::symbol(atom->name), origin), origin);
      if (product == ir::kNoValue || factor != 1) product = combine(Op::mul, product, number(factor), origin);
      sum = combine(Op::add, sum, product, origin);
    }
    return sum == ir::kNoValue ? number(0) : sum;
  }

 private:
  // Every symbol of `dim` is an axis of an input, and no function of symbols is in it.
  bool is_of_inputs(const Dim& dim) const {
    for (const auto& [atoms, factor] : dim.terms())
      for (const auto& atom : atoms)
        if (atom->kind != ir::AtomKind::kSymbol || !axis_of(atom->name)) return false;
    return true;
  }

  ValueId extent(const Axis& axis, const Dim& dim, int32_t origin) {
    return add(Op::shape, {axis.first}, origin, {{"start", axis.second}, {"end", axis.second + 1}}, dim);
  }
  std::optional<Axis> axis_of(const std::string& symbol) const {
    for (const ValueId input : graph_.inputs) {
      const auto& shape = graph_.value(input).type.shape;
      for (size_t a = 0; a < shape.size(); ++a)
        if (shape[a] == Dim::symbol(symbol)) return Axis{input, static_cast<int64_t>(a)};
    }
    return std::nullopt;
  }
  ValueId number(int64_t n) { return graph_.add_constant(ir::Tensor::ints({n})); }
  Dim known(ValueId v) const {
    const ir::Value& value = graph_.value(v);
    return value.known ? value.known->at(0) : Dim(value.constant->as_int(0));
  }
  ValueId combine(Op op, ValueId a, ValueId b, int32_t origin) {
    if (a == ir::kNoValue) return b;
    return add(op, {a, b}, origin, {}, op == Op::mul ? known(a) * known(b) : known(a) + known(b));
  }
  ValueId add(Op op, std::vector<ValueId> inputs, int32_t origin, ir::Attributes attrs, const Dim& known) {
    const ValueId result = graph_.add_value({DType::kI64, {Dim(1)}});
    graph_.value(result).known = std::vector<Dim>{known};
    Node node;
    node.op = op;
    node.inputs = std::move(inputs);
    node.outputs = {result};
    node.attrs = std::move(attrs);
    node.origin = origin;
    nodes_.push_back(std::move(node));
    return result;
  }

  Graph& graph_;
  const std::map<std::string, Axis>& first_;
  std::vector<Node>& nodes_;
};

}  // namespace

int64_t read_shapes_of_inputs(Graph& graph) {
  const auto asks = [&](const Node& node) {
    return node.op == Op::shape && graph.value(node.inputs[0]).producer >= 0;
  };
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), asks)) return 0;
  const std::map<std::string, Axis> first = first_axes(graph);
  std::vector<Node> nodes;
  FromInputs from(graph, first, nodes);
  int64_t changes = 0;
  for (Node& node : graph.nodes) {
    const auto known = asks(node) ? graph.value(node.outputs[0]).known : std::nullopt;
    const auto can_write = [&](const Dim& d) { return from.can_write(d, node.inputs[0]); };
    if (!known || known->empty() || !std::all_of(known->begin(), known->end(), can_write)) {
      nodes.push_back(std::move(node));
      continue;
    }
    Node joined;
    joined.op = Op::concat;
    joined.origin = node.origin;
    joined.outputs = node.outputs;
    joined.attrs["axis"] = int64_t{0};
    for (const Dim& d : *known) joined.inputs.push_back(from.write(d, node.origin));
    nodes.push_back(std::move(joined));
    ++changes;
  }
  exchange_nodes(graph, std::move(nodes));
  return changes;
}

}  // namespace thrice::transform
