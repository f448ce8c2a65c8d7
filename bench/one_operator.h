// The workload of one operator on inputs of one type (float32 unless said), as programs that measure
// operators alone make it.
#pragma once
#include <fmt/format.h>

#include <vector>

#include "ir/infer.h"
#include "ir/region.h"

namespace thrice::bench {

inline ir::Workload one_operator(ir::Op op, const std::vector<std::vector<int64_t>>& shapes,
                                 ir::Attributes attrs = {}, DType dtype = DType::kF32) {
  ir::Graph g;
  g.origins.push_back({"Bench", "bench", 0});
  for (const std::vector<int64_t>& shape : shapes) {
    g.inputs.push_back(g.add_value({dtype, ir::to_shape(shape)}));
    g.input_names.push_back(fmt::format("x{}", g.inputs.size()));
  }
  ir::Node node;
  node.op = op;
  node.inputs = g.inputs;
  node.attrs = std::move(attrs);
  node.outputs = {g.add_value({})};
  node.origin = 0;
  g.outputs = node.outputs;
  g.output_names = {"y"};
  g.add_node(node);
  ir::infer_graph(g);
  return ir::extract(g, ir::make_region(g, {0}));
}

}  // namespace thrice::bench
