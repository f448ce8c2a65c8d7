// Would catch: an agent that proposes illegal or repeated schedules, never ends, or misses an optimum next to
// its best; a search space that draws what the family refuses; a budget that starves or feeds the wrong
// region.
#include <gtest/gtest.h>
#include <thrice/status.h>

#include <set>

#include "measure_fixture.h"
#include "tune/agent.h"
#include "tune/budget.h"
#include "tune/family_space.h"

namespace thrice::tune {
namespace {

// Two tactics: a 5 x 4 grid without its diagonal, and one with a single schedule.
class GridFamily : public test::TextFamily {
 public:
  GridFamily() : TextFamily("unused") {}
  artifact::Schedule default_schedule(const ir::Workload&, const std::vector<ir::Fact>&,
                                      const target::DeviceSpec&) const override {
    return {"text", "grid", {{"a", 1}, {"b", 8}}};
  }
  artifact::ScheduleSpace space(const ir::Workload&, const std::vector<ir::Fact>&,
                                const target::DeviceSpec&) const override {
    artifact::ScheduleSpace space;
    space.tactics = {{"text", "grid", {{"a", {1, 2, 4, 8, 16}}, {"b", {1, 2, 4, 8}}}}, {"text", "plain", {}}};
    return space;
  }
  family::Refusal illegal(const ir::Workload&, const artifact::Schedule& schedule,
                          const target::DeviceSpec&) const override {
    if (all_illegal) return "the test says so";
    if (schedule.tactic == "plain") return {};
    if (schedule.get("a") == schedule.get("b")) return "on the diagonal";
    return {};
  }
  bool all_illegal = false;
};
constexpr size_t kLegal = 5 * 4 - 4 + 1;

class Tune : public testing::Test {
 protected:
  GridFamily family;
  ir::Workload workload = test::unary_workload(ir::Op::relu);
  target::DeviceSpec device;
  std::vector<ir::Fact> facts = ir::facts_at(workload.graph, {{"s0", 10}});
  Space space() { return family_space(workload, family, facts, device); }
};

// A bowl over the grid with its bottom at a=8, b=2; `plain` is slow.
double time_of(const artifact::Schedule& s) {
  if (s.tactic == "plain") return 100;
  const double a = std::log2(static_cast<double>(s.get("a"))) - 3,
               b = std::log2(static_cast<double>(s.get("b"))) - 1;
  return 10 + a * a + b * b;
}
Told measured(const Space& space, const Point& point) {
  return {true, std::log(time_of(space.schedule(point)))};
}
AgentOptions seeded(uint64_t seed) {
  AgentOptions options;
  options.seed = seed;
  return options;
}
Point default_point(const Space& space) { return *space.point({"text", "grid", {{"a", 1}, {"b", 8}}}); }

TEST_F(Tune, TheSpaceHoldsLegalSchedulesOnly) {
  const Space s = space();
  EXPECT_EQ(s.enumerate(1000).size(), kLegal);
  EXPECT_EQ(s.enumerate(3).size(), 3u);
  Rng rng(1);
  std::set<std::string> drawn;
  for (int i = 0; i < 500; ++i) {
    const auto point = s.sample(rng);
    ASSERT_TRUE(point);
    EXPECT_TRUE(s.legal(*point));
    drawn.insert(s.schedule(*point).str());
    EXPECT_EQ(s.point(s.schedule(*point)), point);
  }
  EXPECT_EQ(drawn.size(), kLegal);
  family.all_illegal = true;
  EXPECT_FALSE(space().sample(rng, 50));
  EXPECT_TRUE(space().enumerate(1000).empty());
}

TEST_F(Tune, SchedulesOfOtherVersionsAreNoPoints) {
  const Space s = space();
  for (const char* text : {"text/grid a=3 b=1", "text/grid a=1", "text/gone a=1 b=1", "text/plain a=1"})
    EXPECT_FALSE(s.point(artifact::Schedule::parse(text))) << text;
  // The order of values does not matter; unused dimensions stand at 0.
  EXPECT_EQ(s.point(artifact::Schedule::parse("text/grid b=8 a=1")), default_point(s));
  EXPECT_EQ(*s.point(artifact::Schedule::parse("text/plain")), (Point{1, 0, 0}));
}

TEST_F(Tune, NeighboursDifferByOneStep) {
  const Space s = space();
  const auto around = [&](const char* text) {
    std::vector<std::string> found;
    for (const Point& n : s.neighbours(*s.point(artifact::Schedule::parse(text))))
      found.push_back(s.schedule(n).str());
    return found;
  };
  EXPECT_EQ(around("text/grid a=4 b=1"),
            (std::vector<std::string>{"text/grid a=2 b=1", "text/grid a=8 b=1", "text/grid a=4 b=2"}));
  // a=2 b=2 is illegal, and b has nothing above 8.
  EXPECT_EQ(around("text/grid a=1 b=8"),
            (std::vector<std::string>{"text/grid a=2 b=8", "text/grid a=1 b=4"}));
  EXPECT_EQ(s.variations(default_point(s)).size(), 3u + 2u);  // not a=8, not b=1
  EXPECT_EQ(s.variations(default_point(s), false).size(), 4u + 3u);
}

TEST_F(Tune, WhatIsToldIsNotAskedFor) {
  // As a run that goes on from stored trials: neighbours of the first are told later.
  for (const std::string& name : agent_names()) {
    const Space s = space();
    const auto agent = make_agent(name, s, seeded(7));
    std::set<Point> told;
    const auto tell = [&](const Point& point) {
      told.insert(point);
      agent->tell(point, measured(s, point));
    };
    tell(default_point(s));
    for (const Point& next : s.neighbours(default_point(s))) tell(next);
    for (int i = 0; i < 30; ++i)
      for (const Point& next : agent->ask(1))
        EXPECT_FALSE(told.count(next)) << name << " asks for " << s.schedule(next).str();
  }
}

TEST_F(Tune, EveryAgentAsksForEachLegalScheduleOnceAndEnds) {
  for (const std::string& name : agent_names()) {
    const Space s = space();
    const auto agent = make_agent(name, s, seeded(7));
    std::set<Point> asked;
    for (;;) {
      ASSERT_LE(asked.size(), 200u) << name << " does not end";
      const auto next = agent->ask(1);
      if (next.empty()) break;
      EXPECT_TRUE(s.legal(next[0])) << name << ": " << s.schedule(next[0]).str();
      EXPECT_TRUE(asked.insert(next[0]).second) << name << " asks again for " << s.schedule(next[0]).str();
      agent->tell(next[0], measured(s, next[0]));
      agent->learn();
    }
    EXPECT_EQ(asked.size(), kLegal) << name;
  }
}

TEST_F(Tune, AgentsAreDeterministicAndSurviveFailures) {
  for (const std::string& name : agent_names()) {
    std::vector<Point> runs[2];
    for (auto& run : runs) {
      const Space s = space();
      const auto agent = make_agent(name, s, seeded(11));
      for (int i = 0; i < 16; ++i)
        for (const Point& point : agent->ask(1)) {
          run.push_back(point);
          agent->tell(point, i % 3 == 1 ? Told{} : measured(s, point));  // a third did not build
        }
    }
    EXPECT_EQ(runs[0], runs[1]) << name;
    EXPECT_GE(runs[0].size(), 14u) << name;
  }
}

TEST_F(Tune, NoAgentNeedsAnythingToRun) {
  for (const std::string& name : agent_names()) {
    const Space s = space();
    const auto agent = make_agent(name, s, seeded(3));
    size_t trials = 0;
    for (std::vector<Point> next; !(next = agent->ask(4)).empty();)
      for (const Point& point : next) {
        agent->tell(point, {});
        ++trials;
      }
    EXPECT_EQ(trials, kLegal) << name;
  }
}

TEST_F(Tune, GreedyWalksDownhill) {
  const Space s = space();
  const auto agent = make_agent("greedy", s, seeded(3));
  agent->tell(default_point(s), measured(s, default_point(s)));
  int trials = 0;
  for (double best = 1e9; best > 10; ++trials) {
    ASSERT_LT(trials, 14) << "no better than chance";
    const auto next = agent->ask(1);
    ASSERT_FALSE(next.empty());
    best = std::min(best, time_of(s.schedule(next[0])));
    agent->tell(next[0], measured(s, next[0]));
  }
}

TEST_F(Tune, GreedyTriesRivalTacticsBeforeItClimbs) {
  const Space s = space();
  const auto agent = make_agent("greedy", s, seeded(3));
  agent->tell(default_point(s), measured(s, default_point(s)));
  bool rival = false;
  for (const Point& next : agent->ask(2)) rival = rival || s.schedule(next).tactic == "plain";
  EXPECT_TRUE(rival);
}

TEST_F(Tune, ATacticIsTriedFirstWhereItSays) {
  struct WithLibrary : GridFamily {
    artifact::ScheduleSpace space(const ir::Workload& w, const std::vector<ir::Fact>& facts,
                                  const target::DeviceSpec& d) const override {
      artifact::ScheduleSpace space = GridFamily::space(w, facts, d);
      space.tactics[1].parameters = {{"algorithm", {0, 1, 2}, 0}, {"other", {5, 6, 7}}};
      return space;
    }
  } library;
  const Space s = family_space(workload, library, facts, device);
  std::vector<std::string> firsts;
  for (const Point& first : s.firsts()) firsts.push_back(s.schedule(first).str());
  EXPECT_EQ(firsts, (std::vector<std::string>{"text/plain algorithm=0 other=6"}));  // a=4 b=4 is illegal
}

TEST_F(Tune, UnknownAgentsAreNamed) {
  const Space s = space();
  try {
    make_agent("oracle", s, seeded(1));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInvalidArgument);
    EXPECT_NE(std::string(e.what()).find("greedy"), std::string::npos);
  }
  EXPECT_NO_THROW(require_agent("random"));
}

TEST(Budget, GoesToTheLargestShareUntilItBringsNothing) {
  std::vector<Standing> s(3);
  s[0].model_share_us = 10;
  s[1].model_share_us = 40;
  s[2].model_share_us = 40;
  EXPECT_EQ(next_workload(s), 1);  // ties go to the first
  s[1].trials_without_gain = 6;    // its predicted gain is halved
  EXPECT_EQ(next_workload(s), 2);
  s[2].trials_without_gain = 18;
  EXPECT_EQ(next_workload(s), 1);  // 20 against 5 and 10
  s[1].exhausted = true;
  EXPECT_EQ(next_workload(s), 0);
  s[0].exhausted = s[2].exhausted = true;
  EXPECT_EQ(next_workload(s), -1);
  EXPECT_EQ(next_workload({}), -1);
}

}  // namespace
}  // namespace thrice::tune
