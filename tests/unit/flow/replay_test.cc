// Would catch: a replay that needs a device, invents measurements, ignores its limits, or gives another
// answer the second time; and a search that finds nothing in a space measured on a real card.
#include "flow/replay.h"

#include <gtest/gtest.h>
#include <thrice/status.h>

#include <filesystem>

#include "store/trial_log.h"

namespace thrice::flow {
namespace {

ReplayReport replayed(const std::string& path, int64_t trials, const std::string& agent = "greedy") {
  Settings settings;
  settings.agent = agent;
  settings.max_trials = trials;
  return replay(path, settings, {});
}

TEST(Replay, ASpaceOfARealCard) {
  const std::string path = std::string(THRICE_DATA_DIR) + "/spaces/convolution_A100.csv";
  for (const char* agent : {"greedy", "random"}) {
    const ReplayReport r = replayed(path, 100, agent);
    ASSERT_EQ(r.workloads.size(), 1u);
    const ReplayedWorkload& w = r.workloads[0];
    EXPECT_EQ(r.trials, 100);
    EXPECT_EQ(w.trials, 100);
    EXPECT_GT(w.recorded, 1000);
    EXPECT_LT(w.chosen_us, 0.6 * w.default_us) << agent;
    EXPECT_GE(w.chosen_us, w.best_us);
    EXPECT_EQ(r.to_json(), replayed(path, 100, agent).to_json());
  }
  EXPECT_EQ(replayed(path, 1).workloads[0].chosen_us, replayed(path, 1).workloads[0].default_us);
}

TEST(Replay, WorkloadsShareTheTrialsAndFailuresAreData) {
  const std::string path = testing::TempDir() + "/replay.csv";
  std::filesystem::remove(path);
  {
    store::TrialLog log(path);
    const auto add = [&](const char* workload, int64_t value, double us, bool is_default,
                         artifact::Outcome outcome = artifact::Outcome::kOk) {
      store::LoggedTrial t;
      t.workload = workload;
      t.region = std::string("Region_") + workload;
      t.is_default = is_default;
      t.schedule = {"map", "only", {{"width", value}}};
      t.measurement.outcome = outcome;
      t.measurement.time_us = us;
      t.measurement.error = 0;
      t.measurement.error_limit = 1;
      log.add(t);
    };
    add("aa", 1, 100, true);
    add("aa", 2, 50, false);
    add("aa", 4, 0, false, artifact::Outcome::kTimedOut);
    add("aa", 8, 99.5, false);
    add("bb", 1, 10, true);
    add("bb", 2, 9.95, false);  // within 1%: a tie goes to the default
    add("cc", 1, 0, true, artifact::Outcome::kWrong);
  }
  const ReplayReport r = replayed(path, 100);
  ASSERT_EQ(r.workloads.size(), 2u);
  EXPECT_EQ(r.notes.size(), 1u);
  EXPECT_EQ(r.workloads[0].schedule, "map/only width=2");
  EXPECT_EQ(r.workloads[0].trials, 4);
  EXPECT_EQ(r.workloads[1].schedule, "map/only width=1");
  EXPECT_EQ(r.workloads[1].best_us, 9.95);
  EXPECT_EQ(r.default_us, 110);
  EXPECT_EQ(r.chosen_us, 60);
}

TEST(Replay, WhatIsMissingIsSaid) {
  EXPECT_THROW(replayed(testing::TempDir() + "/no_such.csv", 5), Error);
  EXPECT_THROW(replayed(std::string(THRICE_DATA_DIR) + "/spaces/gemm_3090.csv", 5, "oracle"), Error);
}

}  // namespace
}  // namespace thrice::flow
