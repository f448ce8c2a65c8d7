// Catches: a front that misses a faster choice for some amount of memory, or holds one that is beaten; bytes
// or times that are not those of the choices named; rounding that lets a point look smaller than it is.
#include "analysis/memory_front.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"

namespace thrice::analysis {
namespace {

using Regions = std::vector<std::vector<RegionChoice>>;

Regions random_regions(Rng& rng, size_t count, uint64_t choices, uint64_t bytes) {
  Regions regions(count);
  for (auto& region : regions)
    for (uint64_t c = 1 + rng.below(choices); c > 0; --c)
      region.push_back({static_cast<double>(1 + rng.below(50)), static_cast<int64_t>(rng.below(bytes)) - 2,
                        static_cast<int64_t>(rng.below(bytes))});
  return regions;
}

FrontPoint point_of(const Regions& regions, int64_t floor, const std::vector<size_t>& choices) {
  FrontPoint point{0, 0, choices};
  for (size_t r = 0; r < regions.size(); ++r) {
    point.bytes += regions[r][choices[r]].kept;
    point.time += regions[r][choices[r]].time;
    floor = std::max(floor, regions[r][choices[r]].peak);
  }
  point.bytes += floor;
  return point;
}

void all_points(const Regions& regions, int64_t floor, std::vector<size_t>& choices,
                std::vector<FrontPoint>& out) {
  if (choices.size() == regions.size()) {
    out.push_back(point_of(regions, floor, choices));
    return;
  }
  for (size_t c = 0; c < regions[choices.size()].size(); ++c) {
    choices.push_back(c);
    all_points(regions, floor, choices, out);
    choices.pop_back();
  }
}

void expect_true_and_ordered(const Regions& regions, int64_t floor, const MemoryFront& front) {
  for (size_t i = 0; i < front.points.size(); ++i) {
    const FrontPoint& point = front.points[i];
    ASSERT_EQ(point.choices.size(), regions.size());
    const FrontPoint counted = point_of(regions, floor, point.choices);
    EXPECT_EQ(point.bytes, counted.bytes);
    EXPECT_DOUBLE_EQ(point.time, counted.time);
    if (i == 0) continue;
    EXPECT_GT(point.bytes, front.points[i - 1].bytes);
    EXPECT_LT(point.time, front.points[i - 1].time);
  }
}

TEST(MemoryFront, EqualsBruteForce) {
  Rng rng(29);
  size_t most = 0;
  for (int round = 0; round < 500; ++round) {
    const Regions regions = random_regions(rng, 1 + rng.below(6), 4, 30);
    const auto floor = static_cast<int64_t>(rng.below(15));
    const MemoryFront front = memory_front(regions, floor);
    EXPECT_TRUE(front.is_exact);
    expect_true_and_ordered(regions, floor, front);
    std::vector<FrontPoint> all;
    std::vector<size_t> choices;
    all_points(regions, floor, choices, all);
    for (const FrontPoint& any : all) {  // no point of all is beyond the front
      const auto it = std::find_if(front.points.begin(), front.points.end(), [&](const FrontPoint& p) {
        return p.bytes <= any.bytes && p.time <= any.time;
      });
      EXPECT_NE(it, front.points.end()) << "round " << round << ": " << any.bytes << " " << any.time;
    }
    most = std::max(most, front.points.size());
  }
  EXPECT_GT(most, 5u);
}

TEST(MemoryFront, RoundsUpWhereThereAreTooManyStatesAndSaysSo) {
  Rng rng(31);
  int rounded = 0;
  for (int round = 0; round < 30; ++round) {
    Regions regions(7);
    for (auto& region : regions)
      for (int64_t c = 0; c < 4; ++c)  // less time takes more memory
        region.push_back({static_cast<double>(50 - 10 * c + static_cast<int64_t>(rng.below(9))),
                          20'000 * c + static_cast<int64_t>(rng.below(9'000)),
                          static_cast<int64_t>(rng.below(100'000))});
    const MemoryFront exact = memory_front(regions, 0, 1'000'000), front = memory_front(regions, 0, 50);
    EXPECT_TRUE(exact.is_exact);
    EXPECT_EQ(front.is_exact, front.step == 0);
    expect_true_and_ordered(regions, 0, front);
    rounded += !front.is_exact;
    // Near to the best: within what was rounded, for each region once in both sums.
    for (const FrontPoint& best : exact.points)
      EXPECT_TRUE(std::any_of(front.points.begin(), front.points.end(), [&](const FrontPoint& p) {
        return p.time <= best.time && p.bytes <= best.bytes + 2 * 7 * front.step;
      }));
  }
  EXPECT_GT(rounded, 10);
}

TEST(MemoryFront, ARegionWithoutAChoiceLeavesNone) {
  EXPECT_TRUE(memory_front({{}}, 5).points.empty());
  const MemoryFront nothing = memory_front({}, 5);
  ASSERT_EQ(nothing.points.size(), 1u);
  EXPECT_EQ(nothing.points[0].bytes, 5);
}

}  // namespace
}  // namespace thrice::analysis
