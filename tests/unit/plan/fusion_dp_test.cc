// Would catch: a union of operators that is never looked at, a partition that has no order, a dynamic program
// that loses the optimum (to a bound, to an order that is not followed, to pieces that are not apart), a
// fallback taken for exact.
#include "plan/fusion_dp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "base/rng.h"
#include "plan/fusion_candidates.h"

namespace thrice::plan {
namespace {

using Edges = std::vector<std::vector<int>>;
constexpr GrowthBounds kAll{64, 1000, 10'000'000};

Edges random_edges(Rng& rng, size_t n) {
  Edges after(n);
  const double density = 0.1 + 0.5 * rng.uniform();
  const size_t far = 1 + rng.below(n);
  for (size_t b = 1; b < n; ++b)
    for (size_t a = 0; a < b; ++a)
      if (b - a <= far && rng.uniform() < density) after[a].push_back(static_cast<int>(b));
  return after;
}

bool is_connected(const Edges& after, const std::vector<int>& atoms) {
  std::set<int> left(atoms.begin(), atoms.end());
  std::vector<int> open{atoms[0]};
  left.erase(atoms[0]);
  while (!open.empty()) {
    const int a = open.back();
    open.pop_back();
    for (const int b : atoms) {
      const auto edge = [&](int x, int y) {
        const auto& list = after[static_cast<size_t>(x)];
        return std::find(list.begin(), list.end(), y) != list.end();
      };
      if (left.count(b) && (edge(a, b) || edge(b, a))) {
        left.erase(b);
        open.push_back(b);
      }
    }
  }
  return left.empty();
}

// Do regions have an order? Takes ready ones as long as there are any.
bool has_order(const Edges& after, const std::vector<std::vector<int>>& regions) {
  std::vector<int> region_of(after.size(), -1);
  for (size_t r = 0; r < regions.size(); ++r)
    for (const int a : regions[r]) region_of[static_cast<size_t>(a)] = static_cast<int>(r);
  std::vector<std::set<int>> waits(regions.size());
  for (size_t a = 0; a < after.size(); ++a)
    for (const int b : after[a])
      if (region_of[a] != region_of[static_cast<size_t>(b)])
        waits[static_cast<size_t>(region_of[static_cast<size_t>(b)])].insert(region_of[a]);
  std::set<int> done;
  for (bool more = true; more;) {
    more = false;
    for (size_t r = 0; r < regions.size(); ++r)
      if (!done.count(static_cast<int>(r)) &&
          std::all_of(waits[r].begin(), waits[r].end(), [&](int w) { return done.count(w) > 0; })) {
        done.insert(static_cast<int>(r));
        more = true;
      }
  }
  return done.size() == regions.size();
}

// The least price of all partitions into candidates that have an order: tried one after the other.
double brute_force(const FusionProblem& problem) {
  double best = std::numeric_limits<double>::infinity();
  std::vector<std::vector<int>> chosen;
  std::vector<uint8_t> covered(problem.size(), 0);
  const std::function<void(double)> go = [&](double us) {
    if (us >= best) return;
    const auto first = std::find(covered.begin(), covered.end(), 0);
    if (first == covered.end()) {
      if (has_order(problem.after, chosen)) best = us;
      return;
    }
    const int atom = static_cast<int>(first - covered.begin());
    for (const CandidateRegion& c : problem.candidates) {
      if (c.atoms[0] != atom ||
          std::any_of(c.atoms.begin(), c.atoms.end(), [&](int a) { return covered[static_cast<size_t>(a)]; }))
        continue;
      for (const int a : c.atoms) covered[static_cast<size_t>(a)] = 1;
      chosen.push_back(c.atoms);
      go(us + c.us);
      chosen.pop_back();
      for (const int a : c.atoms) covered[static_cast<size_t>(a)] = 0;
    }
  };
  go(0);
  return best;
}

FusionProblem random_problem(Rng& rng, size_t n) {
  FusionProblem problem;
  problem.after = random_edges(rng, n);
  const double taken = 0.1 + 0.6 * rng.uniform();
  const bool by_size = rng.below(2) == 0;  // prices like a roofline's, or any
  for (size_t a = 0; a < n; ++a) problem.candidates.push_back({{static_cast<int>(a)}, 1 + 9 * rng.uniform()});
  for (const auto& atoms :
       grow_candidates(problem.after, kAll, [](const auto&) { return Verdict::kTaken; }).taken) {
    if (!(rng.uniform() < taken)) continue;
    double us = 10 * rng.uniform() * static_cast<double>(atoms.size());
    if (by_size) {
      us = 0;
      for (const int a : atoms) us += problem.candidates[static_cast<size_t>(a)].us;
      us *= 0.5 + 0.6 * rng.uniform();
    }
    problem.candidates.push_back({atoms, us});
  }
  return problem;
}

void expect_valid(const FusionProblem& problem, const std::vector<int>& chosen) {
  std::vector<int> times(problem.size(), 0), place(problem.size(), -1);
  for (size_t i = 0; i < chosen.size(); ++i)
    for (const int a : problem.candidates[static_cast<size_t>(chosen[i])].atoms) {
      ++times[static_cast<size_t>(a)];
      place[static_cast<size_t>(a)] = static_cast<int>(i);
    }
  for (const int t : times) EXPECT_EQ(t, 1);
  for (size_t a = 0; a < problem.size(); ++a)  // the order given is one
    for (const int b : problem.after[a]) EXPECT_LE(place[a], place[static_cast<size_t>(b)]);
}

TEST(FusionCandidates, AreAllConnectedUnionsThatNoPathLeavesAndEnters) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    const size_t n = 2 + rng.below(8);
    const Edges after = random_edges(rng, n);
    const Reach reach = reach_of(after);
    std::set<std::vector<int>> expected;
    for (uint32_t bits = 1; bits < (1u << n); ++bits) {
      std::vector<int> atoms;
      for (size_t a = 0; a < n; ++a)
        if (bits >> a & 1) atoms.push_back(static_cast<int>(a));
      if (atoms.size() < 2 || !is_connected(after, atoms)) continue;
      bool convex = true;
      for (size_t x = 0; x < n; ++x) {
        if (bits >> x & 1) continue;
        bool enters = false, leaves = false;
        for (const int a : atoms) {
          leaves = leaves || reach.below[static_cast<size_t>(a)].has(x);
          enters = enters || reach.above[static_cast<size_t>(a)].has(x);
        }
        convex = convex && !(enters && leaves);
      }
      if (convex) expected.insert(atoms);
    }
    const Growth growth = grow_candidates(after, kAll, [](const auto&) { return Verdict::kTaken; });
    EXPECT_EQ(std::set<std::vector<int>>(growth.taken.begin(), growth.taken.end()), expected) << seed;
    EXPECT_EQ(growth.taken.size(), expected.size()) << "one is listed twice, seed " << seed;
  }
}

