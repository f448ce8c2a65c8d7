// Would catch: a null device whose trials count as verified, or that cannot be driven through the gate at
// all.
#include <gtest/gtest.h>

#include "measure/trial.h"
#include "measure_fixture.h"

namespace thrice::measure {
namespace {

TEST(NullTrial, RunsTheGateAndSaysThatNothingWasVerified) {
  const auto device = backend::open_device("null:0");
  TrialRunner runner(device, std::make_shared<jit::KernelCache>(device, ""));
  const ir::Workload workload = test::unary_workload(ir::Op::relu);
  Oracle oracle(workload, ir::facts_at(workload.graph, {{"s0", 100}}));
  const auto r = runner.run(workload, test::TextFamily("anything at all"), {"text", "only", {}}, oracle, {});
  EXPECT_EQ(r.measurement.outcome, artifact::Outcome::kOk) << r.measurement.message;
  EXPECT_EQ(r.measurement.error, -1);
  EXPECT_EQ(r.measurement.message, "null device, not verified");
}

}  // namespace
}  // namespace thrice::measure
