// Would catch: a default schedule that fails, and an exit code that blames thrice for it whatever the reason.
#include <gtest/gtest.h>

#include <filesystem>

#include "flow/tuning.h"
#include "measure_fixture.h"

namespace thrice::flow {
namespace {

// The null device with a compiler that fails as told.
class FailingDevice : public backend::Device, backend::Compiler {
 public:
  explicit FailingDevice(Code code) : code_(code) {}
  const target::DeviceSpec& spec() const override { return inner_->spec(); }
  backend::BufferPtr allocate(size_t bytes) override { return inner_->allocate(bytes); }
  backend::BufferPtr wrap(void* native, size_t bytes) override { return inner_->wrap(native, bytes); }
  std::unique_ptr<backend::Stream> make_stream(void* native) override { return inner_->make_stream(native); }
  backend::ProgramPtr load(const artifact::KernelBinary& binary,
                           const std::vector<std::string>& kernels) override {
    return inner_->load(binary, kernels);
  }
  backend::Compiler* compiler() override { return this; }
  int64_t free_memory_bytes() override { return inner_->free_memory_bytes(); }
  artifact::KernelBinary compile(const artifact::KernelSource&) override {
    throw Error(code_, "as the test asked");
  }
  std::string version() const override { return "failing"; }

 private:
  Code code_;
  backend::DevicePtr inner_ = backend::open_device("null:0");
};

TEST(Defaults, AFailureKeepsItsCodeAndNamesScheduleAndRegion) {
  const test::TextFamily family("anything");
  plan::PlannedWorkload planned;
  planned.workload = test::unary_workload(ir::Op::relu);
  planned.family = &family;
  planned.facts = ir::facts_at(planned.workload.graph, {{"s0", 10}});
  planned.schedule = {"text", "only", {}};
  planned.uses = {"Relu_7"};
  for (const Code code :
       {Code::kCompileFailed, Code::kOutOfMemory, Code::kLaunchFailed, Code::kTimedOut, Code::kUnsupported}) {
    const auto device = std::make_shared<FailingDevice>(code);
    measure::TrialRunner runner(device, std::make_shared<jit::KernelCache>(device, ""));
    const Settings settings;
    const Listener listener;
    std::map<std::string, Tuned> results;
    int64_t trials = 0;
    const TuningContext context{device, &runner, nullptr, "e", &settings, &listener, &results, &trials};
    try {
      measure_defaults(context, {{planned.workload.hash, planned}}, "build and check");
      ADD_FAILURE() << "no error for " << code_name(code);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      for (const char* word : {"text/only", "Relu_7", "as the test asked"})
        EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  }
}

// Would catch weights that take a trial to change, or that choose by latency whatever they say.
TEST(Defaults, OtherWeightsChooseOtherRecordsWithoutATrial) {
  const std::string path = testing::TempDir() + "/reweight/store.sqlite";
  std::filesystem::remove_all(std::filesystem::path(path).parent_path());
  store::Store store(path);
  const test::TextFamily family("anything");
  plan::PlannedWorkload planned;
  planned.workload = test::unary_workload(ir::Op::relu);
  planned.family = &family;
  planned.facts = ir::facts_at(planned.workload.graph, {{"s0", 1000}});
  planned.schedule = {"text", "default", {}};
  planned.uses = {"Relu_7"};
  const std::string environment = store.put_environment("{}");
  const auto device = backend::open_device("null:0");
  measure::TrialRunner runner(device, std::make_shared<jit::KernelCache>(device, ""));
  TuningContext keys;
  keys.runner = &runner;
  keys.environment = environment;
  const auto keep = [&](const char* tactic, double us, double concurrent_us, int64_t bytes) {
    artifact::TuningRecord r = record_of(keys, planned, {"text", tactic, {}});
    r.measurement.outcome = artifact::Outcome::kOk;
    r.measurement.time_us = us;
    r.measurement.error = 0;
    r.measurement.error_limit = 1;
    r.measurement.concurrent_us = concurrent_us;
    r.measurement.temporary_bytes = bytes;
    store.add(r);
  };
  keep("default", 100, 90, 1 << 20);
  keep("quick", 80, 79, 1 << 20);
  keep("shares", 90, 30, 1 << 20);
  keep("slim", 99, 89, 0);
  const Listener listener;
  for (const auto& [weights, tactic] : std::vector<std::pair<RewardWeights, const char*>>{
           {{1, 0, 0}, "quick"}, {{0, 1, 0}, "shares"}, {{0, 0, 1}, "slim"}, {{0.6, 0.3, 0.1}, "slim"}}) {
    Settings settings;
    settings.agent_config.reward_weights = weights;
    std::map<std::string, Tuned> results;
    int64_t trials = 0;
    const TuningContext context{device,    &runner,   &store,   environment,
                                &settings, &listener, &results, &trials};
    measure_defaults(context, {{planned.workload.hash, planned}}, "build and check");
    EXPECT_EQ(results.at(planned.workload.hash).schedule.tactic, tactic);
    EXPECT_EQ(trials, 0);
  }
}

}  // namespace
}  // namespace thrice::flow
