// Would catch: a kernel that hangs, faults or kills and takes the run with it; an outcome that does not say
// what happened; a worker that outlives its parent or falls to Ctrl-C; a search that ends, or ends wrong,
// because of a fault; trials that mean something else in a worker than in the process.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "codegen/generate.h"
#include "fault_family.h"
#include "flow/tuning.h"
#include "worker/runner.h"

namespace thrice::worker {
namespace {

using artifact::Outcome;
using test::Fault;
using test::FaultFamily;

std::vector<Fault> every_fault() {
  std::vector<Fault> table;
  for (int f = 0; f < test::kFaults; ++f) table.push_back(static_cast<Fault>(f));
  return table;
}

RunnerOptions options() {
  RunnerOptions o;
  o.executable = THRICE_EXECUTABLE;
  o.limits.build_s = 8;
  o.limits.run_s = 3;
  o.limits.first_run_s = 3;
  o.builders = 1;  // kernels that run for ever until they get a signal must not do so ahead of their trial
  return o;
}

// Sends a signal to the worker a moment after a trial has begun that runs long for it.
class WithSignals : public measure::TrialPlace {
 public:
  explicit WithSignals(std::unique_ptr<Runner> runner) : runner(std::move(runner)) {}
  measure::TrialResult run(const ir::Workload& workload, measure::Oracle& oracle,
                           const measure::Job& job) override {
    const Fault fault = test::fault_of(job.source.text);
    std::thread killer;
    if (fault == Fault::kAbort || fault == Fault::kKilled) {
      runner->require_worker();
      const pid_t pid = runner->pid();
      const int signal = fault == Fault::kAbort ? SIGABRT : SIGKILL;
      killer = std::thread([pid, signal] {
        std::this_thread::sleep_for(std::chrono::milliseconds(700));
        if (pid > 1) ::kill(pid, signal);
        // LLVM returns from the first SIGABRT of another process and restores the default.
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        if (pid > 1 && signal == SIGABRT) ::kill(pid, signal);
      });
    }
    measure::TrialResult result = runner->run(workload, oracle, job);
    if (killer.joinable()) killer.join();
    return result;
  }
  std::vector<measure::Timing> compare(const ir::Workload& workload, measure::Oracle& oracle,
                                       const std::vector<measure::Contender>& contenders,
                                       const measure::TimingOptions& timing) override {
    return runner->compare(workload, oracle, contenders, timing);
  }
  target::DeviceSpec probe() override { return runner->probe(); }
  std::string lost() const override { return runner->lost(); }
  bool drop_fences() override { return runner->drop_fences(); }
  std::unique_ptr<Runner> runner;
};

class Workers : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const auto& r : backend::list_backends())
      if (r.name == "opencl" && r.available && r.devices[0].is_cpu) device = backend::open_device("opencl:0");
    if (!device) GTEST_SKIP() << "skipped: no OpenCL device on the CPU";
    cache = std::make_shared<jit::KernelCache>(device, "");
    auto owned = std::make_unique<WithSignals>(std::make_unique<Runner>(device, cache, options()));
    worker = owned->runner.get();
    runner = std::make_unique<measure::TrialRunner>(device, std::move(owned));
    oracle = std::make_unique<measure::Oracle>(workload, ir::facts_at(workload.graph, {{"s0", 4000}}));
  }
  measure::TrialResult run(Fault fault) {
    return runner->run(workload, family, FaultFamily::schedule(static_cast<int64_t>(fault)), *oracle, {});
  }
  void expect(Fault fault, Outcome outcome, const std::string& words) {
    const double begin = monotonic_us();
    const measure::TrialResult r = run(fault);
    const double seconds = (monotonic_us() - begin) * 1e-6;
    EXPECT_EQ(r.measurement.outcome, outcome) << fault_name(fault) << ": " << r.measurement.message;
    EXPECT_NE(r.measurement.message.find(words), std::string::npos)
        << fault_name(fault) << ": " << r.measurement.message;
    EXPECT_LE(seconds, (outcome == Outcome::kTimedOut ? options().limits.build_s : 0) + 10)
        << fault_name(fault);
    const measure::TrialResult after = run(Fault::kNone);
    EXPECT_EQ(after.measurement.outcome, Outcome::kOk)
        << "after " << fault_name(fault) << ": " << after.measurement.message;
  }

  backend::DevicePtr device;
  std::shared_ptr<jit::KernelCache> cache;
  Runner* worker = nullptr;
  std::unique_ptr<measure::TrialRunner> runner;
  ir::Workload workload = test::unary_workload(ir::Op::relu);
  FaultFamily family{every_fault()};
  std::unique_ptr<measure::Oracle> oracle;
};

