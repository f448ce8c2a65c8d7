// Short way to write graphs in tests.
#pragma once
#include <string>
#include <vector>

#include "ir/infer.h"

namespace thrice::ir {

struct GraphMaker {
  Graph graph;

  ValueId input(Shape shape, DType dtype = DType::kF32) {
    const ValueId id = graph.add_value({dtype, std::move(shape)});
    graph.inputs.push_back(id);
    graph.input_names.push_back("x" + std::to_string(graph.inputs.size() - 1));
    return id;
  }
  ValueId ints(std::vector<int64_t> values) { return graph.add_constant(Tensor::ints(std::move(values))); }
  ValueId constant(Tensor tensor) { return graph.add_constant(std::move(tensor)); }
  // Adds a node with `results` outputs; returns the first.
  ValueId add(Op op, std::vector<ValueId> inputs, Attributes attrs = {}, size_t results = 1,
              std::vector<std::shared_ptr<const Graph>> bodies = {}) {
    Node node;
    node.op = op;
    node.inputs = std::move(inputs);
    node.attrs = std::move(attrs);
    node.bodies = std::move(bodies);
    for (size_t i = 0; i < results; ++i) node.outputs.push_back(graph.add_value({}));
    graph.add_node(node);
    return node.outputs[0];
  }
  void output(ValueId id) {
    graph.outputs.push_back(id);
    graph.output_names.push_back("y" + std::to_string(graph.outputs.size() - 1));
  }
  Graph& infer() {
    infer_graph(graph);
    return graph;
  }
  std::string shape(ValueId id) const { return shape_str(graph.value(id).type.shape); }
  std::string known(ValueId id) const {
    const auto& known = graph.value(id).known;
    return known ? shape_str(*known) : "unknown";
  }
};

inline std::vector<int64_t> ints_of(std::initializer_list<int64_t> values) { return values; }

}  // namespace thrice::ir
