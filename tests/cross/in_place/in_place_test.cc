// Catches: a result that is written over an operand which something still reads (another step, an alias, the
// caller, the same step at another place), kernels that read an element after they wrote it, sharing that is
// never taken, and a gate that passes a kernel which is wrong in place only.
#include "exec/in_place.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "base/rng.h"
#include "codegen/generate.h"
#include "exec/executor.h"
#include "exec/predict.h"
#include "family/in_place.h"
#include "flow/build.h"
#include "ir/inputs.h"
#include "measure/check.h"
#include "measure/trial.h"
#include "measure_fixture.h"
#include "planned_graph.h"

namespace thrice::exec {
namespace {

using artifact::Plan;
using ir::Dim;
using ir::GraphMaker;
using ir::Op;
using ir::ValueId;

std::string device_id() {
  const char* id = std::getenv("THRICE_TEST_DEVICE");
  return id != nullptr ? id : "opencl:0";
}

struct Card {
  backend::DevicePtr device = backend::open_device(device_id());
  std::shared_ptr<jit::KernelCache> cache =
      std::make_shared<jit::KernelCache>(device, ::testing::TempDir() + "/in_place_kernels");
};
Card& card() {
  static Card one;
  return one;
}

std::vector<ir::Tensor> run(const std::shared_ptr<const ir::Graph>& graph, const Plan& plan,
                            const std::vector<ir::Tensor>& inputs) {
  Executor executor(make_executable(card().device, graph, std::make_shared<Plan>(plan),
                                    flow::program_source(card().device, card().cache, nullptr)));
  std::vector<ir::Tensor> first = executor.run_host(inputs), again = executor.run_host(inputs);  // replayed
  for (size_t i = 0; i < first.size(); ++i)
    EXPECT_TRUE(std::equal(first[i].data(), first[i].data() + first[i].bytes(), again[i].data()));
  return first;
}

int64_t arena(const std::shared_ptr<const ir::Graph>& graph, const Plan& plan, const ir::Bindings& bindings) {
  return predict_memory(*resolve_plan(graph, std::make_shared<Plan>(plan)), bindings).use.arena;
}

// The schedule `tactic` for every map; "" = the default.
Plan planned(const ir::Graph& graph, const std::string& tactic) {
  plan::PlanOptions options;
  options.planner = "original";
  Plan plan = plan::make_plan(graph, card().device->spec(), options).plan;
  for (artifact::Segment& segment : plan.segments)
    for (artifact::PlanStep& step : segment.steps)
      if (!tactic.empty() && step.schedule.family == "map") step.schedule = artifact::Schedule::parse(tactic);
  return plan;
}

// Runs with and without sharing; returns how many regions share.
size_t compare(const std::shared_ptr<const ir::Graph>& graph, const std::string& tactic,
               const std::vector<ir::Tensor>& inputs, const ir::Bindings& bindings) {
  const Plan apart = planned(*graph, tactic);
  const auto schedules = in_place_schedules(graph, apart, bindings);
  Plan shared = apart;
  set_schedules(shared, schedules);
  EXPECT_LE(arena(graph, shared, bindings), arena(graph, apart, bindings));
  const auto expected = run(graph, apart, inputs), found = run(graph, shared, inputs);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(std::equal(expected[i].data(), expected[i].data() + expected[i].bytes(), found[i].data()))
        << "output " << i;
  return schedules.size();
}

bool is_cuda() { return card().device->spec().api == target::Api::kCuda; }
// "" = the default.
std::vector<std::string> tactics() {
  std::vector<std::string> all{"", "map/flat threads=64", "map/vector threads=8 items=16 rows=4"};
  all.push_back(is_cuda() ? "map/pack threads=64 items=2 lanes=4" : "map/vector threads=1 items=64 rows=2");
  return all;
}

TEST(InPlace, AChainOfMapsTakesOneBuffer) {
  GraphMaker m;
  ValueId v = m.input({Dim::symbol("n"), 7});
  for (const Op op : {Op::exp, Op::sqrt, Op::sin, Op::cos, Op::neg}) v = m.add(op, {v});
  m.output(v);
  const auto graph = test::with_origins(m);
  const Plan apart = planned(*graph, "");
  Plan shared = apart;
  set_schedules(shared, in_place_schedules(graph, apart, {{"n", 100}}));
  const int64_t one = 100 * 7 * 4;
  EXPECT_GE(arena(graph, apart, {{"n", 100}}), 2 * one);
  EXPECT_LT(arena(graph, shared, {{"n", 100}}), one + static_cast<int64_t>(backend::kAlignment));
  for (const std::string& tactic : tactics())
    for (const int64_t n : {1, 5, 100}) {
      const std::vector<ir::Tensor> inputs = ir::make_inputs(*graph, {{"n", n}}, ir::InputKind::kNormal, 3);
      EXPECT_GT(compare(graph, tactic, inputs, {{"n", n}}), 0u) << tactic << " " << n;
    }
}

// Broadcast, aliases, values read twice and late, values returned, other types, views of strides.
TEST(InPlace, RandomGraphsGiveTheSameBits) {
  Rng rng(41);
  size_t shared = 0;
  for (int round = 0; round < 30; ++round) {
    GraphMaker m;
    const ir::Shape whole{3, Dim::symbol("n"), 4};
    std::vector<ValueId> values{m.input(whole), m.input(whole), m.input({Dim::symbol("n"), 1})};
    std::set<ValueId> unread;
    for (int n = 4 + static_cast<int>(rng.below(10)); n > 0; --n) {
      const auto any = [&] {  // mostly what is new
        const size_t back = rng.below(rng.below(3) == 0 ? values.size() : std::min<size_t>(3, values.size()));
        const ValueId v = values[values.size() - 1 - back];
        unread.erase(v);
        return v;
      };
      ValueId made = ir::kNoValue;
      switch (rng.below(7)) {
        case 0:
          made = m.add(Op::add, {any(), any()});
          break;
        case 1:
          made = m.add(Op::mul, {any(), values[2]});
          break;
        case 2:
          made = m.add(Op::cast, {m.add(Op::cast, {any()}, {{"to", static_cast<int64_t>(DType::kF16)}})},
                       {{"to", static_cast<int64_t>(DType::kF32)}});
          break;
        case 3:
          made = m.add(Op::identity, {any()});
          break;
        case 4:
          made =
              m.add(Op::add,
                    {any(), m.add(Op::transpose,
                                  {m.add(Op::transpose, {any()}, {{"perm", std::vector<int64_t>{0, 1, 2}}})},
                                  {{"perm", std::vector<int64_t>{0, 1, 2}}})});
          break;
        default:
          made = m.add(rng.below(2) == 0 ? Op::tanh : Op::sin, {any()});
      }
      if (made == values[2]) continue;
      values.push_back(made);
      unread.insert(made);
      if (rng.below(8) == 0) m.output(made);
    }
    for (ValueId v : unread) m.output(v);
    std::shared_ptr<ir::Graph> graph;
    try {
      graph = test::with_origins(m);
    } catch (const std::exception&) {
      continue;  // shapes that do not go together
    }
    const ir::Bindings bindings{{"n", 1 + static_cast<int64_t>(rng.below(40))}};
    const std::vector<ir::Tensor> inputs = ir::make_inputs(*graph, bindings, ir::InputKind::kNormal, 5);
    shared += compare(graph, tactics()[static_cast<size_t>(round) % 4], inputs, bindings);
  }
  EXPECT_GT(shared, 10u);
}

// y = x W + r, r read by nothing else: written over r, whatever the extents leave of a tile.
TEST(InPlace, EpiloguesWriteOverWhatTheyAdd) {
  if (is_cuda()) GTEST_SKIP() << "tiles of CUDA kernels store edges twice and never share";
  for (const int64_t n : {2, 3, 17, 100})
    for (const int64_t rows : {1, 5}) {
      GraphMaker m;
      ir::Tensor weights(DType::kF32, {12, n});
      for (int64_t i = 0; i < weights.size(); ++i) weights.set(i, 0.01 * static_cast<double>(i % 37) - 0.1);
      const auto r = m.add(Op::sin, {m.input({rows, n})});
      const auto y = m.add(
          Op::relu, {m.add(Op::add, {m.add(Op::matmul, {m.input({rows, 12}), m.constant(weights)}), r})});
      m.output(m.add(Op::neg, {y}));
      auto graph = test::with_origins(m);
      for (const ir::NodeId node : {2, 3})
        graph->nodes[static_cast<size_t>(node)].origin = graph->nodes[1].origin;
      const std::vector<ir::Tensor> inputs = ir::make_inputs(*graph, {}, ir::InputKind::kNormal, 3);
      for (const char* tactic :
           {"matmul/naive threads=64", "matmul/vector reg_m=2 reg_v=2 lanes=8 items=1",
            "matmul/vector reg_m=4 reg_v=1 lanes=4 items=2", "matmul/dot reg_m=2 reg_n=2 lanes=4 items=1"}) {
        Plan apart = planned(*graph, "");
        int products = 0;
        for (artifact::Segment& segment : apart.segments)
          for (artifact::PlanStep& step : segment.steps)
            if (step.schedule.family == "matmul" && step.nodes.size() == 3) {
              ++products;
              const artifact::Schedule schedule = artifact::Schedule::parse(tactic);
              const ir::Workload workload = ir::extract(*graph, ir::make_region(*graph, step.nodes));
              if (!family::find_family("matmul")->illegal(workload, schedule, card().device->spec()))
                step.schedule = schedule;
            }
        ASSERT_EQ(products, 1);
        Plan shared = apart;
        const auto schedules = in_place_schedules(graph, apart, {});
        EXPECT_FALSE(schedules.empty());
        set_schedules(shared, schedules);
        const auto expected = run(graph, apart, inputs), found = run(graph, shared, inputs);
        EXPECT_TRUE(std::equal(expected[0].data(), expected[0].data() + expected[0].bytes(), found[0].data()))
            << tactic << " " << rows << "x" << n;
      }
    }
}

ir::Workload workload_of(GraphMaker m) {
  const auto graph = test::with_origins(std::move(m));
  std::vector<ir::NodeId> nodes;
  for (size_t n = 0; n < graph->nodes.size(); ++n) nodes.push_back(static_cast<ir::NodeId>(n));
  return ir::extract(*graph, ir::make_region(*graph, nodes));
}

TEST(InPlace, OnlyWhatIsReadElementByElement) {
  {
    GraphMaker m;  // x to y, not the row
    m.output(
        m.add(Op::relu, {m.add(Op::add, {m.input({4, Dim::symbol("n")}), m.input({1, Dim::symbol("n")})})}));
    EXPECT_EQ(family::elementwise_shares(workload_of(m)), (std::vector<family::Share>{{0, 0}}));
  }
  {
    GraphMaker m;  // x is read at two places
    const auto x = m.input({4, 4});
    m.output(m.add(Op::add, {x, m.add(Op::transpose, {x}, {{"perm", std::vector<int64_t>{1, 0}}})}));
    EXPECT_TRUE(family::elementwise_shares(workload_of(m)).empty());
  }
  {
    GraphMaker m;  // elements of another width, or of another type
    const auto x = m.input({4, 4});
    m.output(m.add(Op::cast, {x}, {{"to", static_cast<int64_t>(DType::kF16)}}));
    m.output(m.add(Op::cast, {x}, {{"to", static_cast<int64_t>(DType::kI32)}}));
    EXPECT_TRUE(family::elementwise_shares(workload_of(m)).empty());
  }
  {
    GraphMaker m;  // through a reduction
    const auto x = m.input({4, 4});
    m.output(m.add(Op::sub, {x, m.add(Op::reduce, {x},
                                      {{"kind", std::string("max")},
                                       {"axes", std::vector<int64_t>{1}},
                                       {"keepdims", int64_t{1}}})}));
    EXPECT_TRUE(family::elementwise_shares(workload_of(m)).empty());
  }
}

TEST(InPlace, OnlySharedBuffersLoseTheirPromise) {
  GraphMaker m;
  m.output(m.add(Op::add, {m.input({4, 100}), m.input({1, 100})}));
  const ir::Workload workload = workload_of(m);
  const family::Family& map = *family::find_family("map");
  artifact::Schedule schedule = artifact::Schedule::parse("map/flat threads=64");
  const std::string before = map.emit(workload, schedule, card().device->spec()).text;
  schedule = family::in_place(map, workload, schedule);
  EXPECT_EQ(schedule.str(), "map/flat threads=64 in_place=1");
  const std::string text = map.emit(workload, schedule, card().device->spec()).text;
  EXPECT_NE(before.find("* TH_RESTRICT p0,"), std::string::npos);
  EXPECT_NE(text.find("* p0,"), std::string::npos);
  EXPECT_NE(text.find("* TH_RESTRICT p1,"), std::string::npos);
  EXPECT_NE(text.find("* p2,"), std::string::npos);
  EXPECT_TRUE(
      family::shares_of(map, workload, artifact::Schedule::parse("map/tile threads=256 in_place=1")).empty());
}

// Every pair is looked at, whatever comes first; of an operand and of a result only one at a time.
TEST(InPlace, EachPairIsTakenOnce) {
  using Shares = std::vector<family::Share>;
  EXPECT_TRUE(family::share_choices({}).empty());
  EXPECT_EQ(family::share_choices({{0, 0}}), (std::vector<Shares>{{{0, 0}}}));
  EXPECT_EQ(family::share_choices({{0, 0}, {1, 0}}), (std::vector<Shares>{{{0, 0}}, {{1, 0}}}));
  EXPECT_EQ(family::share_choices({{0, 0}, {0, 1}, {1, 0}, {1, 1}}),
            (std::vector<Shares>{{{0, 0}, {1, 1}}, {{0, 1}, {1, 0}}}));
}

// Guards of integer operands are other bytes than those of results.
TEST(InPlace, IntegersPassTheGate) {
  GraphMaker m;
  const auto x = m.input({Dim::symbol("s0")}, DType::kI32), y = m.input({Dim::symbol("s0")}, DType::kI32);
  m.output(m.add(Op::add, {x, y}));
  const ir::Workload workload = workload_of(m);
  const family::Family& map = *family::find_family("map");
  const artifact::Schedule schedule =
      family::in_place(map, workload, artifact::Schedule::parse("map/flat threads=64"));
  const auto shares = family::shares_of(map, workload, schedule);
  ASSERT_EQ(shares.size(), 2u);
  measure::Oracle oracle(workload, ir::facts_at(workload.graph, {{"s0", 1000}}));
  measure::TrialRunner runner(card().device, measure::place_here(card().device, card().cache));
  measure::TrialOptions options;
  options.gate = measure::Gate::kFull;
  options.timing = {0, 1, 0};
  const auto done = runner.run(workload, map, schedule, oracle, options).measurement;
  EXPECT_EQ(done.outcome, artifact::Outcome::kOk) << done.message;
}

// y[i] = x[i]: right in buffers apart. The second reads its element after its neighbour was written.
TEST(InPlace, TheGateSeesWhatIsWrongInPlaceOnly) {
  const std::string head =
      "TH_KERNEL_THREADS(64) k(TH_GLOBAL const float* p0, TH_GLOBAL float* p1, "
      "TH_GLOBAL const int* TH_RESTRICT E) {\n"
      "  const int i = TH_BLOCK * 64 + TH_THREAD;\n";
  const std::string honest = head + "  if (i < E[0]) p1[i] = -p0[i];\n}\n";
  const std::string late = head +
                           "  if (i != 0) return;\n  for (int j = E[0] - 1; j >= 0; --j) p1[j] = 0.0f;\n"
                           "  for (int j = 0; j < E[0]; ++j) p1[j] = -p0[j];\n}\n";
  const ir::Workload workload = test::unary_workload(Op::neg);
  measure::Oracle oracle(workload, ir::facts_at(workload.graph, {{"s0", 1000}}));
  const auto stream = card().device->make_stream();
  for (const bool is_honest : {true, false}) {
    const test::TextFamily family(is_honest ? honest : late);
    const auto launches = family.launch(workload, {"text", "only", {}}, oracle.facts());
    artifact::KernelSource source =
        codegen::generate(workload, family, {"text", "only", {}}, card().device->spec(),
                          is_cuda() ? artifact::Language::kCuda : artifact::Language::kOpenCL);
    const auto program = card().cache->build(source).program;
    measure::CheckOptions options;
    EXPECT_TRUE(measure::check(*card().device, *stream, program, workload, launches, oracle, options).ok);
    options.shares = {{0, 0}};
    EXPECT_EQ(measure::check(*card().device, *stream, program, workload, launches, oracle, options).ok,
              is_honest);
  }
}

}  // namespace
}  // namespace thrice::exec
