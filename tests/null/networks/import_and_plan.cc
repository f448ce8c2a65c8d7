// Every exported network (tests/data/README.md) through import, transforms and all planners. Catches an
// operator or shape that real exporters write and we no longer take, a plan that leaves a value unmade, a
// default schedule that is illegal or prints no kernel, fusion that was lost (the counts of regions
// below), temporaries that overlap while both live, packed weights held beside the weights (memory.h).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <set>

#include "backend/backend.h"
#include "codegen/generate.h"
#include "frontend/import.h"
#include "ir/check.h"
#include "ir/region_name.h"
#include "null/networks/counts.h"
#include "null/networks/memory.h"
#include "plan/planner.h"
#include "transform/transform.h"

namespace thrice {
namespace {

namespace fs = std::filesystem;
using artifact::StepKind;

using test::Counts;

std::vector<fs::path> networks() {
  std::vector<fs::path> files;
  for (const char* archive : {"networks", "zoo"})
    for (const auto& entry : fs::directory_iterator(fs::path(THRICE_DATA_DIR) / archive)) {
      if (entry.path().extension() == ".onnx") files.push_back(entry.path());
      if (fs::exists(entry.path() / "model.onnx")) files.push_back(entry.path() / "model.onnx");
    }
  std::sort(files.begin(), files.end());
  return files;
}

std::string name_of(const fs::path& file) {
  return file.stem() == "model" ? file.parent_path().filename().string() : file.stem().string();
}

ir::Bindings extents(const ir::Graph& graph) {
  ir::Bindings bindings;
  for (const ir::ValueId input : graph.inputs)
    for (const ir::Dim& dim : graph.value(input).type.shape)
      for (const std::string& symbol : dim.symbols())
        bindings[symbol] = 48;  // enough for each network's windows
  return bindings;
}

// Everything a step reads was made by an earlier step or needs none; no node runs twice; outputs are made.
void expect_sound(const ir::Graph& graph, const artifact::Plan& plan) {
  std::vector<uint8_t> made(graph.values.size(), 0);
  for (const ir::ValueId input : graph.inputs) made[static_cast<size_t>(input)] = 1;
  for (size_t v = 0; v < graph.values.size(); ++v)
    if (graph.values[v].constant || graph.values[v].known) made[v] = 1;
  std::set<int32_t> ran;
  for (const artifact::Segment& segment : plan.segments)
    for (const artifact::PlanStep& step : segment.steps) {
      ASSERT_FALSE(step.nodes.empty());
      for (const int32_t n : step.nodes) {
        const ir::Node& node = graph.nodes.at(static_cast<size_t>(n));
        EXPECT_TRUE(ran.insert(n).second) << "node " << n << " runs twice";
        for (const ir::ValueId v : node.inputs)
          EXPECT_TRUE(v == ir::kNoValue || made[static_cast<size_t>(v)])
              << ir::op_name(node.op) << " reads value " << v << " before it is made";
        for (const ir::ValueId v : node.outputs)
          if (v != ir::kNoValue) made[static_cast<size_t>(v)] = 1;
      }
      EXPECT_FALSE(step.slow);
      if (step.kind != StepKind::kRegion) continue;
      const ir::Workload workload = ir::extract(graph, ir::make_region(graph, step.nodes));
      EXPECT_EQ(workload.hash, step.workload) << ir::region_name(graph, step.nodes);
    }
  for (const ir::ValueId output : graph.outputs) EXPECT_TRUE(made[static_cast<size_t>(output)]);
  EXPECT_EQ(artifact::Plan::from_json(plan.to_json()).digest(), plan.digest());
}

void expect_kernels(const plan::PlannedWorkload& planned, const target::DeviceSpec& device) {
  SCOPED_TRACE(planned.uses.at(0) + ", " + planned.schedule.str());
  ASSERT_NE(planned.family, nullptr);
  EXPECT_EQ(planned.family->illegal(planned.workload, planned.schedule, device).value_or(""), "");
  EXPECT_FALSE(planned.family->emit(planned.workload, planned.schedule, device).kernels.empty());
  for (const artifact::Launch& launch :
       planned.family->launch(planned.workload, planned.schedule, planned.facts).launches)
    for (const auto extent : launch.block) EXPECT_GT(extent, 0);
}

Counts count(const artifact::Plan& plan) {
  Counts counts;
  for (const artifact::Segment& segment : plan.segments)
    for (const artifact::PlanStep& step : segment.steps) {
      counts.regions += step.kind == StepKind::kRegion;
      counts.host += step.kind == StepKind::kHost || step.kind == StepKind::kControl;
    }
  return counts;
}

class Networks : public ::testing::TestWithParam<fs::path> {};

TEST_P(Networks, ImportsAndPlans) {
  frontend::ImportOptions import;
  import.random_weights = true;
  ir::Graph graph = frontend::import_model(GetParam(), import);
  ir::verify(graph);
  transform::run_transforms(graph);
  ir::verify(graph);

  const backend::DevicePtr device = backend::open_device("null:0");
  plan::PlanOptions options;
  options.bindings = extents(graph);
  options.planner = "original";
  const plan::PlanResult original = plan::make_plan(graph, device->spec(), options);
  expect_sound(graph, original.plan);
  options.planner = "greedy";
  const plan::PlanResult greedy = plan::make_plan(graph, device->spec(), options);
  expect_sound(graph, greedy.plan);
  for (const auto& [hash, planned] : greedy.workloads) expect_kernels(planned, device->spec());
  test::expect_sound_memory(graph, greedy.plan, options.bindings);
  const plan::PlanResult packing = plan::make_plan(graph, test::hopper(), options);
  test::expect_sound_memory(graph, packing.plan, options.bindings);

  for (const target::DeviceSpec& spec : {device->spec(), test::hopper()}) {
    options.planner = "dp";
    const std::clock_t begin = std::clock();
    const plan::PlanResult dp = plan::make_plan(graph, spec, options);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    options.planner = "greedy";
    expect_sound(graph, dp.plan);
    if (spec.api == target::Api::kNull)
      for (const auto& [hash, planned] : dp.workloads) expect_kernels(planned, spec);
    test::expect_sound_memory(graph, dp.plan, options.bindings);
    EXPECT_LE(dp.fusion.us, dp.fusion.greedy_us * (1 + 1e-9));
    fmt::print(
        "{} {}: greedy {} regions, {:.1f} us; dp {} regions, {:.1f} us; {} of {} parts exact, {} candidates, "
        "{} "
        "states, {} looks, {:.2f} s\n",
        name_of(GetParam()), spec.architecture,
        count(spec.api == target::Api::kNull ? greedy.plan : packing.plan).regions, dp.fusion.greedy_us,
        count(dp.plan).regions, dp.fusion.us, dp.fusion.exact_pieces, dp.fusion.pieces, dp.fusion.candidates,
        dp.fusion.states, dp.fusion.looks, seconds);
  }

  const Counts now = count(greedy.plan), before = count(original.plan);
  EXPECT_LE(now.regions, before.regions);
  EXPECT_LE(now.host, before.host);
  const std::string line = fmt::format("{{\"{}\", {{{}, {}}}}},", name_of(GetParam()), now.regions, now.host);
  const auto known = test::kKnownCounts.find(name_of(GetParam()));
  ASSERT_NE(known, test::kKnownCounts.end()) << "not in counts.h: " << line;
  EXPECT_LE(now.regions, known->second.regions) << "fusion was lost: " << line;
  EXPECT_LE(now.host, known->second.host) << "more stops for the host: " << line;
}

INSTANTIATE_TEST_SUITE_P(Exported, Networks, ::testing::ValuesIn(networks()),
                         [](const auto& info) { return name_of(info.param); });

TEST(NetworkFiles, AreThere) { EXPECT_GE(networks().size(), 51u); }

}  // namespace
}  // namespace thrice