TEST(FusionCandidates, StopWhereTheJudgeOrTheBoundsSaySo) {
  Edges chain(10);
  for (int a = 0; a < 9; ++a) chain[static_cast<size_t>(a)] = {a + 1};
  const auto all = [](const auto&) { return Verdict::kTaken; };
  EXPECT_EQ(grow_candidates(chain, {3, 3, 1000}, all).taken.size(), 9u + 8u);
  EXPECT_EQ(grow_candidates(chain, {10, 3, 9}, all).complete, 2u);
  EXPECT_EQ(grow_candidates(chain, {10, 3, 1000}, all).complete, 10u);
  const auto long_ones = [](const auto& atoms) {
    return atoms.size() < 5 ? Verdict::kRefused : Verdict::kTaken;
  };
  EXPECT_EQ(grow_candidates(chain, {10, 2, 1000}, long_ones).taken.size(), 0u);
  EXPECT_EQ(grow_candidates(chain, {5, 3, 1000}, long_ones).taken.size(), 6u);
  const auto open = [](const auto& atoms) { return atoms.size() < 5 ? Verdict::kOpen : Verdict::kTaken; };
  EXPECT_EQ(grow_candidates(chain, {5, 0, 1000}, open).taken.size(), 6u);
  const auto never = [](const auto& atoms) {
    return std::count(atoms.begin(), atoms.end(), 4) ? Verdict::kNever : Verdict::kTaken;
  };
  EXPECT_EQ(grow_candidates(chain, {10, 3, 1000}, never).taken.size(), 6u + 10u);  // 0..3 and 5..9
}

