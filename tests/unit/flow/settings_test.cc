// Catches a unit read wrongly, an unknown key that passes, and text nested so deep that the parser would fall
// over.
#include "flow/settings.h"

#include <gtest/gtest.h>
#include <thrice/status.h>

namespace thrice::flow {
namespace {

TEST(Settings, UsersOwnExample) {
  Settings settings;
  read_settings_text(
      "agent_config:\n  learning_rate: 0.001\n  exploration_rate: 0.1\n  reward_weights: {latency: 0.6, "
      "throughput: 0.3, memory_usage: 0.1}\n"
      "  hardware_constraints: {max_temp: 85°C, min_free_memory: 1GB}\n",
      "example.yaml", settings);
  EXPECT_EQ(settings.agent_config.hardware_constraints.max_temp_c, 85);
  EXPECT_EQ(settings.agent_config.hardware_constraints.min_free_memory_bytes, 1000000000);
  EXPECT_EQ(settings.caches, "auto");
  read_settings_text("timing: {caches: cold, load: burst}\n", "timing.yaml", settings);
  EXPECT_EQ(settings.caches, "cold");
  EXPECT_EQ(settings.load, "burst");
  EXPECT_THROW(read_settings_text("timing: {load: idle}\n", "timing.yaml", settings), Error);
  EXPECT_FALSE(settings.check_races);
  read_settings_text("check_races: true\n", "races.yaml", settings);
  EXPECT_TRUE(settings.check_races);
  EXPECT_EQ(parse_bytes("1GiB"), int64_t{1} << 30);
  EXPECT_EQ(parse_duration("10m"), 600);
}

TEST(Settings, RefusedWithLineAndNearestKey) {
  Settings settings;
  try {
    read_settings_text("agent_config:\n  lerning_rate: 0.5\n", "bad.yaml", settings);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("bad.yaml:2"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("learning_rate"), std::string::npos) << e.what();
  }
  EXPECT_THROW(read_settings_text("budget: 5 fortnights\n", "bad.yaml", settings), Error);
  EXPECT_THROW(read_settings_text(std::string(100000, '['), "deep.yaml", settings), Error);
}

}  // namespace
}  // namespace thrice::flow
