// The planner "dp": which groups run as one region, by the least sum of prices.
#pragma once
#include <string>
#include <vector>

#include "artifact/decision.h"
#include "plan/cost_model.h"
#include "plan/grouping.h"

namespace thrice::plan {

struct FusionSummary {
  double us = 0, greedy_us = 0;          // sums of prices: of the answer, and of the greedy planner's
  int64_t pieces = 0, exact_pieces = 0;  // parts of more than one choice that were decided by themselves
  int64_t candidates = 0;                // regions that could be taken
  int64_t states = 0, looks = 0;         // of all searches (FusionAnswer)
  size_t judged = 0;                     // distinct regions shown to the families
  std::vector<artifact::FusionDecision> decisions;

  FusionSummary& operator+=(FusionSummary other);  // of a body
};

// Of a graph: it is planned in seconds, whatever it is. A look takes some 30 ns.
constexpr int64_t kMostLooksInAll = 80'000'000;
constexpr size_t kMostAtoms = 20'000;  // of a graph; larger ones are left to the greedy planner

// `groups`: operators, to be merged in place. `greedy`: the greedy planner's merges of the same, which are
// candidates too: the answer is never above them, and where the search of a piece is cut off, it is they.
FusionSummary fuse_exactly(const ir::Graph& graph, const analysis::Placement& placement,
                           const std::vector<ir::Fact>& facts, CostModel& costs, const Grouping& greedy,
                           Grouping& groups);

}  // namespace thrice::plan
