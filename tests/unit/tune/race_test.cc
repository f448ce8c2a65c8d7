// Would catch a race of tactics that keeps a slow one, spends trials on one beyond its rung, or never ends.
#include <gtest/gtest.h>

#include <algorithm>

#include "tune/agent.h"

namespace thrice::tune {
namespace {

TEST(Race, HalvesTacticsByTheirBest) {
  artifact::ScheduleSpace described;
  for (const char* tactic : {"a", "b", "c", "d"})
    described.tactics.push_back({"f", tactic, {{"x", {1, 2, 4, 8, 16, 32}}, {"y", {1, 2, 3, 4, 5, 6}}}});
  const Space space(described, [](const artifact::Schedule&) { return true; });
  const auto agent = make_agent("actor_critic", space, {});
  std::vector<int> trials(4, 0);
  for (int i = 0; i < 4 + 4; ++i) {
    const std::vector<Point> asked = agent->ask(1);
    ASSERT_EQ(asked.size(), 1u);
    ++trials[asked[0][0]];
    agent->tell(asked[0], {true, std::abs(asked[0][0] - 2.1)});  // c, then d
  }
  EXPECT_EQ(trials, (std::vector<int>{1, 1, 3, 3}));
}

}  // namespace
}  // namespace thrice::tune
