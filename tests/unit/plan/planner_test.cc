// Would catch: a plan that loses or repeats a node, reads a value before it is made, fuses across operators
// where it must not, or waits for the host where it need not.
#include "plan/planner.h"

#include <gtest/gtest.h>
#include <thrice/status.h>

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "plan/grouping.h"
#include "planned_graph.h"

namespace thrice::plan {
namespace {

using artifact::StepKind;
using ir::GraphMaker;
using ir::Op;
using test::planned;

std::vector<artifact::PlanStep> steps_of(const artifact::Plan& plan) {
  std::vector<artifact::PlanStep> steps;
  for (const auto& segment : plan.segments)
    steps.insert(steps.end(), segment.steps.begin(), segment.steps.end());
  return steps;
}

TEST(Planner, ElementwiseChainsFuseAndTheOriginalKeepsOperatorsApart) {
  GraphMaker m;
  const auto x = m.input({ir::Dim::symbol("n"), 8}), y = m.input({ir::Dim::symbol("n"), 8});
  m.output(m.add(Op::relu, {m.add(Op::add, {m.add(Op::exp, {x}), y})}));
  const auto graph = test::with_origins(m);
  const PlanResult fused = planned(*graph), apart = planned(*graph, "original");
  ASSERT_EQ(steps_of(fused.plan).size(), 1u);
  EXPECT_EQ(steps_of(fused.plan)[0].nodes, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(steps_of(apart.plan).size(), 3u);
  EXPECT_EQ(fused.plan.segments.size(), 1u);
}

TEST(Planner, NodesOfOneOperatorStayTogetherInTheOriginal) {
  GraphMaker m;
  const auto x = m.input({4, 8});
  m.output(m.add(Op::mul, {x, m.add(Op::sigmoid, {x})}));
  auto graph = test::with_origins(m);
  graph->nodes[1].origin = graph->nodes[0].origin;
  EXPECT_EQ(steps_of(planned(*graph, "original").plan).size(), 1u);
}

// A card of its own keeps attention in one kernel, with the views before it and behind it; elsewhere, and in
// the original plan, its operators stay apart.
TEST(Planner, AttentionIsOneRegionOnACard) {
  GraphMaker m;
  const auto q = m.input({2, 8, 16}), k = m.input({2, 8, 16}), v = m.input({2, 8, 16});
  const auto kt = m.add(Op::transpose, {k}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  const auto s = m.add(Op::matmul, {m.add(Op::exp, {q}), kt});
  const auto reduce = [&](const char* kind, ir::ValueId x) {
    return m.add(Op::reduce, {x}, {{"kind", std::string(kind)}, {"axes", std::vector<int64_t>{2}}});
  };
  const auto e = m.add(Op::exp, {m.add(Op::sub, {s, reduce("max", s)})});
  const auto y = m.add(Op::matmul, {m.add(Op::div, {e, reduce("sum", e)}), v});
  m.output(m.add(Op::transpose, {y}, {{"perm", std::vector<int64_t>{1, 0, 2}}}));
  const auto graph = test::with_origins(m);
  target::DeviceSpec card;
  card.api = target::Api::kCuda;
  card.architecture = "sm_80";
  card.optin_shared_bytes = 99 * 1024;
  PlanOptions options;
  const PlanResult fused = make_plan(*graph, card, options);
  // The exponential of q would be computed once for every tile of keys: it stays outside.
  ASSERT_EQ(steps_of(fused.plan).size(), 2u);
  EXPECT_EQ(steps_of(fused.plan)[1].schedule.family, "attention");
  EXPECT_EQ(steps_of(fused.plan)[1].nodes.size(), graph->nodes.size() - 1);
  options.planner = "original";
  EXPECT_EQ(steps_of(make_plan(*graph, card, options).plan).size(), graph->nodes.size());
  for (const auto& step : steps_of(planned(*graph).plan)) EXPECT_NE(step.schedule.family, "attention");
}

// A mask of indices belongs to the region, unless somebody else reads it.
TEST(Planner, AttentionTakesAMaskOfIndicesAlong) {
  for (const bool shared : {false, true}) {
    GraphMaker m;
    const auto q = m.input({2, 80, 16}), k = m.input({2, 80, 16}), v = m.input({2, 80, 16});
    const auto kt = m.add(Op::transpose, {k}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
    const auto indices = [&](std::vector<int64_t> shape, int64_t axis) {
      return m.add(Op::iota, {m.ints(std::move(shape))}, {{"axis", axis}});
    };
    const auto seen = m.add(Op::less_equal, {indices({1, 1, 80}, 2), indices({1, 80, 1}, 1)});
    const auto mask = m.add(Op::where, {seen, m.constant(ir::Tensor::scalar(DType::kF32, 0)),
                                        m.constant(ir::Tensor::scalar(DType::kF32, -INFINITY))});
    const auto s = m.add(Op::add, {m.add(Op::matmul, {q, kt}), mask});
    const auto reduce = [&](const char* kind, ir::ValueId x) {
      return m.add(Op::reduce, {x}, {{"kind", std::string(kind)}, {"axes", std::vector<int64_t>{2}}});
    };
    const auto e = m.add(Op::exp, {m.add(Op::sub, {s, reduce("max", s)})});
    m.output(m.add(Op::matmul, {m.add(Op::div, {e, reduce("sum", e)}), v}));
    if (shared) m.output(m.add(Op::neg, {mask}));
    const auto graph = test::with_origins(m);
    target::DeviceSpec card;
    card.api = target::Api::kCuda;
    card.architecture = "sm_80";
    card.optin_shared_bytes = 99 * 1024;
    const auto steps = steps_of(make_plan(*graph, card, PlanOptions()).plan);
    EXPECT_EQ(steps.size() == 1, !shared);
    EXPECT_TRUE(std::any_of(steps.begin(), steps.end(),
                            [](const auto& step) { return step.schedule.family == "attention"; }));
  }
}

// A reshape in between is no reason to write a product to memory and read it again.
TEST(Planner, FusesThroughAViewThatCostsNothing) {
  GraphMaker m;
  const auto x = m.input({2, 8, 16}), w = m.input({16, 4});
  const auto flat = m.add(Op::reshape, {x, m.ints({16, 16})});
  const auto y = m.add(Op::reshape, {m.add(Op::matmul, {flat, w}), m.ints({2, 8, 4})});
  m.output(m.add(Op::relu, {y}));
  const auto graph = test::with_origins(m);
  size_t kernels = 0;
  for (const auto& step : steps_of(planned(*graph).plan)) kernels += step.kind == StepKind::kRegion;
  EXPECT_EQ(kernels, 1u);
}

TEST(Planner, EqualRegionsShareAWorkload) {
  GraphMaker m;
  const auto a = m.input({4, 8}), b = m.input({4, 8});
  m.output(m.add(Op::exp, {a}));
  m.output(m.add(Op::exp, {b}));
  m.output(m.add(Op::log, {b}));
  const PlanResult result = planned(*test::with_origins(m), "original");
  EXPECT_EQ(result.workloads.size(), 2u);
  size_t uses = 0;
  for (const auto& [hash, workload] : result.workloads) uses += workload.uses.size();
  EXPECT_EQ(uses, 3u);
}

TEST(Planner, ViewsLaunchNothing) {
  GraphMaker m;
  const auto x = m.input({4, 8});
  m.output(m.add(Op::reshape, {x, m.ints({32})}));
  const auto steps = steps_of(planned(*test::with_origins(m)).plan);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].kind, StepKind::kAlias);
}

TEST(Planner, DataDependentSizesEndASegment) {
  GraphMaker m;
  const auto x = m.input({8});
  const auto where = m.add(Op::nonzero, {m.add(Op::relu, {x})});
  m.output(m.add(Op::neg, {where}));
  const artifact::Plan plan = planned(*test::with_origins(m)).plan;
  ASSERT_EQ(plan.segments.size(), 3u);
  EXPECT_EQ(plan.segments[1].steps.at(0).kind, StepKind::kHost);
  EXPECT_FALSE(plan.segments[1].steps[0].slow);  // the only way, not a missing kernel
}

TEST(Planner, WhatNoFamilyTakesIsRefusedByNameOrMarkedSlow) {
  GraphMaker m;
  const auto x = m.input({8}, DType::kI4);
  m.output(m.add(Op::add, {x, x}));
  const auto graph = test::with_origins(m);
  try {
    planned(*graph);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kUnsupported);
    for (const char* word : {"add", "opset 17", "node0", "--allow-slow"})
      EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << e.what();
  }
  const PlanResult slow = planned(*graph, "greedy", true);
  EXPECT_TRUE(steps_of(slow.plan).at(0).slow);
  EXPECT_EQ(slow.slow_steps.size(), 1u);
  EXPECT_THROW(planned(*graph, "wise", true), Error);
}

TEST(Planner, AProducerOfAProductIsNotComputedAgainAtEveryRead) {
  GraphMaker m;
  const auto x = m.input({16, 16}), w = m.input({16, 16});
  m.output(m.add(Op::relu, {m.add(Op::matmul, {m.add(Op::exp, {x}), w})}));
  const PlanResult result = planned(*test::with_origins(m));
  ASSERT_EQ(steps_of(result.plan).size(), 2u);  // exp alone; the product with its epilogue
  EXPECT_EQ(steps_of(result.plan)[1].nodes, (std::vector<int32_t>{1, 2}));
  bool told = false;
  for (const auto& [who, why] : result.refusals)
    told = told || why.find("again at every read") != std::string::npos;
  EXPECT_TRUE(told);
}

TEST(Grouping, MergesOnlyWhatStaysAcyclic) {
  // a -> b -> c and a -> c: a and c alone would wait for b, which waits for a.
  GraphMaker m;
  const auto x = m.input({8});
  const auto a = m.add(Op::exp, {x}), b = m.add(Op::log, {a});
  m.output(m.add(Op::add, {a, b}));
  const auto graph = test::with_origins(m);
  Grouping groups(*graph, analysis::place(*graph, [](const ir::Node&) { return true; }));
  const int ga = groups.group_of(0), gb = groups.group_of(1), gc = groups.group_of(2);
  EXPECT_FALSE(groups.can_merge(gc, ga));
  EXPECT_TRUE(groups.can_merge(gc, gb));
  groups.merge(gc, gb);
  EXPECT_TRUE(groups.can_merge(gc, ga));
  EXPECT_EQ(groups.merged(gc, ga), (std::vector<ir::NodeId>{0, 1, 2}));
  EXPECT_EQ(groups.producers(gc), std::vector<int>{ga});
}

// Random graphs: every executed node in exactly one step, and nothing read before it is made.
TEST(Planner, EveryPlanIsAnOrderedPartition) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    GraphMaker m;
    std::vector<ir::ValueId> values = {m.input({8, 8}), m.input({8, 8})};
    const auto any = [&] { return values[rng.below(values.size())]; };
    for (int n = 0; n < 14; ++n) switch (rng.below(5)) {
        case 0:
          values.push_back(m.add(Op::exp, {any()}));
          break;
        case 1:
          values.push_back(m.add(Op::add, {any(), any()}));
          break;
        case 2:
          values.push_back(m.add(Op::matmul, {any(), any()}));
          break;
        case 3:
          values.push_back(m.add(Op::transpose, {any()}, {{"perm", ir::ints_of({1, 0})}}));
          break;
        default:
          values.push_back(m.add(Op::mul, {any(), any()}));
      }
    m.output(values.back());
    m.output(values[values.size() / 2]);
    const auto graph = test::with_origins(m);
    for (const char* planner : {"greedy", "dp", "original"}) {
      std::vector<int> times(graph->nodes.size(), 0);
      std::vector<uint8_t> made(graph->values.size(), 0);
      for (const ir::ValueId v : graph->inputs) made[static_cast<size_t>(v)] = 1;
      for (const artifact::PlanStep& step : steps_of(planned(*graph, planner).plan)) {
        EXPECT_TRUE(std::is_sorted(step.nodes.begin(), step.nodes.end()));
        for (const int32_t n : step.nodes) {
          ++times[static_cast<size_t>(n)];
          for (const ir::ValueId v : graph->nodes[static_cast<size_t>(n)].inputs)
            EXPECT_TRUE(made[static_cast<size_t>(v)]) << planner << " seed " << seed << " node " << n;
          for (const ir::ValueId v : graph->nodes[static_cast<size_t>(n)].outputs)
            made[static_cast<size_t>(v)] = 1;
        }
      }
      for (const ir::ValueId v : graph->outputs) EXPECT_TRUE(made[static_cast<size_t>(v)]) << planner << seed;
      for (const int count : times) EXPECT_LE(count, 1) << planner << " seed " << seed;
    }
  }
}

}  // namespace
}  // namespace thrice::plan
