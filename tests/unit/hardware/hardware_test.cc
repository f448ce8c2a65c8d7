// Would catch: state read from the wrong field, an unknown value taken for zero (no heat, no memory), a limit
// that a missing sensor breaks, a sampler that stops or grows without end.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "hardware/host.h"
#include "hardware/limits.h"
#include "hardware/nvml.h"
#include "hardware/sampler.h"

namespace thrice::hardware {
namespace {

namespace fs = std::filesystem;

class HostFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "thrice-host-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root = name;
  }
  void TearDown() override { fs::remove_all(root); }
  void put(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  }
  std::string root;
};

TEST_F(HostFiles, ReadsEachField) {
  put("/proc/meminfo", "MemTotal:  1000 kB\nMemFree: 5 kB\nMemAvailable:   400 kB\n");
  put("/proc/loadavg", "1.50 1.0 0.5 1/2 3\n");
  put("/proc/stat", "cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 1 1 1\n");
  put("/proc/cpuinfo", "cpu MHz\t\t: 2000.0\ncpu MHz\t\t: 3000.0\n");
  put("/proc/net/dev",
      "Inter-|   Receive  |  Transmit\n face |bytes packets\n    lo: 9 1 0 0 0 0 0 0 9 1 0 0 0 0 0 0\n"
      "  eth0: 1000 1 0 0 0 0 0 0 2000 1 0 0 0 0 0 0\n");
  put("/sys/class/thermal/thermal_zone0/temp", "45000\n");
  put("/sys/class/thermal/thermal_zone1/temp", "61500\n");
  HostReader reader(root);
  HostState s = reader.read();
  EXPECT_EQ(s.memory_total_bytes, 1000 * 1024);
  EXPECT_EQ(s.memory_free_bytes, 400 * 1024);
  EXPECT_DOUBLE_EQ(s.load_average, 1.5);
  EXPECT_DOUBLE_EQ(s.clock_mhz, 2500);
  EXPECT_DOUBLE_EQ(s.temperature_c, 61.5);
  EXPECT_EQ(s.network_received_bytes, 1000);
  EXPECT_EQ(s.network_sent_bytes, 2000);
  EXPECT_FALSE(is_known(s.cpu_busy));  // no sample before
  put("/proc/stat", "cpu  150 0 125 725 100 0 0 0 0 0\n");
  s = reader.read();
  EXPECT_DOUBLE_EQ(s.cpu_busy, 0.75);
}

TEST_F(HostFiles, WhatIsNotThereIsUnknown) {
  const HostState s = HostReader(root).read();
  EXPECT_EQ(s.memory_free_bytes, -1);
  EXPECT_FALSE(is_known(s.temperature_c));
  EXPECT_FALSE(is_known(s.load_average));
  EXPECT_FALSE(is_known(s.clock_mhz));
  EXPECT_EQ(s.network_sent_bytes, -1);
}

TEST(Limits, HoldOrSayWhy) {
  Snapshot s;
  s.host.memory_free_bytes = int64_t{8} << 30;
  s.host.temperature_c = 50;
  s.devices.push_back({});
  s.devices[0].id = "cuda:0";
  s.devices[0].temperature_c = 91;
  s.devices[0].memory_free_bytes = 500 << 20;
  EXPECT_TRUE(check_limits(s, "opencl:0", {}).ok);
  const Verdict hot = check_limits(s, "cuda:0", {});
  EXPECT_FALSE(hot.ok);
  ASSERT_EQ(hot.reasons.size(), 2u);
  EXPECT_EQ(hot.reasons[0], "cuda:0: 91 °C is above max_temp 85 °C");
  EXPECT_NE(hot.reasons[1].find("min_free_memory 1.00 GB"), std::string::npos) << hot.reasons[1];
  EXPECT_TRUE(check_limits(s, "cuda:0", {std::nullopt, std::nullopt}).ok);
  const Verdict other = check_limits(s, "cuda:1", {});  // unknown, and the host's state is not taken for it
  EXPECT_TRUE(other.ok);
  EXPECT_EQ(other.notes.size(), 2u);
}

TEST(Throttle, IdleIsNone) {
  EXPECT_TRUE(throttle_words(0x1).empty());
  EXPECT_EQ(throttle_words(0x4 | 0x40), (std::vector<std::string>{"power cap", "hot (hardware limit)"}));
}

TEST(Sampling, KeepsTheLatestAndForgetsTheOldest) {
  std::vector<Snapshot> script(20);
  for (size_t i = 0; i < script.size(); ++i) script[i].time_us = static_cast<double>(i + 1);
  const Sampler sampler(scripted_source(script), 1, 5);
  for (int i = 0; i < 2000 && sampler.latest().time_us < 20; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(sampler.latest().time_us, 20);
  EXPECT_LE(sampler.since(0).size(), 5u);
  EXPECT_TRUE(sampler.since(20).empty());
  EXPECT_EQ(sampler.next(17).time_us, 18);
}

TEST(System, ThisMachineIsSampled) {
  const auto source = system_source();
  const Snapshot s = source->sample();
  EXPECT_GT(s.host.memory_total_bytes, 0);
  EXPECT_GT(s.time_us, 0);
}

}  // namespace
}  // namespace thrice::hardware
