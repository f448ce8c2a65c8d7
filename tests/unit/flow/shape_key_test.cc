// Catches: trials and proofs of one length that are taken for those of another, since the length is seen in
// the value of a shape operand alone.
#include <gtest/gtest.h>

#include "flow/tuning.h"
#include "planned_graph.h"

namespace thrice::flow {
namespace {

using ir::Op;

TEST(ShapeKey, ValuesOfShapeOperandsAreInIt) {
  ir::GraphMaker m;
  const auto a = m.input({ir::Dim::symbol("M")}), b = m.input({1});
  m.output(m.add(Op::expand, {b, m.add(Op::shape, {a})}));
  const auto graph = test::with_origins(m);
  std::set<std::string> keys;
  for (const int64_t length : {10, 20, 1000}) {
    plan::PlanOptions options;
    options.planner = "original";
    options.bindings = {{"M", length}};
    for (const auto& [hash, work] : plan::make_plan(*graph, target::DeviceSpec{}, options).workloads)
      keys.insert(shape_key(work));
  }
  EXPECT_EQ(keys.size(), 3u);
}

}  // namespace
}  // namespace thrice::flow
