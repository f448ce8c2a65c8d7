// Would catch: a kernel that takes the process with it and is tried again by every later run, and a store
// that loses its trials or its reason.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "flow/environment.h"
#include "flow/tuning.h"
#include "measure_fixture.h"

namespace thrice::flow {
namespace {

using artifact::Outcome;
using artifact::Schedule;

// relu; the schedule a=3 writes to address zero, which a CPU device does not survive.
class OneDeadly : public test::TextFamily {
 public:
  OneDeadly() : TextFamily("") {}
  Schedule default_schedule(const ir::Workload&, const std::vector<ir::Fact>&,
                            const target::DeviceSpec&) const override {
    return {"text", "only", {{"a", 1}}};
  }
  artifact::ScheduleSpace space(const ir::Workload&, const std::vector<ir::Fact>&,
                                const target::DeviceSpec&) const override {
    artifact::ScheduleSpace space;
    space.tactics = {{"text", "only", {{"a", {1, 2, 3, 4}}}}};
    return space;
  }
  family::ProgramText emit(const ir::Workload&, const Schedule& schedule,
                           const target::DeviceSpec&) const override {
    return {test::kernel_text(schedule.get("a") == 3
                                  ? "if (i < n) ((TH_GLOBAL float*)(size_t)(n - 1000))[i] = 1;"
                                  : "if (i < n) y[i] = x[i] > 0 ? x[i] : x[i] != x[i] ? x[i] : 0;"),
            {"k"}};
  }
};

// Opens the device and tunes until nothing is left; 0, or what went wrong. Runs in a process of its own.
int tune_all(const std::string& store_path) {
  const OneDeadly family;
  plan::PlannedWorkload planned;
  planned.workload = test::unary_workload(ir::Op::relu);
  planned.family = &family;
  planned.facts = ir::facts_at(planned.workload.graph, {{"s0", 1000}});
  planned.schedule = {"text", "only", {{"a", 1}}};
  planned.uses = {"Relu_7"};
  try {
    const backend::DevicePtr device = backend::open_device("opencl:0");
    measure::TrialRunner runner(device, std::make_shared<jit::KernelCache>(device, ""));
    store::Store store(store_path);
    const Settings settings;
    const Listener listener;
    std::map<std::string, Tuned> results;
    int64_t trials = 0;
    const TuningContext context{device,    &runner,   &store,   store.put_environment("{}"),
                                &settings, &listener, &results, &trials};
    const std::map<std::string, plan::PlannedWorkload> workloads{{planned.workload.hash, planned}};
    measure_defaults(context, workloads, "build and check");
    tune(context, workloads, 1e300);
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}

// The status of a process that tunes.
int tune_in_a_process(const std::string& store_path) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    alarm(120);
    _exit(tune_all(store_path));
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST(Quarantine, AKernelThatKillsTheProcessDoesSoOnce) {
  // Asked in a process of its own: a driver that was started here would not survive the forks below.
  const pid_t asker = fork();
  if (asker == 0) {
    int code = 1;
    for (const auto& r : backend::list_backends())
      if (r.name == "opencl" && r.available && r.devices[0].is_cpu) code = 0;
    _exit(code);
  }
  int answer = -1;
  waitpid(asker, &answer, 0);
  if (answer != 0) GTEST_SKIP() << "skipped: no OpenCL device on the CPU";

  const std::string folder = ::testing::TempDir() + "/quarantine_test";
  std::filesystem::remove_all(folder);
  const std::string path = folder + "/store.sqlite";
  const int first = tune_in_a_process(path);
  EXPECT_TRUE(WIFSIGNALED(first)) << "the deadly kernel did not kill: " << first;
  int deadly = 0;
  {
    store::Store store(path);
    for (const auto& r : store.all())
      if (r.schedule.get("a") == 3) {
        ++deadly;
        EXPECT_EQ(r.measurement.outcome, Outcome::kLaunchFailed);
        EXPECT_NE(r.measurement.message.find("quarantined"), std::string::npos) << r.measurement.message;
      }
    EXPECT_EQ(deadly, 1);
    EXPECT_GE(store.size(), 2);
    EXPECT_EQ(store.damaged_rows(), 0);
  }
  EXPECT_EQ(tune_in_a_process(path), 0) << "it was tried again";
  store::Store store(path);
  std::map<int64_t, std::string> outcomes;
  for (const auto& r : store.all()) {
    EXPECT_EQ(outcomes.count(r.schedule.get("a")), 0u) << "twice: " << r.schedule.str();
    outcomes[r.schedule.get("a")] = outcome_name(r.measurement.outcome);
  }
  EXPECT_EQ(outcomes,
            (std::map<int64_t, std::string>{{1, "ok"}, {2, "ok"}, {3, "launch_failed"}, {4, "ok"}}));
}

}  // namespace
}  // namespace thrice::flow
