// One step of a decoder as exporters write it: the cache comes in, one token's keys and values join it, all
// queries read what results. Catches a cache that is copied for each head, and a step planned operator by
// operator.
#include <gtest/gtest.h>

#include "family/attention/attention.h"
#include "frontend/import.h"
#include "null/networks/memory.h"
#include "plan/planner.h"
#include "transform/transform.h"
#include "unit/frontend/model_writer.h"

namespace thrice {
namespace {

using namespace tests;

// 8 heads of queries; `stored` heads in the cache.
ir::Graph decoder_step(int64_t stored) {
  const std::string heads = std::to_string(stored);
  std::vector<std::string> nodes, numbers{floats("scale", {}, {0.125F})};
  for (const std::string which : {"key", "value"}) {
    const std::string present = "present_" + which;
    nodes.push_back(
        node("Concat", {"past_" + which, "new_" + which}, {present}, int_attr("axis", 2), "", which));
    if (stored == 8) {
      nodes.push_back(node("Identity", {present}, {which + "_heads"}, "", "", which + "_same"));
      continue;
    }
    nodes.push_back(node("Unsqueeze", {present, "two"}, {which + "_apart"}, "", "", which + "_apart"));
    nodes.push_back(node("Expand", {which + "_apart", "repeats"}, {which + "_all"}, "", "", which + "_all"));
    nodes.push_back(
        node("Reshape", {which + "_all", "joined"}, {which + "_heads"}, "", "", which + "_joined"));
  }
  numbers.push_back(int64s("two", {1}, {2}));
  numbers.push_back(int64s("repeats", {5}, {1, 1, 8 / stored, 1, 1}));
  numbers.push_back(int64s("joined", {4}, {1, 8, -1, 64}));
  nodes.push_back(node("Transpose", {"key_heads"}, {"kt"}, ints_attr("perm", {0, 1, 3, 2}), "", "turn"));
  nodes.push_back(node("MatMul", {"query", "kt"}, {"scores"}, "", "", "scores"));
  nodes.push_back(node("Mul", {"scores", "scale"}, {"scaled"}, "", "", "scaled"));
  nodes.push_back(node("Add", {"scaled", "mask"}, {"masked"}, "", "", "masked"));
  nodes.push_back(node("Softmax", {"masked"}, {"weights"}, int_attr("axis", -1), "", "softmax"));
  nodes.push_back(node("MatMul", {"weights", "value_heads"}, {"y"}, "", "", "values"));
  std::vector<std::string> inputs{value("query", 1, {"1", "8", "1", "64"}),
                                  value("mask", 1, {"1", "1", "1", "past + 1"})},
      outputs{value("y", 1, {"1", "8", "1", "64"})};
  for (const std::string which : {"key", "value"}) {
    inputs.push_back(value("past_" + which, 1, {"1", heads, "past", "64"}));
    inputs.push_back(value("new_" + which, 1, {"1", heads, "1", "64"}));
    outputs.push_back(value("present_" + which, 1, {"1", heads, "past + 1", "64"}));
  }
  const std::string file = model({nodes, numbers, inputs, outputs});
  ir::Graph graph = frontend::import_model_bytes(std::as_bytes(std::span(file)), "");
  transform::run_transforms(graph);
  return graph;
}

TEST(DecoderStep, IsOneRegionThatSplitsTheKeys) {
  for (const int64_t stored : {8, 2}) {
    const ir::Graph graph = decoder_step(stored);
    plan::PlanOptions options;
    options.bindings = {{"past", 4095}};
    for (const char* planner : {"greedy", "dp"}) {
      options.planner = planner;
      const plan::PlanResult planned = plan::make_plan(graph, test::hopper(), options);
      int attentions = 0, others = 0;
      for (const auto& segment : planned.plan.segments)
        for (const auto& step : segment.steps) {
          if (step.kind != artifact::StepKind::kRegion) continue;
          if (step.schedule.family != "attention") {
            ++others;
            continue;
          }
          ++attentions;
          EXPECT_EQ(step.schedule.tactic, "split");
          EXPECT_EQ(step.schedule.get("vector"), 4);
          EXPECT_EQ(step.schedule.get("rows"), 8 / stored);  // the cache is read once for them
        }
      EXPECT_EQ(attentions, 1) << planner;
      EXPECT_EQ(others, 2) << planner;  // the two caches grow
    }
  }
}

}  // namespace
}  // namespace thrice
