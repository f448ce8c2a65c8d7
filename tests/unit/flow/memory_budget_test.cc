// Catches: a budget that is not kept although slower schedules would keep it, schedules given up without
// need, an impossible budget that ends in anything but a sentence with the least there is.
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
