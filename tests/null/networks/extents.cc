// A model whose mask is one longer than the past that another input holds, as exporters write it. Catches a
// run that takes a mask of any length: kernels would read beyond it.
#include <gtest/gtest.h>
#include <thrice/status.h>

#include "exec/executor.h"
#include "flow/build.h"
#include "frontend/import.h"
#include "plan/planner.h"
#include "unit/frontend/model_writer.h"

namespace thrice {
namespace {

using namespace tests;

TEST(DependentExtents, AreCheckedWhenAllInputsAreKnown) {
  // The mask comes first, so nothing is bound yet when it is set.
  const std::string file = model(
      {{node("Concat", {"past", "new"}, {"all"}, {int_attr("axis", 0)}), node("Add", {"all", "mask"}, {"y"})},
       {},
       {value("mask", 1, {"past + 1"}), value("past", 1, {"past"}), value("new", 1, {"1"})},
       {value("y", 1, {"past + 1"})}});
  const auto graph =
      std::make_shared<ir::Graph>(frontend::import_model_bytes(std::as_bytes(std::span(file)), ""));
  EXPECT_EQ(ir::shape_str(graph->value(graph->outputs[0]).type.shape), "[past + 1]");
  const backend::DevicePtr device = backend::open_device("null:0");
  const auto cache = std::make_shared<jit::KernelCache>(device, "");
  plan::PlanOptions options;
  options.bindings = {{"past", 7}};
  const auto plan = std::make_shared<artifact::Plan>(plan::make_plan(*graph, device->spec(), options).plan);
  exec::Executor executor(
      exec::make_executable(device, graph, plan, flow::program_source(device, cache, nullptr)));
  const auto run = [&](int64_t mask, int64_t past) {
    return executor.run_host(
        {ir::Tensor(DType::kF32, {mask}), ir::Tensor(DType::kF32, {past}), ir::Tensor(DType::kF32, {1})});
  };
  EXPECT_EQ(run(8, 7).at(0).shape(), std::vector<int64_t>{8});
  EXPECT_EQ(run(3, 2).at(0).shape(), std::vector<int64_t>{3});
  for (const int64_t mask : {0, 1, 6, 7, 9}) {
    try {
      run(mask, 7);
      ADD_FAILURE() << "a mask of " << mask;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kInvalidArgument);
      EXPECT_NE(std::string(error.what()).find("mask"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace thrice
