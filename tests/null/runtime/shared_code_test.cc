// Catches: sessions of one release that hold its weights twice, and sessions of different releases that share
// them; what is shared outliving its last user.
#include "runtime/shared_code.h"

#include <gtest/gtest.h>
#include <thrice/status.h>

#include "flow/build.h"
#include "measure_fixture.h"
#include "plan/planner.h"
#include "runtime/deployment.h"
#include "unit/ir/graph_maker.h"

namespace thrice::runtime {
namespace {

// y = x + w.
ReleasePtr make(const backend::DevicePtr& device, double w) {
  ir::GraphMaker m;
  ir::Tensor weight(DType::kF32, {64});
  for (int64_t i = 0; i < 64; ++i) weight.set(i, w);
  m.output(m.add(ir::Op::add, {m.input({ir::Dim::symbol("n"), 64}), m.constant(std::move(weight))}));
  m.infer();
  auto graph = std::make_shared<ir::Graph>(std::move(m.graph));
  graph->origins.push_back({"Add", "add", 17});
  for (ir::Node& node : graph->nodes) node.origin = 0;
  const auto plan = std::make_shared<artifact::Plan>(plan::make_plan(*graph, device->spec(), {}).plan);
  std::vector<flow::BuiltProgram> built;
  exec::make_executable(device, graph, plan,
                        flow::program_source(device, std::make_shared<jit::KernelCache>(device, ""), &built));
  return std::make_shared<release::Release>(flow::make_release({}, *device, graph, plan, built, {}));
}

TEST(SharedCode, OneReleaseOnOneDeviceIsLoadedOnce) {
  const backend::DevicePtr device = shared_device("null:0");
  EXPECT_EQ(shared_device("null:0"), device);
  const Builder build = driver_builder(device);
  // Read twice from a file they would be two objects with the same content.
  const ReleasePtr a = make(device, 1), again = make(device, 1), other = make(device, 2);
  const auto code = shared_code(device, a, build);
  EXPECT_EQ(shared_code(device, again, build), code);
  EXPECT_NE(shared_code(device, other, build), code);  // the same plan, other weights
  const std::weak_ptr<const exec::Executable> left = code;
  {
    Deployment first(device, a, build), second(device, again, build);
    EXPECT_EQ(left.use_count(), 3);  // ours, and one each
    second.swap(other);
    EXPECT_EQ(left.use_count(), 2);
  }
  EXPECT_EQ(left.use_count(), 1);
}

TEST(SharedCode, GoesWithItsLastUser) {
  const backend::DevicePtr device = shared_device("null:0");
  const ReleasePtr a = make(device, 3);
  const std::weak_ptr<const exec::Executable> left = shared_code(device, a, driver_builder(device));
  EXPECT_TRUE(left.expired());
  EXPECT_TRUE(shared_code(device, a, driver_builder(device)));
}

TEST(SharedCode, WhatMustNotBuildDoesNotTakeWhatWasBuilt) {
  const backend::DevicePtr device = shared_device("null:0");
  auto text_only = std::make_shared<release::Release>(*make(device, 4));
  text_only->binaries.clear();
  const Builder build = driver_builder(device);
  if (!build) GTEST_SKIP() << "the null device has no compiler";
  try {
    const auto code = shared_code(device, text_only, build);
    EXPECT_THROW(shared_code(device, text_only, {}), Error);
  } catch (const Error&) {
    GTEST_SKIP() << "the null device builds no text of a release";
  }
}

}  // namespace
}  // namespace thrice::runtime
