// Would catch: a plan by "dp" above the greedy planner's price, one that ignores what the cost model says, a
// fallback that is not told, two different regions taken for one, and planning that takes more than seconds.
#include "plan/fuse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <set>

#include "base/rng.h"
#include "plan/region_signature.h"
#include "plan/roofline_cost.h"
#include "planned_graph.h"

namespace thrice::plan {
namespace {

using ir::GraphMaker;
using ir::Op;
using ir::ValueId;

size_t regions_of(const artifact::Plan& plan) {
  size_t count = 0;
  for (const auto& segment : plan.segments)
    for (const auto& step : segment.steps) count += step.kind == artifact::StepKind::kRegion;
  return count;
}

// Element-wise operators, reductions, views and products at random.
std::shared_ptr<ir::Graph> random_graph(uint64_t seed, int nodes) {
  Rng rng(seed);
  GraphMaker m;
  std::vector<ValueId> values = {m.input({8, 8}), m.input({8, 8}), m.input({1, 8})};
  const size_t far = 2 + rng.below(10);
  const auto any = [&] {
    const size_t near = std::min(values.size(), far);
    return values[values.size() - 1 - rng.below(near)];
  };
  const auto full = [&] {  // [8, 8]
    const ValueId v = any();
    return m.add(Op::add, {v, values[0]});
  };
  for (int n = 0; n < nodes; ++n) switch (rng.below(8)) {
      case 0:
        values.push_back(m.add(Op::exp, {any()}));
        break;
      case 1:
      case 2:
        values.push_back(m.add(Op::add, {any(), any()}));
        break;
      case 3:
        values.push_back(m.add(Op::matmul, {full(), full()}));
        break;
      case 4:
        values.push_back(m.add(Op::transpose, {full()}, {{"perm", ir::ints_of({1, 0})}}));
        break;
      case 5:
        values.push_back(
            m.add(Op::reduce, {full()},
                  {{"kind", std::string("sum")}, {"axes", ir::ints_of({1})}, {"keepdims", int64_t{1}}}));
        break;
      case 6:
        values.push_back(m.add(Op::reshape, {full(), m.ints({8, 8})}));
        break;
      default:
        values.push_back(m.add(Op::mul, {any(), any()}));
    }
  m.output(values.back());
  m.output(values[values.size() / 2]);
  return test::with_origins(std::move(m));
}

// Prices at random, but always the same for a region of one kind.
class RandomCost : public CostModel {
 public:
  explicit RandomCost(uint64_t seed) : seed_(seed) {}
  RegionCost cost(const PricedWorkload& region) override {
    Rng rng(seed_ + std::hash<std::string>()(region.workload.hash));
    RegionCost cost;
    cost.us = rng.uniform() * static_cast<double>(region.workload.graph.nodes.size());
    cost.source = "chance";
    return cost;
  }

