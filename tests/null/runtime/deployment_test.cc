// Catches: a race between runs and swaps (run it with the thread sanitizer), a swap that takes a release of
// another form or lets go of the old one on failure, an executor that is lost when a run fails.
#include "runtime/deployment.h"

#include <gtest/gtest.h>
#include <thrice/status.h>

#include <atomic>
#include <thread>

#include "flow/build.h"
#include "measure_fixture.h"
#include "plan/planner.h"

namespace thrice::runtime {
namespace {

// y = relu(x), x [n], on the null device; `input` is the name in the manifest.
ReleasePtr make(const backend::DevicePtr& device, const std::string& input) {
  auto graph = std::make_shared<ir::Graph>(test::unary_workload(ir::Op::relu).graph);
  graph->input_names = {input};
  graph->output_names = {"y"};
  const auto plan = std::make_shared<artifact::Plan>(plan::make_plan(*graph, device->spec(), {}).plan);
  std::vector<flow::BuiltProgram> built;
  exec::make_executable(device, graph, plan,
                        flow::program_source(device, std::make_shared<jit::KernelCache>(device, ""), &built));
  return std::make_shared<release::Release>(flow::make_release({}, *device, graph, plan, built, {}));
}

std::vector<exec::Operand> input(int64_t n) {
  return {exec::Operand::from_host(ir::Tensor(DType::kF32, {n}))};
}

TEST(Deployment, RunsOfManyThreadsGoOnWhileReleasesAreSwapped) {
  const auto device = backend::open_device("null:0");
  const ReleasePtr a = make(device, "x"), b = make(device, "x");
  Deployment deployment(device, a, driver_builder(device));
  std::atomic<bool> stop{false};
  std::atomic<int> runs{0};
  std::vector<std::thread> threads;
  int streams[2];
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int64_t n = 1; !stop || n < 20; ++n) {
        if (t < 2)
          EXPECT_EQ(deployment.run(input(n % 50)).at(0).shape(), std::vector<int64_t>{n % 50});
        else
          EXPECT_EQ(deployment.run_on(&streams[t - 2], input(n % 50)).at(0).bytes(), 4u * (n % 50));
        ++runs;
      }
    });
  for (int i = 0; i < 20; ++i) {
    deployment.swap(i % 2 ? a : b);
    deployment.forget_stream(&streams[0]);
    deployment.synchronize(&streams[1]);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(deployment.release(), a);
  EXPECT_GE(runs.load(), 4 * 19);
}

TEST(Deployment, ASwapThatDoesNotFitChangesNothing) {
  const auto device = backend::open_device("null:0");
  const ReleasePtr a = make(device, "x");
  Deployment deployment(device, a, driver_builder(device));
  try {
    deployment.swap(make(device, "other"));
    FAIL() << "a release with another input was taken";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInvalidArgument);
    EXPECT_NE(std::string(e.what()).find("'other'"), std::string::npos) << e.what();
  }
  auto broken = std::make_shared<release::Release>(*a);
  broken->manifest.programs.clear();
  EXPECT_THROW(deployment.swap(broken), Error);
  EXPECT_EQ(deployment.release(), a);
  EXPECT_THROW(deployment.run({}), Error);
  EXPECT_EQ(deployment.run(input(3)).size(), 1u);
}

TEST(Programs, WithoutABinaryOrABuilderTheArchitecturesInsideAreNamed) {
  const auto device = backend::open_device("null:0");
  auto release = std::make_shared<release::Release>(*make(device, "x"));
  for (artifact::KernelBinary& binary : release->binaries) binary.architecture = "sm_0";
  try {
    Deployment(device, release, {});
    FAIL() << "loaded";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kUnsupported);
    EXPECT_NE(std::string(e.what()).find("sm_0"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace thrice::runtime
