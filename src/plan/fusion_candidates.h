// Which unions of atoms may become one region: all that are connected and that no path leaves and enters
// again, grown atom by atom.
#pragma once
#include <functional>
#include <vector>

#include "plan/fusion_problem.h"

namespace thrice::plan {

enum class Verdict {
  kTaken,    // a candidate
  kRefused,  // none itself
  kOpen,     // none itself, and that says nothing of larger ones: a view at the rim
  kNever,    // none, nor is any union that holds it
  kStop,     // the judge has had enough: what is larger is not asked for
};

struct GrowthBounds {
  size_t most_atoms = 16;  // of a union
  int most_refused = 3;    // refused one after another on the way to a union; above, it is not asked for
  size_t most_unions = 200'000;  // looked at in the whole graph, small ones first
};

struct Growth {
  std::vector<std::vector<int>> taken;  // ascending atoms; single atoms are not asked for and not listed
  size_t complete = 0;                  // every union of so many atoms (within `most_refused`) was looked at
};

// Each such union of two or more atoms can be made by adding one atom at a time so that all on the way are
// such unions too (a source or a sink that does not hold it together can be left away), so none is missed.
Growth grow_candidates(const std::vector<std::vector<int>>& after, const GrowthBounds& bounds,
                       const std::function<Verdict(const std::vector<int>&)>& judge);

}  // namespace thrice::plan