 private:
  uint64_t seed_;
};

PlanResult planned_by(const ir::Graph& graph, const std::string& planner, CostModel* costs) {
  PlanOptions options;
  options.planner = planner;
  options.costs = costs;
  return make_plan(graph, target::DeviceSpec{}, options);
}

double price_of(const PlanResult& result, CostModel& costs) {
  double us = 0;
  for (const auto& [hash, w] : result.workloads)
    us += costs.cost({w.workload, *w.family, w.facts}).price() * static_cast<double>(w.uses.size());
  return us;
}

TEST(Fuse, PricesAreTheSumOfItsRegionsAndNeverAboveTheGreedyPlanners) {
  size_t below = 0;
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    const auto graph = random_graph(seed, 16);
    RandomCost costs(seed);
    const PlanResult dp = planned_by(*graph, "dp", &costs), greedy = planned_by(*graph, "greedy", nullptr);
    EXPECT_NEAR(price_of(dp, costs), dp.fusion.us, 1e-6) << seed;
    EXPECT_NEAR(price_of(greedy, costs), dp.fusion.greedy_us, 1e-6) << seed;
    EXPECT_LE(dp.fusion.us, dp.fusion.greedy_us + 1e-9) << seed;
    EXPECT_EQ(dp.fusion.exact_pieces, dp.fusion.pieces);
    below += dp.fusion.us < dp.fusion.greedy_us - 1e-6;
    std::vector<int> times(graph->nodes.size(), 0);
    std::set<ValueId> made(graph->inputs.begin(), graph->inputs.end());
    for (const auto& segment : dp.plan.segments)
      for (const auto& step : segment.steps)
        for (const int32_t n : step.nodes) {
          ++times[static_cast<size_t>(n)];
          for (const ValueId v : graph->nodes[static_cast<size_t>(n)].inputs)
            EXPECT_TRUE(made.count(v) || graph->value(v).constant) << "seed " << seed << " node " << n;
          for (const ValueId v : graph->nodes[static_cast<size_t>(n)].outputs) made.insert(v);
        }
    for (const int t : times) EXPECT_LE(t, 1);
    for (const ValueId v : graph->outputs) EXPECT_TRUE(made.count(v)) << seed;
  }
  EXPECT_GT(below, 60u);
}

TEST(Fuse, ByTheRooflineAChainIsOneKernel) {
  GraphMaker m;
  const auto x = m.input({64, 64}), y = m.input({64, 64});
  m.output(m.add(Op::relu, {m.add(Op::add, {m.add(Op::exp, {x}), y})}));
  const PlanResult result = planned_by(*test::with_origins(m), "dp", nullptr);
  EXPECT_EQ(regions_of(result.plan), 1u);
  EXPECT_EQ(result.plan.planner, "dp");
  ASSERT_EQ(result.fusion.decisions.size(), 1u);
  const artifact::FusionDecision& decision = result.fusion.decisions[0];
  EXPECT_TRUE(decision.exact);
  EXPECT_EQ(decision.operators.size(), 3u);
  EXPECT_EQ(decision.alternatives[0].name, "chosen");
  EXPECT_EQ(decision.alternatives.back().name, "one by one");
  EXPECT_GT(decision.alternatives.back().us, decision.alternatives[0].us);
  EXPECT_EQ(decision.alternatives[0].regions.at(0).source, "roofline of assumed peaks");
  EXPECT_NE(decision.why.find("below one by one"), std::string::npos);
}

// What is dear as one kernel stays apart, whatever the greedy planner would do.
TEST(Fuse, GoesByWhatTheCostModelSays) {
  class Dear : public CostModel {
   public:
    RegionCost cost(const PricedWorkload& region) override {
      RegionCost cost;
      cost.us = region.workload.graph.nodes.size() == 3 ? 100 : 1;
      cost.source = "test";
      return cost;
    }
  } dear;
  GraphMaker m;
  const auto x = m.input({64, 64}), y = m.input({64, 64});
  m.output(m.add(Op::relu, {m.add(Op::add, {m.add(Op::exp, {x}), y})}));
  const PlanResult result = planned_by(*test::with_origins(m), "dp", &dear);
  EXPECT_EQ(regions_of(result.plan), 2u);
  EXPECT_DOUBLE_EQ(result.fusion.us, 2);
  EXPECT_DOUBLE_EQ(result.fusion.greedy_us, 100);
  EXPECT_EQ(result.fusion.decisions.at(0).alternatives.at(1).name, "greedy");
}

// A small operand that is spread over many elements: its exponential is computed once, by itself.
TEST(Fuse, RepeatedWorkHasAPrice) {
  GraphMaker m;
  const auto x = m.input({1, 1 << 10}), y = m.input({1 << 10, 1 << 10});
  m.output(m.add(Op::mul, {m.add(Op::erf, {m.add(Op::exp, {x})}), y}));
  const auto graph = test::with_origins(m);
  target::DeviceSpec slow;  // computes slowly
  slow.bandwidth_gbs = 1000;
  slow.f32_gflops = 10;
  PlanOptions options;
  options.planner = "dp";
  EXPECT_EQ(regions_of(make_plan(*graph, slow, options).plan), 2u);
  slow.f32_gflops = 1e9;
  EXPECT_EQ(regions_of(make_plan(*graph, slow, options).plan), 1u);
}

TEST(RegionSignature, EqualOnesAreEqualWorkloads) {
  size_t equal = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto graph = random_graph(seed, 20);
    RegionSignatures signatures(*graph);
    std::map<Signature, std::string> known;
    Rng rng(seed);
    for (int i = 0; i < 200; ++i) {
      std::set<ir::NodeId> nodes;
      for (size_t k = 1 + rng.below(3); k > 0; --k)
        nodes.insert(static_cast<ir::NodeId>(rng.below(graph->nodes.size())));
      const std::vector<ir::NodeId> list(nodes.begin(), nodes.end());
      const std::string hash = ir::extract(*graph, ir::make_region(*graph, list)).hash;
      const auto [it, is_new] = known.emplace(signatures.of(list), hash);
      EXPECT_EQ(it->second, hash) << "seed " << seed;
      equal += !is_new;
    }
  }
  EXPECT_GT(equal, 100u);
}

