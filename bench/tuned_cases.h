// Workloads whose spaces are recorded, and those that are tuned live: float32, one extent symbolic, so that
// one kernel serves all extents of a case.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "family/family.h"
#include "ir/infer.h"
#include "plan/planner.h"

namespace thrice::bench {

struct TunedCase {
  std::string name, problem;  // "matmul", "y[s0,1024] = x[s0,1024] * w[1024,1024]"
  ir::Workload workload;
  std::vector<int64_t> extents;  // of s0
};

namespace detail {
class GraphOf {
 public:
  GraphOf() { graph_.origins.push_back({"Bench", "bench", 0}); }
  ir::ValueId input(ir::Shape shape) {
    graph_.inputs.push_back(graph_.add_value({DType::kF32, std::move(shape)}));
    graph_.input_names.push_back("x" + std::to_string(graph_.inputs.size()));
    return graph_.inputs.back();
  }
  ir::ValueId op(ir::Op op, std::vector<ir::ValueId> inputs, ir::Attributes attrs = {}) {
    ir::Node node;
    node.op = op;
    node.inputs = std::move(inputs);
    node.attrs = std::move(attrs);
    node.outputs = {graph_.add_value({})};
    node.origin = 0;
    graph_.add_node(node);
    return node.outputs[0];
  }
  ir::Workload workload(ir::ValueId result) {
    graph_.outputs = {result};
    graph_.output_names = {"y"};
    ir::infer_graph(graph_);
    std::vector<ir::NodeId> nodes;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) nodes.push_back(static_cast<ir::NodeId>(n));
    return ir::extract(graph_, ir::make_region(graph_, nodes));
  }

 private:
  ir::Graph graph_;
};
}  // namespace detail

inline ir::Workload matmul_case(int64_t k, int64_t n) {
  detail::GraphOf g;
  const ir::ValueId x = g.input({ir::Dim::symbol("m"), k}), w = g.input({k, n});
  return g.workload(g.op(ir::Op::matmul, {x, w}));
}

inline ir::Workload conv_case(int64_t channels, int64_t size, int64_t filters) {
  detail::GraphOf g;
  const ir::ValueId x = g.input({ir::Dim::symbol("b"), channels, size, size}),
                    w = g.input({filters, channels, 3, 3});
  return g.workload(g.op(ir::Op::conv, {x, w},
                         {{"strides", std::vector<int64_t>{1, 1}},
                          {"pads", std::vector<int64_t>{1, 1, 1, 1}},
                          {"group", int64_t{1}}}));
}

inline ir::Workload softmax_case(int64_t columns) {
  detail::GraphOf g;
  const auto reduced = [&](const char* kind, ir::ValueId x) {
    return g.op(ir::Op::reduce, {x},
                {{"kind", std::string(kind)}, {"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{1}}});
  };
  const ir::ValueId x = g.input({ir::Dim::symbol("rows"), columns});
  const ir::ValueId e = g.op(ir::Op::exp, {g.op(ir::Op::sub, {x, reduced("max", x)})});
  return g.workload(g.op(ir::Op::div, {e, reduced("sum", e)}));
}

// What data/spaces/h200 holds: three extents each.
inline std::vector<TunedCase> recorded_cases() {
  return {
      {"matmul", "y[s0,1024] = x[s0,1024] w[1024,1024]", matmul_case(1024, 1024), {64, 256, 1024}},
      {"conv", "3x3, 128 to 128 channels, 28x28, pads 1, s0 samples", conv_case(128, 28, 128), {1, 4, 16}},
      {"row", "softmax of s0 rows of 1024", softmax_case(1024), {16, 512, 4096}}};
}

// Others than those: what was learned there is tried on shapes that nobody has seen.
inline std::vector<TunedCase> live_cases() {
  return {{"matmul", "y[s0,512] = x[s0,512] w[512,512]", matmul_case(512, 512), {128}},
          {"row", "softmax of s0 rows of 384", softmax_case(384), {256}}};
}

inline plan::PlannedWorkload planned_at(const TunedCase& c, int64_t extent,
                                        const target::DeviceSpec& device) {
  plan::PlannedWorkload planned;
  planned.workload = c.workload;
  planned.family = plan::match_family(c.workload);
  planned.facts = ir::facts_at(c.workload.graph, {{"s0", extent}});
  planned.schedule = planned.family->default_schedule(c.workload, planned.facts, device);
  planned.uses = {c.name + "_" + std::to_string(extent)};
  return planned;
}

}  // namespace thrice::bench
