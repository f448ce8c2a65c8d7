// Catches: an order that breaks a dependency or loses a step, one that needs more memory than the best of all
// orders although it claims to be exact, a fallback that is worse than the given order or does not say so.
#include "analysis/step_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/rng.h"

namespace thrice::analysis {
namespace {

// Steps that read up to three earlier pieces and make one or two.
OrderProblem random_problem(Rng& rng, size_t steps, bool shares) {
  OrderProblem problem;
  std::vector<size_t> maker;
  for (size_t s = 0; s < steps; ++s) {
    OrderedStep step;
    for (uint64_t r = rng.below(4); r > 0 && !maker.empty(); --r) {
      const size_t p = rng.below(maker.size());
      if (std::find(step.reads.begin(), step.reads.end(), p) != step.reads.end()) continue;
      step.reads.push_back(p);
      if (std::find(step.before.begin(), step.before.end(), maker[p]) == step.before.end())
        step.before.push_back(maker[p]);
    }
    for (uint64_t m = 1 + rng.below(2); m > 0; --m) {
      step.makes.push_back(problem.bytes.size());
      problem.bytes.push_back(static_cast<int64_t>(rng.below(8)));
      maker.push_back(s);
    }
    if (rng.below(3) == 0) step.scratch = static_cast<int64_t>(rng.below(6));
    if (shares && !step.reads.empty() && rng.below(2) == 0) {
      step.shares.emplace_back(step.reads[0], step.makes[0]);
      problem.bytes[step.makes[0]] = problem.bytes[step.reads[0]];
    }
    problem.steps.push_back(std::move(step));
  }
  return problem;
}

void expect_valid(const OrderProblem& problem, const std::vector<size_t>& order) {
  ASSERT_EQ(order.size(), problem.steps.size());
  std::vector<uint8_t> ran(order.size(), 0);
  for (size_t s : order) {
    EXPECT_FALSE(ran[s]);
    for (size_t b : problem.steps[s].before) EXPECT_TRUE(ran[b]);
    ran[s] = 1;
  }
}

// All orders, one by one; live pieces are counted from the definition.
struct BruteForce {
  const OrderProblem& problem;
  std::vector<uint8_t> ran;
  int64_t best;

  bool is_read_later(size_t piece) const {
    for (size_t s = 0; s < ran.size(); ++s)
      if (!ran[s] && std::count(problem.steps[s].reads.begin(), problem.steps[s].reads.end(), piece))
        return true;
    return false;
  }
  int64_t live() const {
    int64_t bytes = 0;
    for (size_t s = 0; s < ran.size(); ++s)
      for (size_t p : problem.steps[s].makes)
        if (ran[s] && is_read_later(p)) bytes += problem.bytes[p];
    return bytes;
  }
  void go(size_t count, int64_t most) {
    if (most >= best) return;
    if (count == ran.size()) {
      best = most;
      return;
    }
    for (size_t s = 0; s < ran.size(); ++s) {
      const OrderedStep& step = problem.steps[s];
      if (ran[s] || !std::all_of(step.before.begin(), step.before.end(), [&](size_t b) { return ran[b]; }))
        continue;
      int64_t running = live() + step.scratch;
      for (size_t p : step.makes) running += problem.bytes[p];
      ran[s] = 1;
      if (!step.shares.empty() && !is_read_later(step.shares[0].first))
        running -= problem.bytes[step.shares[0].second];
      go(count + 1, std::max(most, running));
      ran[s] = 0;
    }
  }
};

TEST(StepOrder, EqualsBruteForceOnRandomGraphs) {
  Rng rng(17);
  int better = 0;
  for (int round = 0; round < 600; ++round) {
    const OrderProblem problem = random_problem(rng, 2 + rng.below(6), round % 2 == 1);
    const StepOrder found = order_steps(problem);
    expect_valid(problem, found.order);
    EXPECT_TRUE(found.is_optimal);
    EXPECT_EQ(found.peak, peak_of(problem, found.order));
    BruteForce all{problem, std::vector<uint8_t>(problem.steps.size(), 0), int64_t{1} << 40};
    all.go(0, 0);
    EXPECT_EQ(found.peak, all.best) << "round " << round;
    EXPECT_EQ(found.method == OrderMethod::kGiven, found.peak == found.given_peak);
    better += found.peak < found.given_peak;
  }
  EXPECT_GT(better, 50);
}

TEST(StepOrder, TwentyStepsAreWithinTheBound) {
  Rng rng(19);
  size_t most = 0;
  for (int round = 0; round < 200; ++round) {
    const OrderProblem problem = random_problem(rng, 20, false);
    const StepOrder found = order_steps(problem);
    expect_valid(problem, found.order);
    EXPECT_TRUE(found.is_optimal) << "round " << round;
    most = std::max(most, found.states);
  }
  RecordProperty("states", static_cast<int>(most));
}

TEST(StepOrder, BeyondTheBoundItIsNoWorseAndSaysSo) {
  Rng rng(23);
  int greedy = 0;
  for (int round = 0; round < 100; ++round) {
    const OrderProblem problem = random_problem(rng, 60, true);
    const StepOrder found = order_steps(problem, 20);
    expect_valid(problem, found.order);
    EXPECT_LE(found.peak, found.given_peak);
    EXPECT_EQ(found.peak, peak_of(problem, found.order));
    const StepOrder more = order_steps(problem, 2000);
    EXPECT_LE(more.peak, found.peak);
    if (found.is_optimal) {
      EXPECT_EQ(more.peak, found.peak);
    }
    greedy += found.method == OrderMethod::kGreedy;
    EXPECT_TRUE(found.method != OrderMethod::kGreedy || !found.is_optimal);
  }
  EXPECT_GT(greedy, 10);
}

}  // namespace
}  // namespace thrice::analysis