// Layers of a transformer, written out: layer norms, products, a GELU by its error function; no two layers
// are alike where `differ`.
std::shared_ptr<ir::Graph> layers(int count, bool differ) {
  GraphMaker m;
  ValueId x = m.input({128, 256});
  const auto number = [&](double value) { return m.constant(ir::Tensor::scalar(DType::kF32, value)); };
  const auto mean = [&](ValueId v) {
    return m.add(Op::reduce, {v},
                 {{"kind", std::string("mean")}, {"axes", ir::ints_of({1})}, {"keepdims", int64_t{1}}});
  };
  for (int i = 0; i < count; ++i) {
    const double own = differ ? 1 + i * 1e-3 : 1;
    const ValueId centred = m.add(Op::sub, {x, mean(x)});
    const ValueId variance = mean(m.add(Op::mul, {centred, centred}));
    const ValueId scale = m.add(Op::rsqrt, {m.add(Op::add, {variance, number(1e-5 * own)})});
    const ValueId normal =
        m.add(Op::add, {m.add(Op::mul, {m.add(Op::mul, {centred, scale}), m.input({256})}), m.input({256})});
    const ValueId h = m.add(Op::add, {m.add(Op::matmul, {normal, m.input({256, 512})}), m.input({512})});
    const ValueId bent = m.add(Op::erf, {m.add(Op::mul, {h, number(0.7071 * own)})});
    const ValueId gelu =
        m.add(Op::mul, {m.add(Op::mul, {h, number(0.5)}), m.add(Op::add, {bent, number(own)})});
    x = m.add(Op::add, {x, m.add(Op::add, {m.add(Op::matmul, {gelu, m.input({512, 256})}), m.input({256})})});
  }
  m.output(x);
  return test::with_origins(std::move(m));
}

TEST(Fuse, TwoThousandOperatorsTakeLessThanFiveSeconds) {
  const std::vector<std::pair<const char*, std::shared_ptr<ir::Graph>>> graphs = {
      {"equal layers", layers(112, false)},
      {"layers that differ", layers(112, true)},
      {"at random", random_graph(7, 1500)}};
  for (const auto& [name, graph] : graphs) {
    const auto begin = std::chrono::steady_clock::now();
    const std::clock_t cpu = std::clock();
    const PlanResult greedy = planned_by(*graph, "greedy", nullptr);
    const double greedy_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const std::clock_t middle = std::clock();
    const PlanResult dp = planned_by(*graph, "dp", nullptr);
    const double cpu_s = static_cast<double>(std::clock() - middle) / CLOCKS_PER_SEC;
    std::printf(
        "%s: %zu operators: %.2f s (greedy %.2f s, CPU %.2f s); %zu regions (greedy %zu), %lld of %lld "
        "pieces exact, "
        "%lld candidates, %zu judged, %lld states\n",
        name, graph->nodes.size(), cpu_s, greedy_s, static_cast<double>(middle - cpu) / CLOCKS_PER_SEC,
        regions_of(dp.plan), regions_of(greedy.plan), static_cast<long long>(dp.fusion.exact_pieces),
        static_cast<long long>(dp.fusion.pieces), static_cast<long long>(dp.fusion.candidates),
        dp.fusion.judged, static_cast<long long>(dp.fusion.states));
    EXPECT_GE(graph->nodes.size(), 2000u);
    EXPECT_LT(cpu_s, 5) << name;
    EXPECT_LE(dp.fusion.us, dp.fusion.greedy_us * (1 + 1e-9));
  }
}

}  // namespace
}  // namespace thrice::plan
