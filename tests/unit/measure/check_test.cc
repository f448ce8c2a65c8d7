// Would catch: a check that a cheating kernel passes (nothing written, part written, one element beyond,
// inputs changed, constants, NaN, right only for one input), and a check that fails an honest kernel.
#include "measure/check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codegen/generate.h"
#include "measure/ordinary.h"
#include "measure_fixture.h"

namespace thrice::measure {
namespace {

using test::kernel_text;

class Check : public testing::Test {
 protected:
  void SetUp() override {
    for (const auto& r : backend::list_backends())
      if (r.name == "opencl" && !r.available) GTEST_SKIP() << "skipped: " << r.reason;
    device = backend::open_device("opencl:0");
    stream = device->make_stream();
  }
  CheckResult run(const std::string& text, Gate gate = Gate::kScreening, int64_t n = 1000,
                  int64_t temporary = -1) {
    const test::TextFamily family(text, temporary);
    const artifact::Schedule schedule{"text", "only", {}};
    const auto source =
        codegen::generate(workload, family, schedule, device->spec(), artifact::Language::kOpenCL);
    const auto program = device->load(device->compiler()->compile(source), source.kernels);
    Oracle oracle(workload, ir::facts_at(workload.graph, {{"s0", n}}));
    return check(*device, *stream, program, workload, family.launch(workload, schedule, oracle.facts()),
                 oracle, {gate, 3});
  }
  void expect_wrong(const std::string& text, const std::string& reason) {
    const CheckResult r = run(text);
    EXPECT_FALSE(r.ok);
    EXPECT_NE(r.reason.find(reason), std::string::npos) << r.reason;
  }
  backend::DevicePtr device;
  std::unique_ptr<backend::Stream> stream;
  ir::Workload workload = test::unary_workload(ir::Op::relu);
};

TEST_F(Check, HonestKernelPassesBothGates) {
  const std::string honest = kernel_text("if (i < n) y[i] = x[i] > 0 ? x[i] : x[i] != x[i] ? x[i] : 0;");
  const CheckResult screening = run(honest);
  EXPECT_TRUE(screening.ok) << screening.reason;
  EXPECT_EQ(screening.error, 0);
  EXPECT_GT(screening.error_limit, 0);
  const CheckResult full = run(honest, Gate::kFull);
  EXPECT_TRUE(full.ok) << full.reason;
  EXPECT_TRUE(run(honest, Gate::kScreening, 1).ok);
  EXPECT_TRUE(run(honest, Gate::kScreening, 0).ok);  // nothing to write
}

TEST_F(Check, NothingWritten) { expect_wrong(kernel_text(""), "never written"); }
TEST_F(Check, PartWritten) {
  expect_wrong(kernel_text("if (i < n - 1) y[i] = x[i] > 0 ? x[i] : 0;"),
               "element 999 of 1000 was never written");
}
TEST_F(Check, OneBeyondTheEnd) {
  expect_wrong(kernel_text("if (i <= n) y[i] = i < n && x[i] > 0 ? x[i] : 0;"), "beyond the end of output 0");
}
TEST_F(Check, OneBeforeTheStart) {
  expect_wrong(kernel_text("if (i < n) y[i] = x[i] > 0 ? x[i] : 0; if (i == 0) y[-1] = 0;"),
               "before the start of output 0");
}
TEST_F(Check, BeyondATemporary) {
  const CheckResult r =
      run(kernel_text("if (i < n) y[i] = x[i] > 0 ? x[i] : 0; if (i == 0) t[4] = 0;", "TH_GLOBAL float* t, "),
          Gate::kScreening, 1000, 16);
  EXPECT_FALSE(r.ok);
  EXPECT_NE(r.reason.find("beyond the end of temporary 0"), std::string::npos) << r.reason;
}
TEST_F(Check, InputChanged) {
  expect_wrong(kernel_text("if (i < n) { y[i] = x[i] > 0 ? x[i] : 0; if (i == 500) x[i] = 0; }"),
               "changed input 0");
}
TEST_F(Check, ConstantOutput) { expect_wrong(kernel_text("if (i < n) y[i] = 1;"), "output 0"); }
TEST_F(Check, ZeroOutput) { expect_wrong(kernel_text("if (i < n) y[i] = 0;"), "output 0"); }
TEST_F(Check, OneNan) {
  expect_wrong(kernel_text("if (i < n) y[i] = i == 77 ? NAN : x[i] > 0 ? x[i] : 0;"), "output 0");
}
TEST_F(Check, SlightlyWrong) {
  expect_wrong(kernel_text("if (i < n) y[i] = x[i] > 0 ? x[i] * 1.0001f : 0;"), "output 0");
}
TEST_F(Check, RightForPositiveInputsOnly) {
  expect_wrong(kernel_text("if (i < n) y[i] = x[i];"), "normal inputs");
}
TEST_F(Check, ReadsBeyondItsInput) {
  // The guard of an input is NaN, so what lies beyond shows in the result.
  expect_wrong(kernel_text("if (i < n) y[i] = (x[i] > 0 ? x[i] : 0) + 0 * x[i + 1];"), "output 0");
}

// y = sqrt(log(a + b * x)): NaN wherever a + b * x < 1.
ir::Workload root_of_log(double a, double b) {
  ir::Graph graph;
  const ir::Type type{DType::kF32, {ir::Dim::symbol("n")}};
  std::vector<ir::ValueId> v;
  for (int k = 0; k < 5; ++k) v.push_back(graph.add_value(type));
  graph.inputs = {v[0]};
  graph.outputs = {v[4]};
  graph.add_node(
      {ir::Op::mul, {v[0], graph.add_constant(ir::Tensor::scalar(DType::kF32, b))}, {v[1]}, {}, -1, {}});
  graph.add_node(
      {ir::Op::add, {v[1], graph.add_constant(ir::Tensor::scalar(DType::kF32, a))}, {v[2]}, {}, -1, {}});
  graph.add_node({ir::Op::log, {v[2]}, {v[3]}, {}, -1, {}});
  graph.add_node({ir::Op::sqrt, {v[3]}, {v[4]}, {}, -1, {}});
  return ir::extract(graph, ir::make_region(graph, {0, 1, 2, 3}));
}

class FewNumbers : public Check {};

TEST_F(FewNumbers, PositiveInputsWhereTheUsualOnesLeaveNone) {
  workload = root_of_log(-9, 10);  // a number from x = 1 on: never on uniform inputs
  const std::string honest = "if (i < n) y[i] = sqrt(log(10 * x[i] - 9))";
  const uint64_t seed = 3;
  Oracle oracle(workload, ir::facts_at(workload.graph, {{"s0", 1}}));
  ASSERT_LT(oracle.inputs(ir::InputKind::kNormal, seed)[0].as_double(0), 1)
      << "the test needs a NaN on normal inputs";
  const CheckResult r = run(kernel_text(honest + ";"), Gate::kScreening, 1);
  EXPECT_TRUE(r.ok) << r.reason;
  EXPECT_GT(r.error_limit, 0) << "the positive round is what was compared";
  const CheckResult full = run(kernel_text(honest + ";"), Gate::kFull, 1);
  EXPECT_TRUE(full.ok) << full.reason;
  // What is wrong there is found there; what is no NaN where the reference is one is wrong at once.
  const CheckResult off = run(kernel_text(honest + " * 1.001f;"), Gate::kScreening, 1);
  EXPECT_FALSE(off.ok);
  EXPECT_NE(off.reason.find("positive inputs"), std::string::npos) << off.reason;
  const CheckResult all_nan =
      run(kernel_text("if (i < n) y[i] = sqrt(-1 - x[i] * x[i]);"), Gate::kScreening, 1);
  EXPECT_FALSE(all_nan.ok);
  EXPECT_NE(all_nan.reason.find("positive inputs"), std::string::npos) << all_nan.reason;
  const CheckResult no_nan =
      run(kernel_text("if (i < n) y[i] = sqrt(fabs(log(fabs(10 * x[i] - 9))));"), Gate::kScreening, 1);
  EXPECT_FALSE(no_nan.ok);
  EXPECT_NE(no_nan.reason.find("normal inputs"), std::string::npos) << no_nan.reason;
}

TEST_F(FewNumbers, NothingIsProvedWithoutANumber) {
  workload = root_of_log(-9, 0);  // NaN for every input
  const CheckResult r = run(kernel_text("if (i < n) y[i] = NAN;"));
  EXPECT_FALSE(r.ok);
  EXPECT_NE(r.reason.find("no kind of inputs gave a number"), std::string::npos) << r.reason;
}

TEST(Ordinary, LongSumsAreAllowedTheirError) {
  ir::Graph graph;
  const ir::ValueId x = graph.add_value({DType::kF32, {2, 4096}}), y = graph.add_value({DType::kF32, {2}});
  graph.inputs = {x};
  graph.outputs = {y};
  ir::Node node;
  node.op = ir::Op::reduce;
  node.attrs = {{"kind", std::string("sum")}, {"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}};
  node.inputs = {x};
  node.outputs = {y};
  graph.add_node(node);
  const auto facts = ir::bind(graph, ir::facts_at(graph, {}));
  EXPECT_EQ(accumulated_terms(graph.nodes[0], facts), 4096);
  const auto input = ir::to_array(ir::make_input(DType::kF32, {2, 4096}, ir::InputKind::kUniform, 1));
  const auto exact = ir::evaluate_graph(graph, {input});
  const auto ordinary = evaluate_ordinary(graph, {input}, facts);
  const double error = ir::compare(ir::to_tensor(*ordinary[0]), *exact[0], 1).error;
  EXPECT_GT(error, 1e-6);  // 0.5 * 2^-23 * sqrt(4096) = 3.8e-6
  EXPECT_LT(error, 5e-6);
}

TEST(Ordinary, RoundingBetweenNodesShows) {
  // exp of scores near 80: float32 carries their last bits into the result.
  ir::Graph graph;
  const ir::Type type{DType::kF32, {64}};
  const ir::ValueId x = graph.add_value(type), a = graph.add_value(type), y = graph.add_value(type);
  const ir::ValueId c = graph.add_constant(ir::Tensor::scalar(DType::kF32, 80.3));
  graph.inputs = {x};
  graph.outputs = {y};
  graph.add_node({ir::Op::add, {x, c}, {a}, {}, -1, {}});
  graph.add_node({ir::Op::exp, {a}, {y}, {}, -1, {}});
  const auto facts = ir::bind(graph, ir::facts_at(graph, {}));
  const auto input = ir::to_array(ir::make_input(DType::kF32, {64}, ir::InputKind::kUniform, 1));
  const double error = ir::compare(ir::to_tensor(*evaluate_ordinary(graph, {input}, facts)[0]),
                                   *ir::evaluate_graph(graph, {input})[0], 1)
                           .error;
  EXPECT_GT(error, 5e-7);
}

}  // namespace
}  // namespace thrice::measure