TEST_F(Workers, ATrialSaysTheSameAsInTheProcess) {
  measure::TrialRunner here(device, cache);
  const artifact::Schedule schedule = FaultFamily::schedule(0);
  for (const measure::Gate gate : {measure::Gate::kScreening, measure::Gate::kFull}) {
    measure::TrialOptions how;
    how.gate = gate;
    const measure::TrialResult a = here.run(workload, family, schedule, *oracle, how);
    const measure::TrialResult b = runner->run(workload, family, schedule, *oracle, how);
    EXPECT_EQ(b.measurement.outcome, Outcome::kOk) << b.measurement.message;
    EXPECT_EQ(a.measurement.error, b.measurement.error);
    EXPECT_EQ(a.measurement.error_limit, b.measurement.error_limit);
    EXPECT_EQ(a.source_key, b.source_key);
    EXPECT_GT(b.measurement.time_us, 0);
    EXPECT_GT(b.cost.check, 0);
  }
  for (const Fault fault : {Fault::kNoCompile, Fault::kWrong, Fault::kOutOfMemory}) {
    const artifact::Schedule bad = FaultFamily::schedule(static_cast<int64_t>(fault));
    const measure::TrialResult a = here.run(workload, family, bad, *oracle, {});
    const measure::TrialResult b = runner->run(workload, family, bad, *oracle, {});
    EXPECT_EQ(a.measurement.outcome, b.measurement.outcome) << fault_name(fault);
    EXPECT_EQ(a.failure, b.failure);
    EXPECT_FALSE(b.measurement.message.empty());
  }
  EXPECT_EQ(worker->faults(), 0);
  EXPECT_EQ(
      here.run(workload, family, FaultFamily::schedule(static_cast<int64_t>(Fault::kReadBeyond)), *oracle, {})
          .measurement.outcome,
      Outcome::kOk)
      << "guard zones do not show a read without effect";
  const auto timings =
      runner->compare(workload, family, {FaultFamily::schedule(0), FaultFamily::schedule(0)}, *oracle, {});
  ASSERT_EQ(timings.size(), 2u);
  EXPECT_GT(timings[1].median_us, 0);
}

TEST_F(Workers, EachFaultHasItsOutcomeAndTheNextTrialRuns) {
  expect(Fault::kIllegalAddress, Outcome::kLaunchFailed, "signal 11");
  expect(Fault::kStackOverflow, Outcome::kLaunchFailed, "signal 11");
  expect(Fault::kOutOfMemory, Outcome::kOutOfMemory, " bytes");
  expect(Fault::kReadBeyond, Outcome::kLaunchFailed, "signal 11");
  expect(Fault::kAbort, Outcome::kLaunchFailed, "signal 6");
  expect(Fault::kKilled, Outcome::kLaunchFailed, "signal 9");
  expect(Fault::kHang, Outcome::kTimedOut, "killed after 8 s");
  EXPECT_EQ(worker->faults(), 6);
  EXPECT_EQ(worker->probes(), 6) << "each fault is followed by an honest kernel";
  EXPECT_TRUE(runner->place().lost().empty());
}

