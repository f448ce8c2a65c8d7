// Would catch: a rule-chosen schedule that fails and ends the run although another tactic is right; one that
// takes its place without passing the full gate, or without a word; a failed one that a later run takes
// again.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "flow/tuning.h"
#include "measure_fixture.h"

namespace thrice::flow {
namespace {

using artifact::Outcome;
using artifact::Schedule;

constexpr const char* kHonest = "if (i < n) y[i] = x[i] > 0 ? x[i] : x[i] != x[i] ? x[i] : 0;";
// Right on what screening draws, wrong on the outliers of the full gate.
constexpr const char* kScreensWell =
    "if (i < n) y[i] = x[i] > 50 ? 50 : x[i] > 0 ? x[i] : x[i] != x[i] ? x[i] : 0;";
constexpr const char* kWrong = "if (i < n) y[i] = 1;";

// relu with one tactic for each text, in this order; the first is the rule-chosen one.
class Tactics : public test::TextFamily {
 public:
  explicit Tactics(std::vector<std::string> bodies) : TextFamily(""), bodies_(std::move(bodies)) {}
  static Schedule schedule(size_t tactic) { return {"text", "t" + std::to_string(tactic), {{"a", 1}}}; }
  Schedule default_schedule(const ir::Workload&, const std::vector<ir::Fact>&,
                            const target::DeviceSpec&) const override {
    return schedule(0);
  }
  artifact::ScheduleSpace space(const ir::Workload&, const std::vector<ir::Fact>&,
                                const target::DeviceSpec&) const override {
    artifact::ScheduleSpace space;
    for (size_t t = 0; t < bodies_.size(); ++t)
      space.tactics.push_back({"text", "t" + std::to_string(t), {{"a", {1}}}});
    return space;
  }
  family::ProgramText emit(const ir::Workload&, const Schedule& s, const target::DeviceSpec&) const override {
    return {test::kernel_text(bodies_[static_cast<size_t>(std::stoi(s.tactic.substr(1)))]), {"k"}};
  }

 private:
  std::vector<std::string> bodies_;
};

class StandIns : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      device = backend::open_device("opencl:0");
    } catch (const Error& error) {
      GTEST_SKIP() << "skipped: " << error.what();
    }
    const std::string folder = ::testing::TempDir() + "/stand_ins";
    std::filesystem::remove_all(folder);
    store = std::make_unique<store::Store>(folder + "/store.sqlite");
    runner = std::make_unique<measure::TrialRunner>(device, std::make_shared<jit::KernelCache>(device, ""));
    planned.workload = test::unary_workload(ir::Op::relu);
    planned.facts = ir::facts_at(planned.workload.graph, {{"s0", 1000}});
    planned.schedule = Tactics::schedule(0);
    planned.uses = {"Relu_7"};
  }
  // Defaults and the full gate, as a run without tuning.
  void run(const Tactics& family) {
    planned.family = &family;
    results.clear();
    notes.clear();
    trials = 0;
    TuningContext c;
    c.device = device;
    c.runner = runner.get();
    c.store = store.get();
    c.environment = store->put_environment("{}");
    c.settings = &settings;
    c.listener = &listener;
    c.results = &results;
    c.trials = &trials;
    const std::map<std::string, plan::PlannedWorkload> workloads{{planned.workload.hash, planned}};
    measure_defaults(c, workloads, "build and check");
    confirm(c, workloads, notes);
    if (!tuned().note.empty()) notes.push_back(tuned().note);
  }
  const Tuned& tuned() const { return results.at(planned.workload.hash); }

  backend::DevicePtr device;
  std::unique_ptr<store::Store> store;
  std::unique_ptr<measure::TrialRunner> runner;
  plan::PlannedWorkload planned;
  Settings settings;
  Listener listener;
  std::map<std::string, Tuned> results;
  std::vector<std::string> notes;
  int64_t trials = 0;
};

TEST_F(StandIns, AWrongDefaultGivesWayToTheNextTactic) {
  const Tactics family({kWrong, "this is no kernel", kHonest});
  run(family);
  EXPECT_EQ(tuned().schedule, Tactics::schedule(2));
  EXPECT_EQ(tuned().default_schedule, Tactics::schedule(2));
  EXPECT_EQ(tuned().by_default.outcome, Outcome::kOk);
  EXPECT_GT(tuned().best.time_us, 0);
  ASSERT_EQ(notes.size(), 1u);
  for (const char* word : {"Relu_7", "text/t0", "wrong", "text/t2"})
    EXPECT_NE(notes[0].find(word), std::string::npos) << notes[0];
}

TEST_F(StandIns, ADefaultThatFailsTheFullGateIsNeverReleasedNorTriedAgain) {
  const Tactics family({kScreensWell, kHonest});
  run(family);
  EXPECT_EQ(tuned().schedule, Tactics::schedule(1));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("not the full gate"), std::string::npos) << notes[0];
  EXPECT_NE(notes[0].find("'text/t1 a=1' is used"), std::string::npos) << notes[0];
  EXPECT_LE(tuned().best.error, tuned().best.error_limit);

  run(family);  // the store knows
  EXPECT_EQ(tuned().default_schedule, Tactics::schedule(1));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("takes its place"), std::string::npos) << notes[0];
  EXPECT_EQ(trials, 1) << "the stand-in had no screening yet";
  run(family);
  EXPECT_EQ(trials, 0) << "now it has";
  EXPECT_EQ(tuned().schedule, Tactics::schedule(1));
}

TEST_F(StandIns, AStandInPassesTheFullGateOrTheNextOneDoes) {
  const Tactics family({kWrong, kScreensWell, kHonest});
  run(family);
  EXPECT_EQ(tuned().schedule, Tactics::schedule(2));
  EXPECT_EQ(notes.size(), 2u);
}

TEST_F(StandIns, WhereNothingIsRightTheRunEnds) {
  const Tactics wrong({kWrong, kWrong});
  try {
    run(wrong);
    ADD_FAILURE() << "something wrong was taken: " << tuned().schedule.str();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kWrongResult);
    EXPECT_NE(std::string(error.what()).find("Relu_7"), std::string::npos) << error.what();
  }
  const Tactics screens({kScreensWell, kScreensWell});
  EXPECT_THROW(run(screens), Error);
}

}  // namespace
}  // namespace thrice::flow
