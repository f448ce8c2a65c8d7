// Would catch: tuning that goes on while a card is above max_temp, waits for ever, or takes the last memory;
// a limit that nobody could check and nobody was told of.
#include "flow/device_guard.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "flow/tuning.h"
#include "measure_fixture.h"

namespace thrice::flow {
namespace {

constexpr GuardOptions kQuick{0.3, 5, 3};

// A card whose state follows a script, by the fake NVML.
std::unique_ptr<hardware::Source> card(const std::string& script) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("thrice-guard-" + std::to_string(::getpid()))).string();
  std::ofstream(path) << script;
  ::setenv("FAKE_NVML_SCRIPT", path.c_str(), 1);
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  auto source = hardware::system_source("", std::string(THRICE_FAKE_NVML) + "/libnvidia-ml.so.1");
  std::filesystem::remove(path);  // read when the library started
  return source;
}
std::string repeated(const std::string& frame, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += frame + "---\n";
  return text;
}
const std::string kMemory = "memory_total 8000000000\nmemory_free 4000000000\n";
constexpr double kNever = 1e300;

TEST(DeviceGuard, PausesUntilItIsCool) {
  // 84 °C is below the limit, but a pause ends only 3 °C below it.
  DeviceGuard guard(
      card(kMemory + repeated("temperature 91\n", 5) + repeated("temperature 84\n", 5) + "temperature 60\n"),
      "cuda:0", {}, kQuick);
  std::vector<std::string> told;
  Listener listener;
  listener.progress = [&](const Progress& p) { told.push_back(p.phase + ": " + p.region); };
  EXPECT_TRUE(guard.wait_until_cool(listener, {"tune", "Conv_1", 3, 10, 0, 5}, kNever));
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.front(), "paused: cuda:0: 91 °C is above max_temp 85 °C");
  EXPECT_GE(told.size(), 2u);
  ASSERT_EQ(guard.notes().size(), 1u);
  EXPECT_NE(guard.notes()[0].find("paused 1 times"), std::string::npos) << guard.notes()[0];
  told.clear();
  EXPECT_TRUE(guard.wait_until_cool(listener, {}, kNever));
  EXPECT_TRUE(told.empty());
}

TEST(DeviceGuard, GivesUpOnWhatStaysHot) {
  DeviceGuard guard(card(kMemory + "temperature 95\n"), "cuda:0", {}, kQuick);
  const double begin = monotonic_us();
  EXPECT_FALSE(guard.wait_until_cool({}, {}, kNever));
  EXPECT_GT(monotonic_us() - begin, 0.25e6);
  const std::vector<std::string> notes = guard.notes();
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_NE(notes[1].find("stayed hot"), std::string::npos) << notes[1];
  EXPECT_NE(notes[1].find("95 °C"), std::string::npos) << notes[1];
}

TEST(DeviceGuard, TheDeadlineAndTheUserEndAPause) {
  DeviceGuard guard(card(kMemory + "temperature 95\n"), "cuda:0", {}, {60, 5, 3});
  const double begin = monotonic_us();
  EXPECT_FALSE(guard.wait_until_cool({}, {}, begin + 0.05e6));
  Listener stopped;
  stopped.cancelled = [] { return true; };
  EXPECT_FALSE(guard.wait_until_cool(stopped, {}, kNever));
  EXPECT_LT(monotonic_us() - begin, 5e6);
}

TEST(DeviceGuard, RefusesWhatWouldLeaveTooLittleMemory) {
  HardwareConstraints constraints;
  constraints.min_free_memory_bytes = 1'000'000'000;
  DeviceGuard guard(card(kMemory + "temperature 40\n"), "cuda:0", constraints, kQuick);
  EXPECT_FALSE(guard.refuse(2'900'000'000));
  const auto refusal = guard.refuse(3'100'000'000);
  ASSERT_TRUE(refusal);
  EXPECT_NE(refusal->find("4.00 GB free is below"), std::string::npos) << *refusal;
  ASSERT_EQ(guard.notes().size(), 1u);
  EXPECT_EQ(guard.notes()[0].rfind("1 trials were refused for memory", 0), 0u) << guard.notes()[0];
}

TEST(DeviceGuard, WhatCannotBeCheckedIsNoted) {
  DeviceGuard guard(card(kMemory + "error DeviceGetTemperature 3\n"), "cuda:0", {}, kQuick);
  EXPECT_TRUE(guard.wait_until_cool({}, {}, kNever));
  EXPECT_TRUE(guard.wait_until_cool({}, {}, kNever));
  EXPECT_EQ(guard.notes(), std::vector<std::string>{"cuda:0: temperature unknown, max_temp not checked"});
}

// The tuning phase with a family of many schedules, on the null device.
class ManyFamily : public test::TextFamily {
 public:
  ManyFamily() : TextFamily("anything", 1000) {}
  artifact::ScheduleSpace space(const ir::Workload&, const std::vector<ir::Fact>&,
                                const target::DeviceSpec&) const override {
    artifact::ScheduleSpace space;
    space.tactics = {{"text", "only", {{"n", {1, 2, 3, 4, 5, 6, 7, 8}}}}};
    return space;
  }
};

struct Tuning {
  ManyFamily family;
  std::map<std::string, plan::PlannedWorkload> workloads;
  backend::DevicePtr device = backend::open_device("null:0");
  measure::TrialRunner runner{device, std::make_shared<jit::KernelCache>(device, "")};
  Settings settings;
  Listener listener;
  std::map<std::string, Tuned> results;
  int64_t trials = 0;
  Tuning() {
    plan::PlannedWorkload planned;
    planned.workload = test::unary_workload(ir::Op::relu);
    planned.family = &family;
    planned.facts = ir::facts_at(planned.workload.graph, {{"s0", 1000}});
    planned.schedule = {"text", "only", {}};
    planned.uses = {"Relu_1"};
    workloads[planned.workload.hash] = planned;
  }
  void run(DeviceGuard& guard) {
    const TuningContext context{device,    &runner,  nullptr, "e",   &settings,
                                &listener, &results, &trials, &guard};
    measure_defaults(context, workloads, "build and check");
    tune(context, workloads, monotonic_us() + 20e6);
  }
};

TEST(TuningUnderLimits, CoolAndRoomyRunsEveryTrial) {
  Tuning tuning;
  DeviceGuard guard(card(kMemory + "temperature 40\n"), "cuda:0", {}, kQuick);
  tuning.run(guard);
  EXPECT_GT(tuning.trials, 8);
  EXPECT_TRUE(guard.notes().empty());
}

TEST(TuningUnderLimits, HotMakesNoTrial) {
  Tuning tuning;
  DeviceGuard guard(card(kMemory + "temperature 95\n"), "cuda:0", {}, kQuick);
  tuning.run(guard);
  EXPECT_EQ(tuning.trials, 0);
}

TEST(TuningUnderLimits, WithoutMemoryTheDefaultStandsAlone) {
  Tuning tuning;
  DeviceGuard guard(card("temperature 40\nmemory_total 8000000000\nmemory_free 1000009000\n"), "cuda:0", {},
                    kQuick);
  tuning.run(guard);  // two sets of 4000 + 4000 + 1000 bytes: 9000 bytes too many for the limit of 1 GB
  EXPECT_EQ(tuning.trials, 1);
  EXPECT_EQ(tuning.results.begin()->second.schedule.str(), "text/only");
}

}  // namespace
}  // namespace thrice::flow
