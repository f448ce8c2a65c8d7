// Would catch: a large model that is tuned with warm caches, a CPU whose trials become slow without being
// asked, a load that the settings name and nobody makes.
#include <gtest/gtest.h>

#include "flow/tuning.h"

namespace thrice::flow {
namespace {

TEST(TimingPolicy, AsTheModelWillRun) {
  target::DeviceSpec card;
  card.api = target::Api::kCuda;
  card.l2_bytes = 50 << 20;
  Settings settings;
  EXPECT_TRUE(timing_policy(settings, card, 100e6).cold);
  EXPECT_FALSE(timing_policy(settings, card, 20e6).cold) << "all of it stays in the cache";
  EXPECT_TRUE(timing_policy(settings, card, 20e6).both);
  EXPECT_GT(timing_policy(settings, card, 20e6).settle_us, 0);
  EXPECT_EQ(timing_policy(settings, card, 20e6).rest_us, 0);
  EXPECT_NE(timing_policy(settings, card, 100e6).sentence.find("cold"), std::string::npos);
  settings.load = "burst";
  settings.caches = "warm";
  const TimingPolicy burst = timing_policy(settings, card, 100e6);
  EXPECT_FALSE(burst.cold);
  EXPECT_EQ(burst.settle_us, 0);
  EXPECT_GT(burst.rest_us, 0);

  target::DeviceSpec cpu;
  cpu.api = target::Api::kOpenCL;
  cpu.is_cpu = true;
  cpu.l2_bytes = 32 << 20;
  const TimingPolicy plain = timing_policy({}, cpu, 1e9);
  EXPECT_FALSE(plain.cold || plain.both || plain.settle_us > 0 || plain.rest_us > 0);
  EXPECT_TRUE(plain.sentence.empty());
  settings.caches = "cold";
  EXPECT_TRUE(timing_policy(settings, cpu, 1).cold);
}

}  // namespace
}  // namespace thrice::flow
