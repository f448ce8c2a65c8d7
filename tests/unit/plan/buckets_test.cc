// Would catch: a split of lengths that is not the cheapest, a kernel more that does not earn its keep, tuning
// points that miss the longest length.
#include "plan/buckets.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/rng.h"

namespace thrice::plan {
namespace {

// Every assignment of choices to lengths.
double brute_force(const std::vector<LengthShare>& lengths, const std::vector<LengthCost>& choices,
                   double per_range_us) {
  size_t all = 1;
  for (size_t i = 0; i < lengths.size(); ++i) all *= choices.size();
  double least = std::numeric_limits<double>::infinity();
  for (size_t code = 0; code < all; ++code) {
    double cost = 0;
    size_t rest = code, before = 0;
    for (size_t i = 0; i < lengths.size(); ++i, rest /= choices.size()) {
      const size_t choice = rest % choices.size();
      cost += lengths[i].share * choices[choice].at(lengths[i].length);
      if (i > 0 && choice != before) cost += per_range_us;
      before = choice;
    }
    least = std::min(least, cost);
  }
  return least;
}

TEST(Buckets, SplitIsTheCheapestOfAll) {
  Rng rng(5);
  for (int round = 0; round < 300; ++round) {
    const size_t n = 1 + rng.below(7), k = 1 + rng.below(3);
    std::vector<LengthShare> lengths;
    int64_t at = 0;
    for (size_t i = 0; i < n; ++i)
      lengths.push_back({at += 1 + static_cast<int64_t>(rng.below(40)), rng.uniform()});
    std::vector<LengthCost> choices(k);
    for (LengthCost& c : choices)
      for (const LengthShare& l : lengths) c.us.emplace_back(l.length, 100 * rng.uniform());
    const double per_range = round % 3 == 0 ? 0 : 20 * rng.uniform();
    const std::vector<LengthRange> ranges = split_lengths(lengths, choices, per_range);
    ASSERT_FALSE(ranges.empty());
    EXPECT_EQ(ranges.back().up_to, lengths.back().length);
    const double cost =
        expected_us(lengths, choices, ranges) + per_range * static_cast<double>(ranges.size() - 1);
    EXPECT_NEAR(cost, brute_force(lengths, choices, per_range), 1e-9) << "round " << round;
  }
}

TEST(Buckets, AKernelMoreMustEarnItsKeep) {
  std::vector<LengthShare> lengths;
  for (int64_t l = 1; l <= 100; ++l) lengths.push_back({l, 0.01});
  const std::vector<LengthCost> choices{{{{1, 10}, {100, 110}}}, {{{1, 40}, {100, 80}}}};  // cross at 50
  EXPECT_EQ(split_lengths(lengths, choices, 1), (std::vector<LengthRange>{{50, 0}, {100, 1}}));
  EXPECT_EQ(split_lengths(lengths, choices, 1000).size(), 1u);
  EXPECT_TRUE(split_lengths({}, choices, 1).empty());
}

TEST(Buckets, CostsAreLinesThroughWhatWasTimed) {
  const LengthCost cost{{{10, 20}, {20, 40}, {40, 50}}};
  EXPECT_DOUBLE_EQ(cost.at(10), 20);
  EXPECT_DOUBLE_EQ(cost.at(15), 30);
  EXPECT_DOUBLE_EQ(cost.at(30), 45);
  EXPECT_DOUBLE_EQ(cost.at(60), 60);
  EXPECT_DOUBLE_EQ(cost.at(1), 2);
  const LengthCost once{{{10, 20}}};
  EXPECT_DOUBLE_EQ(once.at(500), 20);
}

TEST(Buckets, PointsHoldEqualWork) {
  std::vector<LengthShare> even;
  for (int64_t l = 1; l <= 512; ++l) even.push_back({l, 1.0 / 512});
  EXPECT_EQ(tuning_points(even, 4), (std::vector<int64_t>{256, 362, 444, 512}));
  EXPECT_EQ(tuning_points(even, 1), (std::vector<int64_t>{512}));
  EXPECT_EQ(tuning_points({{7, 1}}, 4), (std::vector<int64_t>{7}));
  EXPECT_EQ(tuning_points({{1, 0.99}, {1000, 0.01}}, 3).back(), 1000);
}

}  // namespace
}  // namespace thrice::plan
