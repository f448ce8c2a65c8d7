// The best partition of a fusion problem, by dynamic programming over what is done already.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "plan/fusion_problem.h"

namespace thrice::plan {

// Beyond these a piece is left to the greedy planner.
struct SearchBounds {
  int64_t states = 100'000;
  int64_t looks = std::numeric_limits<int64_t>::max();  // at candidates
};

struct FusionAnswer {
  bool found = false;           // false: a bound was met, or nothing is below `at_most`
  std::vector<int> candidates;  // chosen, in an order in which they can run
  double us = 0;                // sum of their prices
  int64_t states = 0;           // that were reached
  int64_t looks = 0;            // at candidates, for all of them: what the time goes to
};

// States are downsets D (all that an atom of D reads is in D); f[D + R] = min f[D] + us(R) over candidates R
// that read nothing outside D + R. Looked at in the order of f[D] + bound(D), where bound is what the atoms
// outside D cost at least; a state above `at_most` is dropped. Of the orders in which one and the same
// partition can run only some are followed: those that finish first what the region of one ready atom may
// wait for. Candidate `without` (-1: none) is not taken.
FusionAnswer solve(const FusionProblem& problem, double at_most = std::numeric_limits<double>::infinity(),
                   const SearchBounds& bounds = {}, int without = -1);

}  // namespace thrice::plan
