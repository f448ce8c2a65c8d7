// Would catch: a number read from the wrong NVML field, a lost or old card that ends the program or reads as
// cold and empty, SM use taken from "busy", cards numbered otherwise than CUDA numbers them, two threads in
// NVML's counters at the same time.
#include "hardware/nvml.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "hardware/limits.h"

namespace thrice::hardware {
namespace {

class FakeNvml : public testing::Test {
 protected:
  void SetUp() override {
    script_ =
        (std::filesystem::temp_directory_path() / ("thrice-nvml-" + std::to_string(::getpid()))).string();
    ::setenv("FAKE_NVML_SCRIPT", script_.c_str(), 1);
    ::unsetenv("CUDA_VISIBLE_DEVICES");
  }
  void TearDown() override {
    std::filesystem::remove(script_);
    ::unsetenv("CUDA_VISIBLE_DEVICES");
  }
  std::unique_ptr<Nvml> open(const std::string& script, const std::string& folder = THRICE_FAKE_NVML) {
    std::ofstream(script_) << script;
    return Nvml::open(&reason, folder + "/libnvidia-ml.so.1");
  }
  std::string reason;

 private:
  std::string script_;
};

constexpr const char* kWhole =
    "name Fake H200\nuuid GPU-aa\ntemperature 61\nsm_clock 1980\nmemory_clock 2619\npower_mw 123500\n"
    "power_limit_mw 700000\nbusy 40\n"
    "memory_busy 7\nmemory_total 150000000000\nmemory_free 90000000000\nthrottle 0x44\n"
    "process 77 5000000\nprocess 78 0xffffffffffffffff\ngpm 1\nsm_use 20\n---\nsm_use 35\ntemperature 62\n";

TEST_F(FakeNvml, ReadersOfTwoThreadsTakeTurns) {
  const std::string library = std::string(THRICE_FAKE_NVML) + "/libnvidia-ml.so.1";
  const auto first = open("gpm 1\nsm_use 20\n");
  const auto second = Nvml::open(&reason, library);
  ASSERT_TRUE(first && second) << reason;
  const auto read = [](Nvml& nvml) {
    for (int i = 0; i < 20; ++i) EXPECT_EQ(nvml.read().size(), 1u);
  };
  std::thread other(read, std::ref(*second));
  read(*first);
  other.join();
}

TEST_F(FakeNvml, ReadsEachField) {
  const auto nvml = open(kWhole);
  ASSERT_NE(nvml, nullptr) << reason;
  std::vector<DeviceState> cards = nvml->read();
  ASSERT_EQ(cards.size(), 1u);
  const DeviceState& s = cards[0];
  EXPECT_EQ(s.id, "cuda:0");
  EXPECT_EQ(s.name, "Fake H200");
  EXPECT_EQ(s.uuid, "GPU-aa");
  EXPECT_EQ(s.problem, "");
  EXPECT_DOUBLE_EQ(s.temperature_c, 61);
  EXPECT_DOUBLE_EQ(s.sm_clock_mhz, 1980);
  EXPECT_DOUBLE_EQ(s.memory_clock_mhz, 2619);
  EXPECT_DOUBLE_EQ(s.power_w, 123.5);
  EXPECT_DOUBLE_EQ(s.power_limit_w, 700);
  EXPECT_DOUBLE_EQ(s.busy, 0.4);
  EXPECT_DOUBLE_EQ(s.memory_busy, 0.07);
  EXPECT_EQ(s.memory_total_bytes, 150000000000);
  EXPECT_EQ(s.memory_free_bytes, 90000000000);
  EXPECT_EQ(s.throttle_reasons, (std::vector<std::string>{"power cap", "hot (hardware limit)"}));
  ASSERT_EQ(s.processes.size(), 2u);
  EXPECT_EQ(s.processes[0].memory_bytes, 5000000);
  EXPECT_EQ(s.processes[1].memory_bytes, -1);  // not told
  EXPECT_FALSE(is_known(s.sm_use));            // counters need two looks
  cards = nvml->read();
  EXPECT_DOUBLE_EQ(cards[0].sm_use, 0.35);
  EXPECT_DOUBLE_EQ(cards[0].temperature_c, 62);
}

TEST_F(FakeNvml, WithoutCountersSmUseIsUnknown) {
  const auto nvml = open("busy 90\nsm_use 50\n");
  nvml->read();
  const DeviceState s = nvml->read().at(0);
  EXPECT_FALSE(is_known(s.sm_use));
  EXPECT_DOUBLE_EQ(s.busy, 0.9);
}

TEST_F(FakeNvml, ManyProcessesAreAllSeen) {
  std::string script = "temperature 40\n";
  for (int p = 1; p <= 200; ++p) script += "process " + std::to_string(p) + " 1000\n";
  EXPECT_EQ(open(script)->read().at(0).processes.size(), 200u);
}

TEST_F(FakeNvml, AnOldDriverTellsLess) {
  const auto nvml = open(kWhole, THRICE_FAKE_NVML_OLD);
  ASSERT_NE(nvml, nullptr) << reason;
  const DeviceState s = nvml->read().at(0);
  EXPECT_DOUBLE_EQ(s.temperature_c, 61);
  EXPECT_EQ(s.memory_free_bytes, 90000000000);
  EXPECT_FALSE(is_known(s.power_w));
  EXPECT_FALSE(is_known(s.sm_clock_mhz));
  EXPECT_TRUE(s.processes.empty());
}

TEST_F(FakeNvml, ErrorCodesAreUnknownNotZero) {
  const DeviceState s = open(std::string(kWhole) +
                             "error DeviceGetTemperature 3\nerror DeviceGetMemoryInfo 999\n"
                             "error DeviceGetComputeRunningProcesses 4\nerror GpmSampleGet 3\n")
                            ->read()
                            .at(0);
  EXPECT_DOUBLE_EQ(s.temperature_c, 61);  // the first frame is still whole
  const auto nvml = open(
      "temperature 50\nmemory_total 5\nmemory_free 1\nerror DeviceGetTemperature 3\n"
      "error DeviceGetMemoryInfo 999\n");
  const DeviceState broken = nvml->read().at(0);
  EXPECT_FALSE(is_known(broken.temperature_c));
  EXPECT_EQ(broken.memory_free_bytes, -1);
  Snapshot snapshot;
  snapshot.devices = {broken};
  const Verdict verdict = check_limits(snapshot, "cuda:0", {});
  EXPECT_TRUE(verdict.ok);
  EXPECT_EQ(verdict.notes.size(), 2u);
}

TEST_F(FakeNvml, ALostCardSaysSoAndComesBack) {
  const auto nvml = open(
      "temperature 50\n---\nerror * 15\nerror DeviceGetCount -1\n---\nerror DeviceGetHandleByIndex 15\n"
      "error DeviceGetCount 0\nerror * 0\n---\nerror DeviceGetHandleByIndex 0\nerror DeviceGetTemperature "
      "15\n"
      "---\nerror DeviceGetTemperature 0\n");
  EXPECT_EQ(nvml->read().at(0).problem, "");
  EXPECT_TRUE(nvml->read().empty());  // not even counted
  EXPECT_NE(nvml->read().at(0).problem.find("fell off the bus"), std::string::npos);
  const DeviceState lost = nvml->read().at(0);
  EXPECT_NE(lost.problem.find("fell off the bus"), std::string::npos);
  EXPECT_FALSE(is_known(lost.temperature_c));
  EXPECT_DOUBLE_EQ(nvml->read().at(0).temperature_c, 50);
}

TEST_F(FakeNvml, CardsAreNumberedAsCudaDoes) {
  ::setenv("CUDA_VISIBLE_DEVICES", "1", 1);
  const auto nvml = open("cards 2\nuuid GPU-aaaa\ntemperature 40\ncard 1\nuuid GPU-bbbb\ntemperature 70\n");
  const std::vector<DeviceState> cards = nvml->read();
  ASSERT_EQ(cards.size(), 1u);
  EXPECT_EQ(cards[0].id, "cuda:0");
  EXPECT_DOUBLE_EQ(cards[0].temperature_c, 70);
}

TEST_F(FakeNvml, ThatDoesNotStartSaysWhy) {
  EXPECT_EQ(open("init 18\n"), nullptr);
  EXPECT_NE(reason.find("code 18"), std::string::npos) << reason;
  EXPECT_EQ(Nvml::open(&reason, "/nowhere/libnvidia-ml.so.1"), nullptr);
  EXPECT_NE(reason.find("not found"), std::string::npos) << reason;
}

TEST(VisibleCards, FollowTheDriversRules) {
  using Cards = std::vector<size_t>;
  const std::vector<std::string> uuids = {"GPU-aaaa-1", "GPU-bbbb-2", "GPU-bbbb-3"};
  EXPECT_EQ(visible_cards(uuids, std::nullopt), (Cards{0, 1, 2}));
  EXPECT_EQ(visible_cards(uuids, "2,0"), (Cards{2, 0}));
  EXPECT_EQ(visible_cards(uuids, "GPU-bbbb-3,0"), (Cards{2, 0}));
  EXPECT_EQ(visible_cards(uuids, "0,9,1"), (Cards{0}));    // the first unknown one ends the list
  EXPECT_EQ(visible_cards(uuids, "GPU-bbbb"), (Cards{}));  // fits two
  EXPECT_EQ(visible_cards(uuids, "1,1"), (Cards{1}));
  EXPECT_EQ(visible_cards(uuids, ""), (Cards{}));
  EXPECT_EQ(visible_cards(uuids, "-1"), (Cards{}));
}

}  // namespace
}  // namespace thrice::hardware
