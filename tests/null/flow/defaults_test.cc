// Would catch: a default schedule that fails, and an exit code that blames thrice for it whatever the reason.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace thrice::flow
