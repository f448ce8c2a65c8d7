// Fusion as a problem of sets alone: a partition of an acyclic graph's atoms into candidate regions, so that
// the regions have an order in which each comes after all it reads, at the least sum of prices.
#pragma once
#include <vector>

#include "plan/atom_set.h"

namespace thrice::plan {

struct CandidateRegion {
  std::vector<int> atoms;  // ascending; connected, and no path leaves them and comes back
  double us = 0;           // price, at least 0
};

// Atoms are numbered in topological order: edges go from a smaller number to a larger.
struct FusionProblem {
  std::vector<std::vector<int>> after;      // by atom: atoms that read what it makes, each once, ascending
  std::vector<CandidateRegion> candidates;  // each atom alone is one of them

  size_t size() const { return after.size(); }
};

// By atom: all atoms that can be reached from it, itself left out, and all from which it can be.
struct Reach {
  std::vector<AtomSet> below, above;
};
Reach reach_of(const std::vector<std::vector<int>>& after);

// A part of a problem that can be solved by itself.
struct FusionPiece {
  std::vector<int> atoms;       // of the whole, ascending; atom i of the part is atoms[i]
  std::vector<int> candidates;  // of the whole; candidate i of the part is candidates[i]
  FusionProblem problem;
};

// Splits where no candidate reaches across. Answers of the pieces together are an answer of the whole,
// whatever they are: where paths lead from one piece to another and back, both are one.
std::vector<FusionPiece> split(const FusionProblem& problem);

}  // namespace thrice::plan
