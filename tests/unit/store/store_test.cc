// Catches a record that comes back changed, a damaged row or file that is believed, and two writers that lose
// each other's rows.
#include "store/store.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"

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

}  // namespace
}  // namespace thrice::store
