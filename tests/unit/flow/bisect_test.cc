// Would catch: a bisection that blames the wrong region, or finds nothing where an output is wrong.
#include "flow/bisect.h"

#include <gtest/gtest.h>
#include <thrice/status.h>

#include "codegen/generate.h"
#include "flow/build.h"
#include "planned_graph.h"

namespace thrice::flow {
namespace {

using ir::GraphMaker;
using ir::Op;

// x -> exp -> sqrt -> sigmoid -> tanh, one region each.
std::shared_ptr<ir::Graph> chain(Op third = Op::sigmoid) {
  GraphMaker m;
  const auto x = m.input({ir::Dim::symbol("n"), 8});
  m.output(m.add(Op::tanh, {m.add(third, {m.add(Op::sqrt, {m.add(Op::exp, {x})})})}));
  return test::with_origins(m);
}

class Bisect : public testing::Test {
 protected:
  void SetUp() override {
    try {
      device = backend::open_device("opencl:0");
    } catch (const Error& e) {
      GTEST_SKIP() << "skipped: no OpenCL device: " << e.what();
    }
    cache = std::make_shared<jit::KernelCache>(device, "");
  }
  // The chain's plan; the third region runs the program of another operator where `is_wrong`.
  std::unique_ptr<exec::Executor> executor(bool is_wrong) {
    const auto graph = chain();
    const auto plan = std::make_shared<artifact::Plan>(test::planned(*graph, "original").plan);
    const auto other = chain(Op::neg);
    const ir::Workload wrong = ir::extract(*other, ir::make_region(*other, {2}));
    const std::string right = plan->segments.at(0).steps.at(2).workload;
    const exec::ProgramSource built = program_source(device, cache, nullptr);
    return std::make_unique<exec::Executor>(exec::make_executable(
        device, graph, plan,
        [=](const ir::Workload& workload, const family::Family& family, const artifact::Schedule& schedule) {
          return built(is_wrong && workload.hash == right ? wrong : workload, family, schedule);
        }));
  }
  const std::vector<ir::Tensor> inputs = {
      ir::Tensor::of<double>(DType::kF32, {1, 8}, {0, 0.1, 0.2, 0.3, -0.5, 1, 1.5, -2})};
  backend::DevicePtr device;
  std::shared_ptr<jit::KernelCache> cache;
};

TEST_F(Bisect, EveryRegionOfARightPlanIsRight) {
  const auto run = executor(false);
  const RunCheck check = check_run(*run, inputs, true);
  EXPECT_TRUE(check.ok);
  ASSERT_EQ(check.steps.size(), 4u);
  for (const StepCheck& step : check.steps) EXPECT_TRUE(step.ok) << step.name << ": " << step.reason;
  EXPECT_TRUE(check_run(*run, inputs, false).steps.empty());
}

TEST_F(Bisect, TheFirstWrongRegionIsNamedAndTheLastOneLookedAt) {
  const auto run = executor(true);
  const RunCheck check = check_run(*run, inputs, true);
  EXPECT_FALSE(check.ok);
  EXPECT_FALSE(check.outputs.at(0).ok);
  ASSERT_EQ(check.steps.size(), 3u);  // what follows is wrong because of it
  EXPECT_TRUE(check.steps[1].ok);
  EXPECT_FALSE(check.steps[2].ok);
  EXPECT_EQ(check.steps[2].step, 2u);
  EXPECT_EQ(check.steps[2].name, "sigmoid");
  EXPECT_FALSE(check.steps[2].reason.empty());
  EXPECT_FALSE(check_run(*run, inputs, false).ok);
}

}  // namespace
}  // namespace thrice::flow
