// Catches: a budget that is not kept although slower schedules would keep it, schedules given up without
// need, a region slowed down where another would have cost less, an impossible budget that ends in anything
// but a sentence with the least there is.
#include "flow/memory_budget.h"

#include <gtest/gtest.h>
#include <thrice/status.h>

#include "planned_graph.h"

namespace thrice::flow {
namespace {

using ir::Dim;
using ir::GraphMaker;
using ir::Op;

target::DeviceSpec hopper() {
  target::DeviceSpec card;
  card.api = target::Api::kCuda;
  card.architecture = "sm_90a";
  card.compute_units = 132;
  card.optin_shared_bytes = 227 << 10;
  card.max_alloc_bytes = card.memory_bytes = int64_t{1} << 37;
  return card;
}

struct Planned {
  std::shared_ptr<const ir::Graph> graph;
  plan::PlanResult result;
};
// Two products, the first larger.
Planned planned() {
  GraphMaker m;
  const auto x = m.input({1024, 1024});
  const auto y = m.add(Op::matmul, {x, m.constant(ir::Tensor(DType::kF32, {1024, 2048}))});
  m.output(m.add(Op::matmul, {y, m.constant(ir::Tensor(DType::kF32, {2048, 512}))}));
  Planned p;
  p.graph = test::with_origins(m);
  p.result = plan::make_plan(*p.graph, hopper(), {});
  return p;
}

TEST(MemoryBudget, ChangesNothingWithoutNeed) {
  Planned p = planned();
  const int64_t total = total_memory(p.graph, p.result.plan, {});
  const std::string before = p.result.plan.digest();
  std::vector<std::string> notes;
  const auto frugal = frugal_schedules(p.result.workloads, hopper());
  EXPECT_EQ(frugal.size(), 2u);
  EXPECT_TRUE(fit_memory(p.graph, p.result.plan, p.result.workloads, frugal, {}, total, notes).empty());
  EXPECT_EQ(p.result.plan.digest(), before);
  EXPECT_TRUE(notes.empty());
}

TEST(MemoryBudget, TakesSchedulesThatNeedLess) {
  Planned p = planned();
  const int64_t total = total_memory(p.graph, p.result.plan, {});
  std::vector<std::string> notes;
  const auto changed = fit_memory(p.graph, p.result.plan, p.result.workloads,
                                  frugal_schedules(p.result.workloads, hopper()), {}, total - 1, notes);
  ASSERT_FALSE(changed.empty());
  EXPECT_EQ(notes.size(), changed.size());
  EXPECT_LE(total_memory(p.graph, p.result.plan, {}), total - 1);
  for (const auto& [hash, schedule] : changed) EXPECT_EQ(schedule.tactic, "mma");
}

// The region with the most to give up would lose most.
TEST(MemoryBudget, GivesUpWhatCostsLeastTime) {
  Planned p = planned();
  const auto frugal = frugal_schedules(p.result.workloads, hopper());
  const int64_t total = total_memory(p.graph, p.result.plan, {});
  for (const bool first_is_dear : {true, false}) {
    ScheduleTimes times;
    std::string dear, cheap;
    for (const auto& [hash, planned] : p.result.workloads) {
      const bool is_first =
          planned.workload.graph.value(planned.workload.graph.outputs[0]).type.shape[1] == ir::Dim(2048);
      (is_first == first_is_dear ? dear : cheap) = hash;
      times[hash][planned.schedule.str()] = 10;
      times[hash][frugal.at(hash)[0].str()] = is_first == first_is_dear ? 100 : 11;
    }
    artifact::Plan plan = p.result.plan;
    std::vector<std::string> notes;
    const auto changed = fit_memory(p.graph, plan, p.result.workloads, frugal, {}, total - 1, notes, times);
    EXPECT_LE(total_memory(p.graph, plan, {}), total - 1);
    EXPECT_EQ(changed.size(), 1u);
    EXPECT_TRUE(changed.count(cheap)) << (first_is_dear ? "the first is dear" : "the second is dear");
  }
}

// Bytes of the front are what binding says at each of its points, and the plan itself is one of them.
TEST(MemoryBudget, TheFrontTellsTheBytesOfItsPoints) {
  Planned p = planned();
  const auto frugal = frugal_schedules(p.result.workloads, hopper());
  ScheduleTimes times;
  for (const auto& [hash, planned] : p.result.workloads) {
    times[hash][planned.schedule.str()] = 10;
    times[hash][frugal.at(hash)[0].str()] = 20;
  }
  const auto memory = exec::predict_memory(
      *exec::resolve_plan(p.graph, std::make_shared<artifact::Plan>(p.result.plan)), ir::Bindings{});
  const MemoryModel model = model_memory(p.result.plan, memory, p.result.workloads, frugal, times);
  const analysis::MemoryFront front = front_of(model);
  ASSERT_GE(front.points.size(), 2u);
  EXPECT_EQ(front.points.back().bytes, memory.use.total());
  EXPECT_DOUBLE_EQ(front.points.back().time, 20);
  for (const analysis::FrontPoint& point : front.points) {
    artifact::Plan plan = p.result.plan;
    for (artifact::PlanStep& step : plan.segments[0].steps)
      for (size_t r = 0; r < model.regions.size(); ++r)
        if (step.workload == model.regions[r]) step.schedule = model.schedules[r][point.choices[r]];
    const int64_t told = point.bytes, is = total_memory(p.graph, plan, {});
    EXPECT_LE(is, told);  // lives within a step are told too long, if anything
    EXPECT_GE(static_cast<double>(is), 0.9 * static_cast<double>(told));
  }
  const auto points = describe(model, front, p.result.workloads);
  EXPECT_EQ(points.size(), front.points.size());
  EXPECT_EQ(points.back().change, "");
  EXPECT_NE(points.front().change.find("mma"), std::string::npos);
}

TEST(MemoryBudget, SaysWhatTheLeastIs) {
  Planned p = planned();
  std::vector<std::string> notes;
  try {
    fit_memory(p.graph, p.result.plan, p.result.workloads, frugal_schedules(p.result.workloads, hopper()), {},
               1000, notes);
    FAIL() << "fitted into 1000 bytes";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kOutOfMemory);
    // What was tried last is what is named.
    const std::string least = std::to_string(total_memory(p.graph, p.result.plan, {}));
    EXPECT_NE(std::string(error.what()).find("takes " + least + " bytes at least"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace thrice::flow
