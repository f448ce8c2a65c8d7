// Would catch: an agent that proposes illegal or repeated schedules, never ends, or misses an optimum next to
// its best; a search space that draws what the family refuses; a budget that starves or feeds the wrong
// region.
#include <gtest/gtest.h>
#include <thrice/status.h>

#include <set>

#include "measure_fixture.h"
#include "tune/agent.h"
#include "tune/budget.h"

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
  LegalSpace space() { return {workload, family, ir::facts_at(workload.graph, {{"s0", 10}}), device}; }
};

// A bowl over the grid with its bottom at a=8, b=2; `plain` is slow.
double time_of(const artifact::Schedule& s) {
  if (s.tactic == "plain") return 100;
  const double a = std::log2(static_cast<double>(s.get("a"))) - 3,
               b = std::log2(static_cast<double>(s.get("b"))) - 1;
  return 10 + a * a + b * b;
}
Trial measured(const artifact::Schedule& schedule) {
  Trial trial{schedule, {}};
  trial.measurement.outcome = artifact::Outcome::kOk;
  trial.measurement.time_us = time_of(schedule);
  trial.measurement.error = 0;
  trial.measurement.error_limit = 1;
  return trial;
}

TEST_F(Tune, TheSpaceHoldsLegalSchedulesOnly) {
  const LegalSpace s = space();
  EXPECT_EQ(s.enumerate(1000).size(), kLegal);
  EXPECT_EQ(s.enumerate(3).size(), 3u);
  Rng rng(1);
  std::set<std::string> drawn;
  for (int i = 0; i < 500; ++i) {
    const auto schedule = s.sample(rng);
    ASSERT_TRUE(schedule);
    EXPECT_TRUE(s.is_legal(*schedule)) << schedule->str();
    drawn.insert(schedule->str());
  }
  EXPECT_EQ(drawn.size(), kLegal);
  family.all_illegal = true;
  EXPECT_FALSE(space().sample(rng, 50));
  EXPECT_TRUE(space().enumerate(1000).empty());
}

TEST_F(Tune, NeighboursDifferByOneStep) {
  std::vector<std::string> found;
  for (const auto& n : space().neighbours({"text", "grid", {{"a", 4}, {"b", 1}}})) found.push_back(n.str());
  EXPECT_EQ(found, (std::vector<std::string>{"text/grid a=2 b=1", "text/grid a=8 b=1", "text/grid a=4 b=2"}));
  // a=2 b=2 is illegal, and b has nothing above 8.
  found.clear();
  for (const auto& n : space().neighbours({"text", "grid", {{"a", 1}, {"b", 8}}})) found.push_back(n.str());
  EXPECT_EQ(found, (std::vector<std::string>{"text/grid a=2 b=8", "text/grid a=1 b=4"}));
}

TEST_F(Tune, WhatIsToldIsNotAskedFor) {
  // As a run that goes on from stored trials: neighbours of the first are told later.
  for (const std::string& name : agent_names()) {
    const LegalSpace s = space();
    const auto agent = make_agent(name, s, 7);
    std::set<std::string> told;
    const auto tell = [&](const artifact::Schedule& schedule) {
      told.insert(schedule.str());
      agent->tell(measured(schedule));
    };
    tell(s.default_schedule());
    for (const artifact::Schedule& next : s.neighbours(s.default_schedule())) tell(next);
    for (int i = 0; i < 30; ++i)
      for (const artifact::Schedule& next : agent->ask(1))
        EXPECT_FALSE(told.count(next.str())) << name << " asks for " << next.str();
  }
}

TEST_F(Tune, EveryAgentAsksForEachLegalScheduleAtMostOnceAndEnds) {
  for (const std::string& name : agent_names()) {
    const LegalSpace s = space();
    const auto agent = make_agent(name, s, 7);
    std::set<std::string> asked;
    size_t trials = 0;
    for (;; ++trials) {
      ASSERT_LE(trials, 200u) << name << " does not end";
      const auto next = agent->ask(1);
      if (next.empty()) break;
      EXPECT_TRUE(s.is_legal(next[0])) << name << ": " << next[0].str();
      EXPECT_TRUE(asked.insert(next[0].str()).second) << name << " asks again for " << next[0].str();
      agent->tell(measured(next[0]));
      agent->learn();
    }
    EXPECT_GE(trials, kLegal - 2) << name;  // random draws may miss one
  }
}

TEST_F(Tune, AgentsAreDeterministicAndSurviveFailures) {
  for (const std::string& name : agent_names()) {
    std::vector<std::string> runs[2];
    for (auto& run : runs) {
      const LegalSpace s = space();
      const auto agent = make_agent(name, s, 11);
      for (int i = 0; i < 10; ++i)
        for (const auto& schedule : agent->ask(1)) {
          run.push_back(schedule.str());
          Trial trial = measured(schedule);
          if (i % 3 == 1) trial.measurement = {};  // did not build
          agent->tell(trial);
        }
    }
    EXPECT_EQ(runs[0], runs[1]) << name;
    EXPECT_GE(runs[0].size(), 8u) << name;
  }
}

TEST_F(Tune, GreedyWalksDownhill) {
  const LegalSpace s = space();
  const auto agent = make_agent("greedy", s, 3);
  agent->tell(measured(s.default_schedule()));
  int trials = 0;
  for (double best = 1e9; best > 10; ++trials) {
    ASSERT_LT(trials, 14) << "no better than chance";
    const auto next = agent->ask(1);
    ASSERT_FALSE(next.empty());
    best = std::min(best, time_of(next[0]));
    agent->tell(measured(next[0]));
  }
}

TEST_F(Tune, GreedyTriesRivalTacticsBeforeItClimbs) {
  const LegalSpace s = space();
  const auto agent = make_agent("greedy", s, 3);
  agent->tell(measured(s.default_schedule()));
  const auto next = agent->ask(1);
  ASSERT_FALSE(next.empty());
  EXPECT_EQ(next[0].tactic, "plain");
}

TEST_F(Tune, GreedyTriesTheMiddleOrWhatATacticSaysFirst) {
  struct WithLibrary : GridFamily {
    artifact::ScheduleSpace space(const ir::Workload& w, const std::vector<ir::Fact>& facts,
                                  const target::DeviceSpec& d) const override {
      artifact::ScheduleSpace space = GridFamily::space(w, facts, d);
      space.tactics[1].parameters = {{"algorithm", {0, 1, 2}, 0}, {"other", {5, 6, 7}}};
      return space;
    }
  } library;
  const LegalSpace s{workload, library, ir::facts_at(workload.graph, {{"s0", 10}}), device};
  const auto agent = make_agent("greedy", s, 3);
  agent->tell(measured(s.default_schedule()));
  const auto next = agent->ask(1);
  ASSERT_FALSE(next.empty());
  EXPECT_EQ(next[0].str(), "text/plain algorithm=0 other=6");
}

TEST_F(Tune, UnknownAgentsAreNamed) {
  const LegalSpace s = space();
  try {
    make_agent("oracle", s, 1);
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
