// Would catch: a cheating or broken kernel that the gate of every candidate lets through, and an honest one
// that it refuses. THRICE_TEST_DEVICE chooses the device (default "opencl:0"); THRICE_CHEATS_JSON names a
// file for the results (bench/results/cheats.json).
#include "fault/cheats/cheats.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/file.h"
#include "family/prelude.h"
#include "measure/trial.h"
#include "measure_fixture.h"

namespace thrice::testing {
namespace {

using artifact::Outcome;
using measure::Gate;
using measure::TrialResult;

class Cheats : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const char* id = std::getenv("THRICE_TEST_DEVICE");
    try {
      device = backend::open_device(id ? id : "opencl:0");
    } catch (const Error& error) {
      reason = error.what();
    }
  }
  static void TearDownTestSuite() {
    if (const char* path = std::getenv("THRICE_CHEATS_JSON"); path && device) {
      const auto now = static_cast<std::time_t>(unix_time());
      results["schema"] = 1;
      results["date"] = fmt::format("{:%Y-%m-%d}", fmt::gmtime(now));
      results["command"] = "THRICE_CHEATS_JSON=FILE test_fault_cheats";
      results["environment"] = {{"device", fmt::format("{} {}, driver {}", device->spec().id,
                                                       device->spec().name, device->spec().driver)}};
      write_file_atomic(path, results.dump(1) + "\n");
    }
    device.reset();
  }
  void SetUp() override {
    if (!device) GTEST_SKIP() << "skipped: " << reason;
    cache = std::make_shared<jit::KernelCache>(device, "");
    runner = std::make_unique<measure::TrialRunner>(device, cache);
  }
  static ir::Bindings extents(Cheat::Task task) {
    return {{"s0", task == Cheat::kRelu ? kReluExtent : kRows}};
  }
  // The two gates as flow/tuning passes a candidate through them: screening when it is tried, the full one
  // before it is deployed. The result of the one that refused it, or of the full one.
  TrialResult pass(const Cheat& kernel, const char** gate) {
    const ir::Workload workload =
        kernel.task == Cheat::kRelu ? test::unary_workload(ir::Op::relu) : test::row_sums(kRowLength);
    measure::Oracle oracle(workload, ir::facts_at(workload.graph, extents(kernel.task)));
    const test::TextFamily family(kernel.text, kernel.temporary_bytes);
    measure::TrialOptions options;
    options.seed = 11;
    *gate = "screening";
    TrialResult result = runner->run(workload, family, {"text", "only", {}}, oracle, options);
    if (result.measurement.outcome != Outcome::kOk) return result;
    options.gate = Gate::kFull;
    options.seed = 7919;
    *gate = "full";
    return runner->run(workload, family, {"text", "only", {}}, oracle, options);
  }
  static backend::DevicePtr device;
  static std::string reason;
  static nlohmann::ordered_json results;
  std::shared_ptr<jit::KernelCache> cache;
  std::unique_ptr<measure::TrialRunner> runner;
};
backend::DevicePtr Cheats::device;
std::string Cheats::reason;
nlohmann::ordered_json Cheats::results;

TEST_F(Cheats, AreAllCaught) {
  for (const Cheat& cheat : cheats()) {
    const char* gate = "";
    const TrialResult r = pass(cheat, &gate);
    // A text that does not build or launch would be no proof.
    const bool caught = r.measurement.outcome == Outcome::kWrong;
    EXPECT_TRUE(caught) << cheat.name << ": " << outcome_name(r.measurement.outcome) << ", "
                        << r.measurement.message;
    results["cheats"][cheat.name] = {
        {"result", caught ? "caught" : "missed"}, {"gate", gate}, {"reason", r.measurement.message}};
  }
}

TEST_F(Cheats, HonestKernelsPass) {
  for (const Cheat& kernel : honest_kernels()) {
    const char* gate = "";
    const TrialResult r = pass(kernel, &gate);
    EXPECT_EQ(r.measurement.outcome, Outcome::kOk)
        << kernel.name << ", " << gate << ": " << r.measurement.message;
  }
}

// What the gate costs: an honest candidate of some size, in ms.
TEST_F(Cheats, CostOfTheGate) {
  for (const int64_t n : {int64_t{kReluExtent}, int64_t{1} << 20}) {
    const Cheat honest = honest_kernels()[0];
    const ir::Workload workload = test::unary_workload(ir::Op::relu);
    const test::TextFamily family(honest.text, honest.temporary_bytes);
    for (const Gate gate : {Gate::kScreening, Gate::kFull}) {
      measure::Oracle oracle(workload, ir::facts_at(workload.graph, {{"s0", n}}));
      measure::TrialOptions options;
      options.gate = gate;
      const TrialResult r = runner->run(workload, family, {"text", "only", {}}, oracle, options);
      ASSERT_EQ(r.measurement.outcome, Outcome::kOk) << r.measurement.message;
      const measure::TrialCost& c = r.cost;
      const auto ms = [](double value) { return std::round(value * 1000) / 1000; };
      results["cost_ms"][fmt::format("relu of {}, {}", n, gate == Gate::kFull ? "full" : "screening")] = {
          {"build", ms(c.build)},
          {"check", ms(c.check)},
          {"timing", ms(c.timing)},
          {"after timing", ms(c.after)},
          {"other extents", ms(c.other_extents)}};
    }
  }
}

// The same texts are what runs on a card. THRICE_TEST_DEVICE=cuda:0 runs them there.
TEST(CheatTexts, BuildForCards) {
  std::unique_ptr<backend::Compiler> compiler;
  try {
    compiler = backend::cross_compiler("sm_90a");
  } catch (const Error& error) {
    GTEST_SKIP() << "skipped: " << error.what();
  }
  std::vector<Cheat> all = cheats();
  for (Cheat& honest : honest_kernels()) all.push_back(std::move(honest));
  for (const Cheat& cheat : all) {
    artifact::KernelSource source;
    source.language = artifact::Language::kCuda;
    source.text = family::prelude(source.language) + cheat.text;
    source.kernels = {"k"};
    EXPECT_NO_THROW(compiler->compile(source)) << cheat.name;
  }
}

// L2 persistence is set through the driver (limits of the context, attributes of streams and launches), never
// by a kernel. Our table of the driver's functions has none of them, so no candidate can ask for it.
TEST_F(Cheats, HaveNoWayToPersistInL2) {
  if (!std::filesystem::exists(std::string(THRICE_SOURCE_DIR) + "/src/backend/cuda/api.h"))
    GTEST_SKIP() << "skipped: the sources are not here";
  const std::string table = read_text(std::string(THRICE_SOURCE_DIR) + "/src/backend/cuda/api.h") +
                            read_text(std::string(THRICE_SOURCE_DIR) + "/src/backend/cuda/api.cc");
  ASSERT_NE(table.find("LaunchKernel"), std::string::npos) << "the table moved: look where it is now";
  bool none = true;
  for (const char* name : {"CtxSetLimit", "StreamSetAttribute", "KernelNodeSetAttribute", "LaunchKernelEx"}) {
    none = none && table.find(name) == std::string::npos;
    EXPECT_EQ(table.find(name), std::string::npos)
        << name
        << " can set a persisting part of L2: reset and check it between candidates (measure/trial.cc)";
  }
  results["cheats"]["sets a persisting-L2 policy"] = {
      {"result", none ? "caught" : "missed"},
      {"gate", "loader"},
      {"reason", "no way: only the driver's host functions set it, and none of them is loaded"}};
}

}  // namespace
}  // namespace thrice::testing