// Candidates are built beside the trial of another one, and stand still while it is timed.
TEST_F(Workers, CandidatesAreBuiltAheadAndFaultsThereAreTrialsOwn) {
  std::vector<Fault> table(8, Fault::kNone);
  table[2] = Fault::kIllegalAddress;
  table[4] = Fault::kHang;
  const FaultFamily mixed(table);
  RunnerOptions how = options();
  how.builders = 2;
  how.limits.build_s = 6;
  auto owned = std::make_unique<Runner>(device, cache, how);
  if (owned->lookahead() < 2) GTEST_SKIP() << "skipped: one core";
  const Runner& ahead = *owned;
  measure::TrialRunner trials(device, std::move(owned));
  std::vector<artifact::Schedule> all;
  for (int64_t c = 0; c < 8; ++c) all.push_back(FaultFamily::schedule(c));
  trials.prepare(workload, mixed, oracle->facts(), all);
  std::vector<Outcome> outcomes;
  for (const artifact::Schedule& schedule : all)
    outcomes.push_back(trials.run(workload, mixed, schedule, *oracle, {}).measurement.outcome);
  for (size_t c = 0; c < 8; ++c) {
    const Outcome expected = table[c] == Fault::kNone   ? Outcome::kOk
                             : table[c] == Fault::kHang ? Outcome::kTimedOut
                                                        : Outcome::kLaunchFailed;
    EXPECT_EQ(outcomes[c], expected) << c << ": " << outcome_name(outcomes[c]);
  }
  EXPECT_GE(ahead.built_ahead(), 1);
  EXPECT_TRUE(trials.place().lost().empty());
}

// A driver takes a third of a second to start: it does so while the first kernels are built.
TEST_F(Workers, AWorkerStartsWhenTrialsAreAnnounced) {
  EXPECT_EQ(worker->pid(), -1);
  worker->prepare(workload, oracle->facts(), {});
  EXPECT_EQ(worker->pid(), -1) << "nothing was announced";
  measure::Contender coming;
  coming.source = codegen::generate(workload, family, FaultFamily::schedule(0), device->spec(),
                                    artifact::Language::kOpenCL);
  coming.launches = family.launch(workload, FaultFamily::schedule(0), oracle->facts());
  worker->prepare(workload, oracle->facts(), {coming});
  const pid_t early = worker->pid();
  EXPECT_GT(early, 1);
  EXPECT_EQ(run(Fault::kNone).measurement.outcome, Outcome::kOk);
  EXPECT_EQ(worker->pid(), early) << "it was there already";

  RunnerOptions broken = options();
  broken.executable = "/nowhere";
  Runner other(device, cache, broken);
  other.prepare(workload, oracle->facts(), {coming});
  EXPECT_THROW(other.require_worker(), Error) << "the trial says so, not its announcement";
}

TEST_F(Workers, PeaksAreProbedInTheWorker) {
  const target::DeviceSpec spec = runner->probe();
  EXPECT_GT(spec.bandwidth_gbs, 0.1);
  EXPECT_GT(spec.f32_gflops, 0.1);
  EXPECT_EQ(spec.peaks_source, "probe");
  const pid_t pid = worker->pid();
  ASSERT_GT(pid, 1);
  ::kill(pid, SIGKILL);
  EXPECT_THROW(runner->probe(), Error) << "the worker was gone";
  EXPECT_EQ(run(Fault::kNone).measurement.outcome, Outcome::kOk);
}

TEST_F(Workers, CtrlCDoesNotReachAWorker) {
  EXPECT_EQ(run(Fault::kNone).measurement.outcome, Outcome::kOk);
  const pid_t pid = worker->pid();
  ASSERT_GT(pid, 1);
  ::kill(pid, SIGINT);
  ::kill(pid, SIGTERM);
  EXPECT_EQ(run(Fault::kNone).measurement.outcome, Outcome::kOk);
  EXPECT_EQ(worker->pid(), pid);
}

TEST_F(Workers, TwoFailedProbesEndIt) {
  RunnerOptions broken = options();
  broken.executable = "/bin/false";
  measure::TrialRunner none(device, std::make_unique<Runner>(device, cache, broken));
  EXPECT_THROW(none.run(workload, family, FaultFamily::schedule(0), *oracle, {}), Error);
  EXPECT_NE(none.place().lost().find("exit code 1"), std::string::npos) << none.place().lost();
}

