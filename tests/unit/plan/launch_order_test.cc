// Catches: an order in which a step runs before what it reads, steps that are lost, an order that takes more
// memory than the one it replaces, and branches whose results pile up although they need not.
#include "plan/launch_order.h"

#include <gtest/gtest.h>

#include <set>

#include "base/rng.h"
#include "exec/predict.h"
#include "planned_graph.h"

namespace thrice::plan {
namespace {

using ir::Dim;
using ir::GraphMaker;
using ir::Op;

exec::MemoryUse memory(const std::shared_ptr<const ir::Graph>& graph, const artifact::Plan& plan) {
  // resolve_plan refuses steps that read what is not made yet, and nodes that run twice.
  return exec::predict_memory(*exec::resolve_plan(graph, std::make_shared<artifact::Plan>(plan)),
                              ir::Bindings{})
      .use;
}
size_t steps(const artifact::Plan& plan) {
  size_t count = 0;
  for (const artifact::Segment& segment : plan.segments) count += segment.steps.size();
  return count;
}

// Four branches that each widen x and narrow it again, written layer by layer as exporters do not, but may.
TEST(LaunchOrder, FinishesABranchBeforeTheNext) {
  GraphMaker m;
  const auto x = m.input({64});
  std::vector<ir::ValueId> wide, narrow;
  for (int b = 0; b < 4; ++b)
    wide.push_back(m.add(Op::concat, {x, x, x, x, x, x, x, x}, {{"axis", int64_t{0}}}));
  for (int b = 0; b < 4; ++b)
    narrow.push_back(
        m.add(Op::reduce, {wide[static_cast<size_t>(b)]},
              {{"kind", std::string("sum")}, {"axes", std::vector<int64_t>{0}}, {"keepdims", int64_t{1}}}));
  m.output(m.add(Op::concat, narrow, {{"axis", int64_t{0}}}));
  const auto graph = test::with_origins(m);
  plan::PlanResult planned = test::planned(*graph, "original");
  const exec::MemoryUse before = memory(graph, planned.plan);
  order_for_memory(*graph, model_facts(*graph, {}), planned.workloads, planned.plan);
  const exec::MemoryUse after = memory(graph, planned.plan);
  EXPECT_LT(after.arena_lower_bound, before.arena_lower_bound / 2);
}

TEST(LaunchOrder, RandomGraphsStayValidAndNeedNoMore) {
  Rng rng(11);
  int better = 0;
  for (int round = 0; round < 200; ++round) {
    GraphMaker m;
    std::vector<ir::ValueId> values{m.input({256})};
    std::set<ir::ValueId> unread;
    const int count = 3 + static_cast<int>(rng.below(12));
    for (int n = 0; n < count; ++n) {
      const auto any = [&] {
        const ir::ValueId v = values[rng.below(values.size())];
        unread.erase(v);
        return v;
      };
      ir::ValueId made = ir::kNoValue;
      switch (rng.below(3)) {
        case 0:
          made = m.add(Op::exp, {any()});
          break;
        case 1:
          made = m.add(Op::concat, {any(), any()}, {{"axis", int64_t{0}}});
          break;
        default: {
          const auto v = any();
          made = m.add(Op::add, {v, v});
        }
      }
      values.push_back(made);
      unread.insert(made);
    }
    m.output(
        m.add(Op::concat, std::vector<ir::ValueId>(unread.begin(), unread.end()), {{"axis", int64_t{0}}}));
    const auto graph = test::with_origins(m);
    plan::PlanResult planned = test::planned(*graph, "original");
    const exec::MemoryUse before = memory(graph, planned.plan);
    const size_t had = steps(planned.plan);
    order_for_memory(*graph, model_facts(*graph, {}), planned.workloads, planned.plan);
    const exec::MemoryUse after = memory(graph, planned.plan);
    EXPECT_EQ(steps(planned.plan), had);
    EXPECT_LE(after.arena_lower_bound, before.arena_lower_bound) << "round " << round;
    better += after.arena_lower_bound < before.arena_lower_bound;
  }
  EXPECT_GT(better, 10);
}

}  // namespace
}  // namespace thrice::plan
