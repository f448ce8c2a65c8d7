#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "transform/canonicalize.h"
#include "transform/rewrite.h"

namespace thrice::transform {
namespace {

using ir::Graph;
using ir::kNoValue;
using ir::Node;
using ir::NodeId;
using ir::Op;
using ir::Tensor;
using ir::ValueId;

constexpr size_t kLeastJoined = 3;  // queries, keys, values; two seldom pay for their results being slices

// A product with constant weights, and the constant vector added to it where there is one.
struct Projection {
  NodeId product = -1, sum = -1;  // -1: nothing is added
  ValueId weights = kNoValue, bias = kNoValue;
  int64_t columns = 0;
};

const Tensor* vector_of(const Graph& graph, ValueId value, int64_t size) {
  const Tensor* t = constant_of(graph, value);
  return t && t->shape().size() == 1 && t->size() == size ? t : nullptr;
}

// Parts one after the other along the last axis of [rows, columns].
Tensor joined_columns(const std::vector<const Tensor*>& parts, int64_t rows) {
  int64_t columns = 0;
  for (const Tensor* part : parts) columns += part->size() / rows;
  std::vector<int64_t> shape = parts[0]->shape();
  shape.back() = columns;
  Tensor all(parts[0]->dtype(), shape);
  const auto bytes = static_cast<size_t>(dtype_bits(all.dtype()) / 8);
  auto* to = all.mutable_data();
  for (int64_t r = 0; r < rows; ++r)
    for (const Tensor* part : parts) {
      const size_t line = static_cast<size_t>(part->size() / rows) * bytes;
      std::memcpy(to, part->data() + static_cast<size_t>(r) * line, line);
      to += line;
    }
  return all;
}

std::vector<Projection> projections(const Graph& graph) {
  const auto readers = ir::consumers(graph);
  std::vector<Projection> all;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.op != Op::matmul || node.int_attr("trans_a", 0) != 0 || node.int_attr("trans_b", 0) != 0)
      continue;
    const Tensor* weights = constant_of(graph, node.inputs[1]);
    if (!weights || weights->shape().size() != 2 || weights->size() == 0 || !is_float(weights->dtype()))
      continue;
    Projection p{static_cast<NodeId>(n), -1, node.inputs[1], kNoValue, weights->shape()[1]};
    const ValueId result = node.outputs[0];
    const auto& read = readers[static_cast<size_t>(result)];
    if (read.size() == 1 && !is_output(graph, result)) {
      const Node& next = graph.nodes[static_cast<size_t>(read[0])];
      const ValueId other = next.inputs[next.inputs[0] == result ? 1 : 0];
      if (next.op == Op::add && other != result && vector_of(graph, other, p.columns)) {
        p.sum = read[0];
        p.bias = other;
      }
    }
    all.push_back(p);
  }
  return all;
}

}  // namespace

int64_t join_products(Graph& graph) {
  // By operand, depth and dtype, and whether something is added.
  std::map<std::tuple<ValueId, int64_t, int, bool>, std::vector<Projection>> groups;
  for (const Projection& p : projections(graph)) {
    const Tensor& w = *constant_of(graph, p.weights);
    groups[{graph.nodes[static_cast<size_t>(p.product)].inputs[0], w.shape()[0], static_cast<int>(w.dtype()),
            p.sum >= 0}]
        .push_back(p);
  }
  std::map<NodeId, std::vector<Node>> instead;  // of these nodes; those replaced by nothing are dead
  std::set<NodeId> dropped;
  int64_t changes = 0;
  for (const auto& [key, members] : groups) {
    if (members.size() < kLeastJoined) continue;
    const bool adds = std::get<3>(key);
    std::vector<const Tensor*> weights, biases;
    for (const Projection& p : members) {
      weights.push_back(constant_of(graph, p.weights));
      if (adds) biases.push_back(constant_of(graph, p.bias));
    }
    // Both before anything is added to the graph: the parts lie in it.
    const Tensor joined_weights = joined_columns(weights, std::get<1>(key));
    const Tensor joined_biases = adds ? joined_columns(biases, 1) : Tensor();
    Node product = graph.nodes[static_cast<size_t>(members[0].product)];
    ir::Type type = graph.value(product.outputs[0]).type;
    type.shape.back() = ir::Dim(joined_weights.shape()[1]);
    product.inputs[1] = graph.add_constant(joined_weights);
    product.outputs = {graph.add_value(type)};
    // An operator of its own: slices are what is left of the others.
    const ir::Origin origin = graph.origins[static_cast<size_t>(product.origin)];
    product.origin = static_cast<int32_t>(graph.origins.size());
    graph.origins.push_back(origin);
    std::vector<Node> made{product};
    if (adds) {
      Node sum = graph.nodes[static_cast<size_t>(members[0].sum)];
      sum.inputs = {product.outputs[0], graph.add_constant(joined_biases)};
      sum.outputs = {graph.add_value(type)};
      sum.origin = product.origin;
      made.push_back(sum);
    }
    int64_t begin = 0;
    for (const Projection& p : members) {
      const Node& last = graph.nodes[static_cast<size_t>(adds ? p.sum : p.product)];
      Node slice;
      slice.op = Op::slice;
      slice.origin = last.origin;
      slice.inputs = {made[adds ? 1 : 0].outputs[0], graph.add_constant(Tensor::ints({begin})),
                      graph.add_constant(Tensor::ints({begin + p.columns})),
                      graph.add_constant(Tensor::ints({1}))};
      slice.attrs["axes"] = std::vector<int64_t>{static_cast<int64_t>(type.shape.size()) - 1};
      slice.outputs = last.outputs;
      made.push_back(slice);
      begin += p.columns;
      dropped.insert(p.product);
      if (adds) dropped.insert(p.sum);
    }
    instead[members[0].product] = std::move(made);
    changes += static_cast<int64_t>(members.size());
  }
  if (changes == 0) return 0;
  std::vector<Node> nodes;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto made = instead.find(static_cast<NodeId>(n));
    if (made != instead.end())
      nodes.insert(nodes.end(), made->second.begin(), made->second.end());
    else if (!dropped.count(static_cast<NodeId>(n)))
      nodes.push_back(std::move(graph.nodes[n]));
  }
  exchange_nodes(graph, std::move(nodes));
  return changes;
}

}  // namespace thrice::transform