TEST_F(Workers, ASearchGoesThroughFaultsToTheBest) {
  const std::string folder = ::testing::TempDir() + "/workers_test";
  std::filesystem::remove_all(folder);
  std::vector<Fault> table(14, Fault::kNone);
  table[3] = table[10] = Fault::kIllegalAddress;
  table[5] = Fault::kOutOfMemory;
  table[7] = Fault::kKilled;
  table[8] = Fault::kWrong;
  const FaultFamily mixed(table);
  plan::PlannedWorkload planned;
  planned.workload = workload;
  planned.family = &mixed;
  planned.facts = oracle->facts();
  planned.schedule = FaultFamily::schedule(0);
  planned.uses = {"Relu_7"};
  flow::Settings settings;
  settings.agent = "random";
  store::Store store(folder + "/store.sqlite");
  const flow::Listener listener;
  std::map<std::string, flow::Tuned> results;
  int64_t trials = 0;
  flow::TuningContext context;
  context.device = device;
  context.runner = runner.get();
  context.store = &store;
  context.environment = store.put_environment("{}");
  context.settings = &settings;
  context.listener = &listener;
  context.results = &results;
  context.trials = &trials;
  const std::map<std::string, plan::PlannedWorkload> workloads{{workload.hash, planned}};
  flow::measure_defaults(context, workloads, "build and check");
  flow::tune(context, workloads, 1e300);
  EXPECT_GE(trials, 12);
  const flow::Tuned& tuned = results.at(workload.hash);
  EXPECT_EQ(mixed.fault(tuned.schedule), Fault::kNone);
  std::vector<std::string> notes;
  flow::confirm(context, workloads, notes);
  EXPECT_TRUE(notes.empty()) << notes[0];
  int faults = 0;
  for (const auto& r : store.all())
    if (mixed.fault(r.schedule) == Fault::kIllegalAddress || mixed.fault(r.schedule) == Fault::kKilled) {
      ++faults;
      EXPECT_EQ(r.measurement.outcome, Outcome::kLaunchFailed);
      EXPECT_NE(r.measurement.message.find("quarantined"), std::string::npos) << r.measurement.message;
    }
  EXPECT_EQ(worker->faults(), faults);
  EXPECT_GE(faults, 2);
  const int64_t rows = store.size();
  flow::tune(context, workloads, 1e300);  // what is known is not tried again
  EXPECT_LE(store.size() - rows, 4);
  EXPECT_EQ(worker->faults(), faults);
}

TEST_F(Workers, ADefaultThatKillsItsWorkerEndsTheRunWithTheReason) {
  for (const Fault fault : {Fault::kReadBeyond, Fault::kIllegalAddress}) {
    const FaultFamily deadly({fault});
    plan::PlannedWorkload planned;
    planned.workload = workload;
    planned.family = &deadly;
    planned.facts = oracle->facts();
    planned.schedule = FaultFamily::schedule(0);
    planned.uses = {"Relu_7"};
    const flow::Settings settings;
    const flow::Listener listener;
    std::map<std::string, flow::Tuned> results;
    int64_t trials = 0;
    flow::TuningContext context;
    context.device = device;
    context.runner = runner.get();
    context.settings = &settings;
    context.listener = &listener;
    context.results = &results;
    context.trials = &trials;
    try {
      flow::measure_defaults(context, {{workload.hash, planned}}, "build and check");
      EXPECT_EQ(fault, Fault::kReadBeyond) << "a deadly default passed";
      ASSERT_EQ(worker->notes().size(), 2u);
      EXPECT_NE(worker->notes()[1].find("without"), std::string::npos) << worker->notes()[1];
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kLaunchFailed);
      EXPECT_NE(std::string(error.what()).find("signal 11"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("Relu_7"), std::string::npos) << error.what();
      EXPECT_EQ(fault, Fault::kIllegalAddress) << error.what();
    }
  }
}

bool runs(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(stat, text);
  const size_t state = text.rfind(')');
  return state != std::string::npos && text.size() > state + 2 && text[state + 2] != 'Z';
}

