// Catches a recorded trial that comes back changed, a line cut by a kill that spoils the file, and a foreign
// file that is appended to.
#include "store/trial_log.h"

#include <gtest/gtest.h>
#include <thrice/status.h>

#include <filesystem>

#include "base/file.h"

namespace thrice::store {
namespace {

LoggedTrial trial(double us) {
  LoggedTrial t;
  t.workload = "3f2a";
  t.shape = "s0=1 s1=320";
  t.region = "Conv_1, \"stem\"\n+ Relu_2";
  t.uses = 3;
  t.is_default = true;
  t.schedule = artifact::Schedule::parse("matmul/tiled tile_m=64 tile_n=8");
  artifact::Measurement& m = t.measurement;
  m.outcome = artifact::Outcome::kOutOfMemory;
  m.message = "allocating 12 bytes, in vain";
  m.time_us = us;
  m.spread_us = 0.1 + 0.2;
  m.samples = 7;
  m.error = 1e-7;
  m.error_limit = 2e-6;
  m.build_ms = 31.5;
  m.registers = 128;
  m.shared_bytes = 49152;
  m.spill_bytes = 8;
  m.temporary_bytes = int64_t{1} << 40;
  m.concurrent_us = 0.7;
  m.warm_us = 2.5;
  m.cold_us = 1.0 / 7;
  m.conditions = {4, 1980, 1830.5, 3201, 61, 480.25};
  return t;
}

std::string fresh(const char* name) {
  const std::string path = testing::TempDir() + "/" + name;
  std::filesystem::remove(path);
  return path;
}

TEST(TrialLog, WhatIsWrittenComesBack) {
  const std::string path = fresh("trial_log.csv");
  { TrialLog(path).add(trial(1.0 / 3)); }
  LoggedTrial plain = trial(2);
  plain.schedule = {"map", "only", {}};
  plain.is_default = false;
  { TrialLog(path).add(plain); }  // goes on with the file
  const auto read = read_trial_log(path);
  ASSERT_EQ(read.size(), 2u);
  const LoggedTrial expected = trial(1.0 / 3), &found = read[0];
  EXPECT_EQ(found.workload, expected.workload);
  EXPECT_EQ(found.shape, expected.shape);
  EXPECT_EQ(found.region, "Conv_1, \"stem\" + Relu_2");  // a line break would end the row
  EXPECT_EQ(found.uses, 3);
  EXPECT_TRUE(found.is_default);
  EXPECT_EQ(found.schedule, expected.schedule);
  const artifact::Measurement &a = found.measurement, &b = expected.measurement;
  EXPECT_EQ(a.outcome, b.outcome);
  EXPECT_EQ(a.message, b.message);
  EXPECT_EQ(a.time_us, b.time_us);
  EXPECT_EQ(a.spread_us, b.spread_us);
  EXPECT_EQ(a.samples, b.samples);
  EXPECT_EQ(a.error, b.error);
  EXPECT_EQ(a.error_limit, b.error_limit);
  EXPECT_EQ(a.build_ms, b.build_ms);
  EXPECT_EQ(a.registers, b.registers);
  EXPECT_EQ(a.shared_bytes, b.shared_bytes);
  EXPECT_EQ(a.spill_bytes, b.spill_bytes);
  EXPECT_EQ(a.temporary_bytes, b.temporary_bytes);
  EXPECT_EQ(a.concurrent_us, b.concurrent_us);
  EXPECT_EQ(a.warm_us, b.warm_us);
  EXPECT_EQ(a.cold_us, b.cold_us);
  EXPECT_EQ(a.conditions.throttled_samples, 4);
  EXPECT_EQ(a.conditions.sm_mhz, 1980);
  EXPECT_EQ(a.conditions.least_sm_mhz, 1830.5);
  EXPECT_EQ(a.conditions.memory_mhz, 3201);
  EXPECT_EQ(a.conditions.temperature_c, 61);
  EXPECT_EQ(a.conditions.power_w, 480.25);
  EXPECT_EQ(read[1].schedule, plain.schedule);
  EXPECT_FALSE(read[1].is_default);
}

TEST(TrialLog, ALineThatWasCutCostsThatTrialOnly) {
  const std::string path = fresh("trial_log_cut.csv");
  {
    TrialLog log(path);
    for (const double us : {1.0, 2.0}) log.add(trial(us));
  }
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 9);
  EXPECT_EQ(read_trial_log(path).size(), 1u);
  { TrialLog(path).add(trial(3)); }
  const auto read = read_trial_log(path);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[1].measurement.time_us, 3);
}

TEST(TrialLog, OlderLogsLackColumns) {
  const std::string path = fresh("trial_log_old.csv");
  { TrialLog(path).add(trial(1)); }
  std::string text = read_text(path);
  text.replace(text.find("concurrent_us,"), 14, "");
  text.replace(text.find(",0.7,"), 5, ",");
  write_file_atomic(path, std::string_view(text));
  const auto read = read_trial_log(path);
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].measurement.concurrent_us, 0);
  EXPECT_EQ(read[0].measurement.message, trial(1).measurement.message);
}

TEST(TrialLog, ForeignFilesAreRefused) {
  const std::string path = fresh("trial_log_foreign.csv");
  write_file_atomic(path, std::string_view("name,age\nann,7\n"));
  EXPECT_THROW(TrialLog{path}, Error);
  EXPECT_THROW(read_trial_log(path), Error);
  EXPECT_EQ(read_text(path), "name,age\nann,7\n");
  write_file_atomic(path, std::string_view("a,b,time\n1,2\n"));
  try {
    read_trial_log(path);
    ADD_FAILURE() << "a short line is believed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kCorrupt);
    EXPECT_NE(std::string(error.what()).find("line 2"), std::string::npos) << error.what();
  }
}

TEST(TrialLog, ReadsFilesFromBeforeConditionsWereKept) {
  const std::string path = fresh("trial_log_older.csv");
  write_file_atomic(
      path,
      std::string_view("workload,shape,region,uses,default,family,tactic,parameters,outcome,time_us,"
                       "spread_us,samples,error,error_limit,build_ms,registers,shared_bytes,spill_bytes,"
                       "temporary_bytes,message\n3f2a,s0=1,Relu_7,1,1,map,only,width=4,ok,7.5,0.1,5,1e-7,"
                       "1e-5,3,16,0,0,0,\n"));
  const auto read = read_trial_log(path);
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].measurement.time_us, 7.5);
  EXPECT_EQ(read[0].measurement.cold_us, -1);
  EXPECT_THROW(TrialLog{path}, Error) << "lines of two forms in one file";
}

TEST(TrialLog, ReadsTablesOfOneSpace) {
  const std::string path = fresh("bowl.csv");
  write_file_atomic(path, std::string_view("a,b,time\n1,2,nan\n1,4,0.5\n2,4,0.25\n"));
  const auto read = read_trial_log(path);
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[0].measurement.outcome, artifact::Outcome::kLaunchFailed);
  EXPECT_EQ(read[1].schedule.str(), "bowl/recorded a=1 b=4");
  EXPECT_TRUE(read[1].is_default);
  EXPECT_EQ(read[2].measurement.time_us, 250);
  EXPECT_FALSE(read[2].is_default);
}

}  // namespace
}  // namespace thrice::store
