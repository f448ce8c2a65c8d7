// The recorded cases and the small nets of the zoo, training steps among them, on OpenCL, twice: operator by
// operator as imported, and transformed and fused by the greedy planner. Catches kernels, plans, bindings and
// fusions that are wrong in a whole model although each region's own test passes.
#include <fmt/format.h>
#include <thrice/status.h>

#include "cross/cases/recorded.h"
#include "exec/executor.h"
#include "flow/build.h"
#include "frontend/import.h"
#include "ir/compare.h"
#include "ir/evaluate.h"
#include "plan/planner.h"
#include "transform/transform.h"

namespace thrice::testing {
namespace {

struct OpenCl {
  backend::DevicePtr device;
  std::shared_ptr<jit::KernelCache> cache;
  std::string reason;
  static const OpenCl& instance() {
    static const OpenCl kOne = [] {
      OpenCl one;
      try {
        one.device = backend::open_device("opencl:0");
        one.cache = std::make_shared<jit::KernelCache>(one.device, "");
      } catch (const Error& error) {
        one.reason = error.what();
      }
      return one;
    }();
    return kOne;
  }
};

// Default schedules are chosen at the extents of `first`, the first input set.
std::shared_ptr<artifact::Plan> plan_of(const std::shared_ptr<ir::Graph>& graph, const std::string& planner,
                                        const std::vector<ir::Tensor>& first) {
  const OpenCl& cl = OpenCl::instance();
  plan::PlanOptions options;
  options.planner = planner;
  for (size_t i = 0; i < graph->inputs.size(); ++i) {
    const ir::Shape& shape = graph->value(graph->inputs[i]).type.shape;
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (const auto symbols = shape[axis].symbols();
          symbols.size() == 1 && shape[axis] == ir::Dim::symbol(*symbols.begin()))
        options.bindings[*symbols.begin()] = first[i].shape()[axis];
  }
  return std::make_shared<artifact::Plan>(plan::make_plan(*graph, cl.device->spec(), options).plan);
}
std::unique_ptr<exec::Executor> run_by(const std::shared_ptr<ir::Graph>& graph,
                                       const std::shared_ptr<artifact::Plan>& plan) {
  const OpenCl& cl = OpenCl::instance();
  return std::make_unique<exec::Executor>(
      exec::make_executable(cl.device, graph, plan, flow::program_source(cl.device, cl.cache, nullptr)));
}

class CasesOnOpenCl : public ::testing::TestWithParam<fs::path> {};

TEST_P(CasesOnOpenCl, OriginalAndOptimised) {
  if (!OpenCl::instance().device) GTEST_SKIP() << "no OpenCL device: " << OpenCl::instance().reason;
  const RecordedCase recorded(GetParam());
  std::shared_ptr<ir::Graph> graph;
  try {
    graph = std::make_shared<ir::Graph>(frontend::import_model(GetParam() / "model.onnx"));
  } catch (const Error& error) {
    EXPECT_NE(recorded.expected(), "result") << error.what();
    return;
  }
  const auto transformed = std::make_shared<ir::Graph>(*graph);
  transform::run_transforms(*transformed);
  const auto original = run_by(graph, plan_of(graph, "original", recorded.inputs(*graph, recorded.folder)));
  std::map<std::string, std::unique_ptr<exec::Executor>> optimised;  // by planner
  const auto greedy = plan_of(transformed, "greedy", recorded.inputs(*transformed, recorded.folder));
  const auto dp = plan_of(transformed, "dp", recorded.inputs(*transformed, recorded.folder));
  optimised["greedy"] = run_by(transformed, greedy);
  artifact::Plan renamed = *dp;
  renamed.planner = greedy->planner;
  if (renamed.to_json() != greedy->to_json()) optimised["dp"] = run_by(transformed, dp);
  for (const fs::path& set : recorded.sets) {
    const std::vector<ir::Tensor> inputs = recorded.inputs(*graph, set);
    std::vector<ir::ArrayPtr> arrays;
    for (const ir::Tensor& t : inputs) arrays.push_back(ir::to_array(t));
    const auto reference = ir::evaluate_graph(*graph, arrays);
    const auto ordinary = original->run_host(inputs);
    recorded.expect_recorded(*graph, set, ordinary);
    for (const auto& [planner, executor] : optimised) {
      const auto results = executor->run_host(recorded.inputs(*transformed, set));
      recorded.expect_recorded(*transformed, set, results);
      for (size_t o = 0; o < results.size(); ++o) {
        SCOPED_TRACE(
            fmt::format("{}: output {} of {}", planner, graph->output_names[o], set.filename().string()));
        // docs/numerics.md, as for whole models: the fused form may err twice as much as the operators one by
        // one do, and these as much as the element type's own limit.
        const ir::Comparison one_by_one =
            ir::compare(ordinary[o], *reference[o], ir::error_limit(ordinary[o].dtype(), -1));
        const bool known = one_by_one.reason.empty();
        const ir::Comparison fused = ir::compare(
            results[o], *reference[o], ir::error_limit(results[o].dtype(), known ? one_by_one.error : -1));
        const bool only_classes = fused.compared == 0 && fused.worst_index < 0;  // no element is finite
        EXPECT_TRUE(one_by_one.ok || only_classes) << "original: " << one_by_one.reason;
        EXPECT_TRUE(fused.ok || only_classes) << "optimised: " << fused.reason;
      }
    }
  }
}

// The two large training steps have some fifty kernels, which PoCL builds for minutes; the small one stays.
std::vector<fs::path> quick_case_folders() {
  std::vector<fs::path> folders = all_case_folders();
  std::erase_if(folders, [](const fs::path& folder) {
    return folder.filename() == "train_cnn" || folder.filename() == "train_transformer";
  });
  return folders;
}

INSTANTIATE_TEST_SUITE_P(Recorded, CasesOnOpenCl, ::testing::ValuesIn(quick_case_folders()), case_name);

}  // namespace
}  // namespace thrice::testing