TEST_F(Workers, AKilledParentLeavesNoOrphan) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  // The parent to be killed is a process of its own, which starts its driver after the fork.
  const pid_t parent = ::fork();
  if (parent == 0) {
    Child child(THRICE_EXECUTABLE, {"worker", "--device", "null:0"}, 0);
    Message hello;
    child.channel().receive(hello, 1e300);
    const pid_t pid = child.pid();
    if (::write(ends[1], &pid, sizeof(pid)) != sizeof(pid)) ::_exit(1);
    ::pause();
    ::_exit(0);
  }
  pid_t pid = -1;
  ASSERT_EQ(::read(ends[0], &pid, sizeof(pid)), static_cast<ssize_t>(sizeof(pid)));
  EXPECT_TRUE(runs(pid));
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  const double begin = monotonic_us();
  while (runs(pid) && monotonic_us() - begin < 5e6) ::usleep(20000);
  EXPECT_FALSE(runs(pid)) << "worker " << pid << " outlived its parent";
  ::close(ends[0]);
  ::close(ends[1]);
}

// CUDA texts of the drill build too, in as many processes as are asked for.
TEST(Builders, BuildAheadAndSayWhatFails) {
  std::string version;
  try {
    version = backend::cross_compiler("sm_90a")->version();
  } catch (const Error& error) {
    GTEST_SKIP() << "skipped: " << error.what();
  }
  Builders builders(THRICE_EXECUTABLE, "sm_90a", version, 2, options().limits);
  const ir::Workload workload = test::unary_workload(ir::Op::relu);
  const FaultFamily family(every_fault());
  target::DeviceSpec spec;
  spec.api = target::Api::kCuda;
  std::vector<artifact::KernelSource> sources;
  for (int f = 0; f < test::kFaults; ++f)
    sources.push_back(
        codegen::generate(workload, family, FaultFamily::schedule(f), spec, artifact::Language::kCuda));
  builders.submit(sources);
  int built_ahead = 0;
  for (int f = 0; f < test::kFaults; ++f) {
    const auto built = builders.take(sources[static_cast<size_t>(f)].key);
    if (!built) continue;  // not begun yet: it is the caller's to build
    ++built_ahead;
    const bool builds = static_cast<Fault>(f) != Fault::kNoCompile;
    EXPECT_EQ(built->binary.has_value(), builds)
        << test::fault_name(static_cast<Fault>(f)) << ": " << built->message;
    EXPECT_EQ(built->code, builds ? Code::kOk : Code::kCompileFailed);
    EXPECT_TRUE(!builds || !built->binary->bytes.empty());
  }
  EXPECT_GE(built_ahead, 2);
  for (const auto& source : sources) {  // one at a time: none is left out
    builders.submit({source});
    const auto built = builders.take(source.key);
    ASSERT_TRUE(built.has_value());
    EXPECT_EQ(built->binary.has_value(), test::fault_of(source.text) != Fault::kNoCompile) << built->message;
  }
  Builders one(THRICE_EXECUTABLE, "sm_90a", version, 1, options().limits);
  one.submit({sources[0], sources[1]});
  one.submit_last({sources[2]});
  one.submit({sources[3]});  // before what waits
  ASSERT_TRUE(one.take(sources[0].key).has_value());
  one.submit({});  // the seat is free: the next one begins
  EXPECT_FALSE(one.take(sources[1].key).has_value()) << "built before what was asked for later";
  EXPECT_TRUE(one.take(sources[3].key).has_value());
  one.submit_last({sources[1], sources[2]});
  one.finish_all();
  for (const size_t s : {1, 2}) EXPECT_TRUE(one.take(sources[s].key).has_value());
  Builders other(THRICE_EXECUTABLE, "sm_90a", "another version", 1, options().limits);
  other.submit({sources[0]});
  EXPECT_FALSE(other.take(sources[0].key).has_value()) << "a builder with another compiler was believed";
}

}  // namespace
}  // namespace thrice::worker