TEST(FusionDp, EqualsBruteForceOnRandomGraphs) {
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    Rng rng(seed);
    const FusionProblem problem = random_problem(rng, 1 + rng.below(8));
    const FusionAnswer answer = solve(problem);
    ASSERT_TRUE(answer.found);
    expect_valid(problem, answer.candidates);
    double sum = 0;
    for (const int c : answer.candidates) sum += problem.candidates[static_cast<size_t>(c)].us;
    EXPECT_NEAR(sum, answer.us, 1e-9);
    const double best = brute_force(problem);
    EXPECT_NEAR(answer.us, best, 1e-9) << "seed " << seed;
    // A bound on the price keeps what is on it and finds nothing below it.
    EXPECT_TRUE(solve(problem, best).found);
    EXPECT_FALSE(solve(problem, best * 0.999).found);
  }
}

TEST(FusionDp, PiecesTogetherAreTheWhole) {
  size_t split_ones = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(1000 + seed);
    FusionProblem problem = random_problem(rng, 2 + rng.below(7));
    const size_t n = problem.size();
    std::erase_if(problem.candidates,
                  [&](const CandidateRegion& c) { return c.atoms.size() > 1 && rng.below(3); });
    const std::vector<FusionPiece> pieces = split(problem);
    split_ones += pieces.size() > 1;
    std::vector<std::vector<int>> regions;
    double us = 0;
    for (const FusionPiece& piece : pieces) {
      const FusionAnswer answer = solve(piece.problem);
      ASSERT_TRUE(answer.found);
      us += answer.us;
      for (const int c : answer.candidates)
        regions.push_back(
            problem.candidates[static_cast<size_t>(piece.candidates[static_cast<size_t>(c)])].atoms);
    }
    size_t atoms = 0;
    for (const auto& region : regions) atoms += region.size();
    EXPECT_EQ(atoms, n);
    EXPECT_TRUE(has_order(problem.after, regions)) << "seed " << seed;
    EXPECT_NEAR(us, brute_force(problem), 1e-9) << "seed " << seed;
  }
  EXPECT_GT(split_ones, 50u);
}

// Two regions, each fine by itself, wait for each other: their atoms are one piece, and only one of them is
// taken.
TEST(FusionDp, RegionsThatWaitForEachOtherAreOnePiece) {
  FusionProblem problem;
  problem.after = {{2, 4}, {3, 5}, {5}, {4}, {}, {}};  // {0, 4} and {1, 5}: 0 -> 2 -> 5, 1 -> 3 -> 4
  for (int a = 0; a < 6; ++a) problem.candidates.push_back({{a}, 1});
  problem.candidates.push_back({{0, 4}, 0.5});
  problem.candidates.push_back({{1, 5}, 0.4});
  const auto pieces = split(problem);
  EXPECT_EQ(pieces.size(), 1u);
  EXPECT_NEAR(solve(pieces[0].problem).us, brute_force(problem), 1e-9);
}

TEST(FusionDp, WhatMeetsABoundIsNotCalledAnAnswer) {
  Rng rng(5);
  const FusionProblem problem = random_problem(rng, 8);
  const FusionAnswer all = solve(problem);
  ASSERT_TRUE(all.found);
  ASSERT_GT(all.states, 3);
  const double any = std::numeric_limits<double>::infinity();
  const FusionAnswer cut = solve(problem, any, {.states = 2});
  EXPECT_FALSE(cut.found);
  EXPECT_GE(cut.states, 3);
  EXPECT_FALSE(solve(problem, any, {.looks = all.looks / 2}).found);
  EXPECT_TRUE(solve(problem, any, {.looks = all.looks}).found);
}

// Branches that have nothing to do with each other are done one after the other, not in every mixture.
TEST(FusionDp, StatesOfParallelChainsAddUp) {
  constexpr int kChains = 12, kLength = 8;
  FusionProblem problem;
  problem.after.resize(kChains * kLength + 1);
  const int last = kChains * kLength;
  for (int c = 0; c < kChains; ++c)
    for (int i = 0; i < kLength; ++i) {
      const int a = c * kLength + i;
      problem.after[static_cast<size_t>(a)].push_back(i + 1 < kLength ? a + 1 : last);
    }
  for (const auto& atoms :
       grow_candidates(problem.after, {3, 3, 1'000'000}, [](const auto&) { return Verdict::kTaken; }).taken)
    if (atoms.back() != last) problem.candidates.push_back({atoms, 1.5});
  for (int a = 0; a <= last; ++a) problem.candidates.push_back({{a}, 1});
  const FusionAnswer answer = solve(problem);
  ASSERT_TRUE(answer.found);
  expect_valid(problem, answer.candidates);
  EXPECT_LE(answer.states, last + 2);
}

}  // namespace
}  // namespace thrice::plan
