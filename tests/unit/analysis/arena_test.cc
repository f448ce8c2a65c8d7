// Catches offsets that let two tensors overlap while both are alive, and a lower bound that is none.
#include "analysis/arena.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace thrice::analysis {
namespace {

TEST(Arena, LiveTensorsNeverOverlap) {
  Rng rng(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<Interval> intervals;
    for (int i = 0; i < 40; ++i) {
      const int first = static_cast<int>(rng.below(20));
      intervals.push_back(
          {static_cast<int64_t>(rng.below(5000)), first, first + static_cast<int>(rng.below(5))});
    }
    const ArenaPlan plan = plan_arena(intervals);
    EXPECT_GE(plan.bytes, plan.lower_bound);
    for (size_t a = 0; a < intervals.size(); ++a)
      for (size_t b = a + 1; b < intervals.size(); ++b) {
        const bool together =
            intervals[a].first <= intervals[b].last && intervals[b].first <= intervals[a].last;
        const bool apart = plan.offsets[a] + intervals[a].bytes <= plan.offsets[b] ||
                           plan.offsets[b] + intervals[b].bytes <= plan.offsets[a];
        EXPECT_TRUE(!together || apart || intervals[a].bytes == 0 || intervals[b].bytes == 0);
      }
  }
}

}  // namespace
}  // namespace thrice::analysis
