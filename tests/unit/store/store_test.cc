// Catches a record that comes back changed, a damaged row or file that is believed, and two writers that lose
// each other's rows.
#include "store/store.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "store/database.h"

namespace thrice::store {
namespace {

artifact::TuningRecord record(double us) {
  artifact::TuningRecord r;
  r.workload = "w";
  r.shape = "s0=1";
  r.schedule = artifact::Schedule::parse("matmul/tiled tile_m=64");
  r.measurement.outcome = artifact::Outcome::kOk;
  r.measurement.time_us = us;
  r.measurement.error = 1e-7;
  r.measurement.error_limit = 1e-5;
  return r;
}

TEST(Store, BestOfTwoWritersAndDamage) {
  const std::string path = testing::TempDir() + "/store_test/store.sqlite";
  std::filesystem::remove_all(std::filesystem::path(path).parent_path());
  {
    Store a(path), b(path);
    auto first = record(20), second = record(10);
    first.environment = a.put_environment("{}");
    second.environment = b.put_environment("{}");
    a.add(first);
    b.add(second);
    EXPECT_EQ(a.size(), 2);
    const auto best = a.best("w", first.environment, "s0=1");
    ASSERT_TRUE(best);
    EXPECT_EQ(best->measurement.time_us, 10);
    EXPECT_FALSE(a.best("w", first.environment, "s0=2"));
    EXPECT_FALSE(a.best("w", "another", "s0=1"));
  }
  std::filesystem::remove(path + "-wal");
  write_file_atomic(path, std::string_view("this is no database, it only lies where one should be"));
  std::string notice;
  Store c(path, &notice);
  EXPECT_FALSE(notice.empty());
  EXPECT_EQ(c.size(), 0);
  EXPECT_TRUE(std::filesystem::exists(path + ".damaged-1"));
}

TEST(Store, ConditionsComeBackAndOlderRowsStayTrue) {
  const std::string path = testing::TempDir() + "/store_conditions/store.sqlite";
  std::filesystem::remove_all(std::filesystem::path(path).parent_path());
  Store store(path);
  auto r = record(10);
  r.environment = store.put_environment("{}");
  store.add(r);  // as an older version kept it: nothing told
  r.measurement.warm_us = 10;
  r.measurement.cold_us = 12.5;
  r.measurement.conditions = {2, 1980, 1800, 3201, 61, 480};
  store.add(r);
  const auto rows = store.records("w", r.environment);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].measurement.cold_us, -1);
  EXPECT_EQ(rows[1].measurement.cold_us, 12.5);
  EXPECT_EQ(rows[1].measurement.conditions.throttled_samples, 2);
  EXPECT_EQ(rows[1].measurement.conditions.least_sm_mhz, 1800);
  EXPECT_EQ(rows[1].measurement.conditions.power_w, 480);
  Database(path).execute("UPDATE trial SET cold_us = 1 WHERE cold_us = 12.5");
  EXPECT_EQ(store.records("w", r.environment).size(), 1u);
}

TEST(Store, ATrialThatNeverEndedIsAFailure) {
  const std::string path = testing::TempDir() + "/store_begun/store.sqlite";
  std::filesystem::remove_all(std::filesystem::path(path).parent_path());
  Store store(path);
  auto r = record(10);
  r.environment = store.put_environment("{}");
  r.measurement.concurrent_us = 3.25;
  const int64_t finished = store.begin(r);
  store.finish(finished, r);
  store.forget(store.begin(r));
  r.schedule.set("tile_m", 8);
  store.begin(r);  // and here the process dies
  const auto records = store.records("w", r.environment);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].measurement.time_us, 10);
  EXPECT_EQ(records[0].measurement.concurrent_us, 3.25);
  EXPECT_EQ(records[1].measurement.concurrent_us, 0);
  EXPECT_EQ(records[1].schedule.get("tile_m"), 8);
  EXPECT_EQ(records[1].measurement.outcome, artifact::Outcome::kLaunchFailed);
  EXPECT_NE(records[1].measurement.message.find("quarantined"), std::string::npos);
  EXPECT_EQ(store.damaged_rows(), 0);
  EXPECT_EQ(store.best("w", r.environment, "s0=1")->measurement.time_us, 10);
}

TEST(Store, WhatFailedInADuelIsNoWinner) {
  const std::string path = testing::TempDir() + "/store_duel/store.sqlite";
  std::filesystem::remove_all(std::filesystem::path(path).parent_path());
  Store store(path);
  auto r = record(10);
  r.environment = store.put_environment("{}");
  store.add(r);
  r.measurement.time_us = 5;
  r.schedule.set("tile_m", 8);
  store.add(r);
  EXPECT_EQ(store.best("w", r.environment, "s0=1")->schedule.get("tile_m"), 8);
  r.measurement.outcome = artifact::Outcome::kLaunchFailed;
  store.add(r);
  EXPECT_EQ(store.best("w", r.environment, "s0=1")->measurement.time_us, 10);
}

TEST(Store, WhatPassedTheFullGateIsFoundByItsWholeKeyOnly) {
  const std::string path = testing::TempDir() + "/store_passed/store.sqlite";
  std::filesystem::remove_all(std::filesystem::path(path).parent_path());
  Store store(path);
  const Store::Passed passed{"w",  "s0=1", "e", "matmul/tiled tile_m=64", "text", "full seed=1",
                             1e-7, 2e-6,   1000};
  store.put_passed(passed);
  store.put_passed(passed);  // replaces itself
  const auto found = [&](Store::Passed key) {
    key.error = key.error_limit = -1;
    if (!store.find_passed(key)) return false;
    EXPECT_EQ(key.error, 1e-7);
    EXPECT_EQ(key.error_limit, 2e-6);
    return true;
  };
  EXPECT_TRUE(found(passed));
  for (std::string Store::Passed::*field :
       {&Store::Passed::workload, &Store::Passed::shape, &Store::Passed::environment,
        &Store::Passed::schedule, &Store::Passed::source_key, &Store::Passed::gate}) {
    Store::Passed other = passed;
    other.*field += "x";
    EXPECT_FALSE(found(other));
  }
  Database(path).execute("UPDATE passed SET error_limit = 1");  // damage: the digest does not fit
  Store::Passed damaged = passed;
  EXPECT_FALSE(store.find_passed(damaged));
  store.put_passed(passed);
  store.prune(1001);
  EXPECT_FALSE(found(passed));
}

}  // namespace
}  // namespace thrice::store
