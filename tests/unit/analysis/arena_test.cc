// Catches offsets that let two tensors overlap while both are alive, a lower bound that is none, and an arena
// larger than it need be where few tensors are alive.
#include "analysis/arena.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace thrice::analysis {
namespace {

bool together(const Interval& a, const Interval& b) { return a.first <= b.last && b.first <= a.last; }

void expect_valid(const std::vector<Interval>& intervals, const ArenaPlan& plan) {
  EXPECT_GE(plan.bytes, plan.lower_bound);
  for (size_t a = 0; a < intervals.size(); ++a) {
    EXPECT_LE(plan.offsets[a] + intervals[a].bytes, plan.bytes);
    EXPECT_EQ(plan.offsets[a] % 256, 0);
    for (size_t b = a + 1; b < intervals.size(); ++b) {
      const bool apart = plan.offsets[a] + intervals[a].bytes <= plan.offsets[b] ||
                         plan.offsets[b] + intervals[b].bytes <= plan.offsets[a];
      EXPECT_TRUE(!together(intervals[a], intervals[b]) || apart || intervals[a].bytes == 0 ||
                  intervals[b].bytes == 0);
    }
  }
}

std::vector<Interval> random_intervals(Rng& rng, int count, int64_t most, int moments) {
  std::vector<Interval> intervals;
  for (int i = 0; i < count; ++i) {
    const int first = static_cast<int>(rng.below(static_cast<uint64_t>(moments)));
    intervals.push_back({static_cast<int64_t>(rng.below(static_cast<uint64_t>(most))), first,
                         first + static_cast<int>(rng.below(5))});
  }
  return intervals;
}

TEST(Arena, LiveTensorsNeverOverlap) {
  Rng rng(7);
  for (int round = 0; round < 50; ++round) {
    const std::vector<Interval> intervals = random_intervals(rng, 40, 5000, 20);
    expect_valid(intervals, plan_arena(intervals));
  }
}

// Every offset in units, for all tensors: knows nothing of orders.
int64_t brute_force(const std::vector<Interval>& intervals, std::vector<int64_t>& at, size_t i,
                    int64_t best) {
  if (i == intervals.size()) {
    int64_t end = 0;
    for (size_t k = 0; k < i; ++k) end = std::max(end, at[k] + intervals[k].bytes);
    return std::min(best, end);
  }
  for (at[i] = 0; at[i] + intervals[i].bytes < best; ++at[i]) {
    bool is_free = true;
    for (size_t k = 0; k < i && is_free; ++k)
      is_free = !together(intervals[i], intervals[k]) || at[i] + intervals[i].bytes <= at[k] ||
                at[k] + intervals[k].bytes <= at[i];
    if (is_free) best = brute_force(intervals, at, i + 1, best);
  }
  return best;
}

TEST(Arena, IsAsSmallAsBruteForceFindsIt) {
  Rng rng(3);
  for (int round = 0; round < 400; ++round) {
    std::vector<Interval> intervals = random_intervals(rng, 3 + static_cast<int>(rng.below(4)), 4, 6);
    for (Interval& interval : intervals) interval.bytes += 1;
    std::vector<Interval> bytes = intervals;
    for (Interval& interval : bytes) interval.bytes *= 256;
    const ArenaPlan plan = plan_arena(bytes);
    expect_valid(bytes, plan);
    EXPECT_TRUE(plan.is_optimal);
    std::vector<int64_t> at(intervals.size());
    int64_t sum = 1;
    for (const Interval& interval : intervals) sum += interval.bytes;
    EXPECT_EQ(plan.bytes, 256 * brute_force(intervals, at, 0, sum)) << "round " << round;
  }
}

// Twelve are searched to the end. Arenas above the lower bound are rare (2 of 600 000 drawn ones were).
TEST(Arena, SaysThatNoneIsSmallerWhereTheBoundCannotBeReached) {
  const std::vector<Interval> eight{{3, 2, 2}, {1, 2, 8}, {1, 7, 10},  {2, 5, 5},
                                    {2, 9, 9}, {2, 4, 9}, {3, 10, 10}, {3, 2, 11}};
  const std::vector<Interval> twelve{{1, 9, 10}, {7, 1, 2},  {5, 10, 11}, {3, 2, 9},   {2, 0, 4},  {2, 0, 6},
                                     {7, 5, 5},  {6, 3, 11}, {2, 3, 4},   {1, 10, 10}, {4, 7, 11}, {4, 6, 7}};
  const std::pair<std::vector<Interval>, int64_t> cases[] = {{eight, 9}, {twelve, 19}};
  for (auto [intervals, least] : cases) {
    std::vector<int64_t> at(intervals.size());
    EXPECT_TRUE(intervals.size() > 8 || brute_force(intervals, at, 0, 20) == least);
    for (Interval& interval : intervals) interval.bytes *= 256;
    const ArenaPlan plan = plan_arena(intervals);
    expect_valid(intervals, plan);
    EXPECT_TRUE(plan.is_optimal);
    EXPECT_EQ(plan.bytes, least * 256);
    EXPECT_EQ(plan.lower_bound, (least - 1) * 256);
  }
}

}  // namespace
}  // namespace thrice::analysis
