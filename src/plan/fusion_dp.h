// The best partition of a fusion problem, by dynamic programming over what is done already.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "plan/fusion_problem.h"

namespace thrice::plan {

// Beyond so many states a piece is left to the greedy planner. A state takes some 10 to 100 us.
constexpr int64_t kMostStates = 20'000;

struct FusionAnswer {
  bool found = false;           // false: more states than the bound, or nothing below `at_most`
  std::vector<int> candidates;  // chosen, in an order in which they can run
  double us = 0;                // sum of their prices
  int64_t states = 0;           // that were reached
};

// States are downsets D (all that an atom of D reads is in D); f[D + R] = min f[D] + us(R) over candidates R
// that read nothing outside D + R. Looked at in the order of f[D] + bound(D), where bound is what the atoms
// outside D cost at least; a state above `at_most` is dropped. Of the orders in which one and the same
// partition can run only some are followed: those that finish first what the region of one ready atom may
// wait for. Candidate `without` (-1: none) is not taken.
FusionAnswer solve(const FusionProblem& problem, double at_most = std::numeric_limits<double>::infinity(),
                   int64_t most_states = kMostStates, int without = -1);

}  // namespace thrice::plan
