// A family whose text a test writes itself, over the workload y = relu(x) or y = row sums of x: cheating
// kernels come through it.
#pragma once
#include "family/family.h"
#include "ir/region.h"

namespace thrice::test {

// y[n] = op(x[n]) with a symbolic extent, as a workload.
inline ir::Workload unary_workload(ir::Op op, DType dtype = DType::kF32) {
  ir::Graph graph;
  const ir::Type type{dtype, {ir::Dim::symbol("n")}};
  const ir::ValueId x = graph.add_value(type), y = graph.add_value(type);
  graph.inputs = {x};
  graph.input_names = {"x"};
  graph.outputs = {y};
  graph.output_names = {"y"};
  ir::Node node;
  node.op = op;
  node.inputs = {x};
  node.outputs = {y};
  node.origin = 0;
  graph.origins.push_back({"Unary", "y", 17});
  graph.add_node(std::move(node));
  return ir::extract(graph, ir::make_region(graph, {0}));
}

// y[n] = sum over the second axis of x[n, k], n symbolic.
inline ir::Workload row_sums(int64_t k) {
  ir::Graph graph;
  const ir::ValueId x = graph.add_value({DType::kF32, {ir::Dim::symbol("n"), k}});
  const ir::ValueId y = graph.add_value({DType::kF32, {ir::Dim::symbol("n")}});
  graph.inputs = {x};
  graph.input_names = {"x"};
  graph.outputs = {y};
  graph.output_names = {"y"};
  ir::Node node;
  node.op = ir::Op::reduce;
  node.attrs = {{"kind", std::string("sum")}, {"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}};
  node.inputs = {x};
  node.outputs = {y};
  node.origin = 0;
  graph.origins.push_back({"ReduceSum", "y", 17});
  graph.add_node(std::move(node));
  return ir::extract(graph, ir::make_region(graph, {0}));
}

// One kernel `k(p0, p1, E)` with E[0] = elements, over groups of 64; `temporary_bytes` of scratch as p2.
class TextFamily : public family::Family {
 public:
  explicit TextFamily(std::string text, int64_t temporary_bytes = -1)
      : text_(std::move(text)), temporary_bytes_(temporary_bytes) {}
  std::string_view name() const override { return "text"; }
  family::Refusal match(const ir::Workload&) const override { return {}; }
  artifact::Schedule default_schedule(const ir::Workload&, const std::vector<ir::Fact>&,
                                      const target::DeviceSpec&) const override {
    return {"text", "only", {}};
  }
  artifact::ScheduleSpace space(const ir::Workload&, const std::vector<ir::Fact>&,
                                const target::DeviceSpec&) const override {
    return {};
  }
  family::Refusal illegal(const ir::Workload&, const artifact::Schedule& schedule,
                          const target::DeviceSpec&) const override {
    if (schedule.tactic == "illegal") return "the test says so";
    return {};
  }
  family::ProgramText emit(const ir::Workload&, const artifact::Schedule&,
                           const target::DeviceSpec&) const override {
    return {text_, {"k"}};
  }
  artifact::LaunchPlan launch(const ir::Workload&, const artifact::Schedule&,
                              const std::vector<ir::Fact>& facts) const override {
    artifact::LaunchPlan plan;
    const int64_t n = facts[0].type.shape[0].value();
    artifact::Launch launch;
    launch.grid = {(n + 63) / 64, 1, 1};
    launch.block = {64, 1, 1};
    launch.extents = {static_cast<int32_t>(n)};
    plan.launches.push_back(launch);
    if (temporary_bytes_ >= 0) plan.temporary_bytes.push_back(temporary_bytes_);
    return plan;
  }

 private:
  std::string text_;
  int64_t temporary_bytes_;
};

// A kernel over elements whose body may use i, n, x and y.
inline std::string kernel_text(const std::string& body, const std::string& more_parameters = "") {
  return "TH_KERNEL k(TH_GLOBAL float* x, TH_GLOBAL float* y, " + more_parameters +
         "TH_GLOBAL const int* E) {\n  int i = TH_BLOCK * TH_THREADS + TH_THREAD, n = E[0];\n  " + body +
         "\n}\n";
}

}  // namespace thrice::test
