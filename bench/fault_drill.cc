// Fault drill: a search over kernels of which some hang, fault, overflow the stack, ask for too much memory,
// kill the worker, come as a damaged binary, do not compile or are wrong. Shown: the search ends, its best is
// honest and right, what each fault costs, that no device memory is lost and that this process, which holds
// the device too, goes on computing right answers on it.
//   bench_fault_drill [--device cuda:0] [--trials 200] [--run-limit 5] [--build-limit 30] [--out FILE]
// Exit code 1 where any of that does not hold. The limit of an outcome `timed_out` is the phase's in which
// the worker was killed; on OpenCL a kernel's first launch belongs to the build.
#include <fmt/format.h>

#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.h"
#include "base/rng.h"
#include "codegen/generate.h"
#include "flow/tuning.h"
#include "tests/fault_family.h"
#include "worker/runner.h"
#include "worker/serve.h"

namespace {

using namespace thrice;  // NOLINT: a program of one file
using artifact::Outcome;
using nlohmann::json;
using test::Fault;
using test::FaultFamily;

constexpr int64_t kElements = 1 << 16;

struct Event {
  Fault fault;
  Outcome outcome;
  std::string message;
  double lost_s;  // the trial, and the worker that takes its place
};

// Plays the outside: signals to the worker, damaged binaries in the cache; keeps what each fault cost.
class Drill : public measure::TrialPlace {
 public:
  Drill(backend::DevicePtr device, std::shared_ptr<jit::KernelCache> cache, worker::Runner& runner)
      : device_(std::move(device)), cache_(std::move(cache)), runner_(runner), here_(device_, cache_) {}

  measure::TrialResult run(const ir::Workload& workload, measure::Oracle& oracle,
                           const measure::Job& job) override {
    const Fault fault = test::fault_of(job.source.text);
    std::thread killer;
    runner_.require_worker();
    if (fault == Fault::kAbort || fault == Fault::kKilled)
      killer = std::thread([pid = runner_.pid(), signal = fault == Fault::kAbort ? SIGABRT : SIGKILL] {
        std::this_thread::sleep_for(std::chrono::milliseconds(1000));
        if (pid > 1) ::kill(pid, signal);
        // LLVM returns from the first SIGABRT of another process and restores the default.
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        if (pid > 1 && signal == SIGABRT) ::kill(pid, signal);
      });
    if (fault == Fault::kCorruptBinary) {
      artifact::KernelBinary garbage;
      garbage.format = device_->spec().api == target::Api::kCuda ? artifact::BinaryFormat::kCubin
                                                                 : artifact::BinaryFormat::kOpenCLBinary;
      garbage.architecture = device_->spec().architecture;
      garbage.key = job.source.key;
      for (int i = 0; i < 4096; ++i) garbage.bytes.push_back(static_cast<std::byte>(i * 31 % 251));
      cache_->put(job.source, garbage);
    }
    const double begin = monotonic_us();
    measure::TrialResult result = runner_.run(workload, oracle, job);
    if (fault != Fault::kNone) {
      runner_.require_worker();
      events.push_back(
          {fault, result.measurement.outcome, result.measurement.message, (monotonic_us() - begin) * 1e-6});
      check_neighbour(workload, oracle);
    }
    if (killer.joinable()) killer.join();
    return result;
  }
  std::vector<measure::Timing> compare(const ir::Workload& workload, measure::Oracle& oracle,
                                       const std::vector<measure::Contender>& contenders,
                                       const measure::TimingOptions& timing) override {
    return runner_.compare(workload, oracle, contenders, timing);
  }
  void prepare(const ir::Workload& workload, const std::vector<ir::Fact>& facts,
               const std::vector<measure::Contender>& coming) override {
    std::vector<measure::Contender> some;  // a binary to be damaged must not be built anew in time
    for (const measure::Contender& contender : coming)
      if (test::fault_of(contender.source.text) != Fault::kCorruptBinary) some.push_back(contender);
    runner_.prepare(workload, facts, some);
  }
  target::DeviceSpec probe() override { return runner_.probe(); }
  size_t lookahead() const override { return runner_.lookahead(); }
  std::string lost() const override { return runner_.lost(); }

  std::vector<Event> events;
  int neighbour_checks = 0, neighbour_wrong = 0;

 private:
  // This process holds the device as another user's would: its own kernel, judged by the full screening gate.
  void check_neighbour(const ir::Workload& workload, measure::Oracle& oracle) {
    static const FaultFamily honest({Fault::kNone});
    ++neighbour_checks;
    const auto result = here_.run(workload, honest, FaultFamily::schedule(0), oracle, {});
    if (result.measurement.outcome == Outcome::kOk) return;
    ++neighbour_wrong;
    std::cerr << "this process was harmed: " << result.measurement.message << "\n";
  }

  backend::DevicePtr device_;
  std::shared_ptr<jit::KernelCache> cache_;
  worker::Runner& runner_;
  measure::TrialRunner here_;
};

// Candidate 0 is the honest default; then one in three is a fault of some kind, hangs the rarest.
std::vector<Fault> make_table(size_t candidates) {
  std::vector<Fault> table(candidates, Fault::kNone);
  Rng rng(7);
  for (size_t c = 1; c < candidates; ++c) {
    if (rng.below(3) != 0) continue;
    auto fault = static_cast<Fault>(1 + rng.below(test::kFaults - 1));
    if (fault == Fault::kHang && rng.below(2) != 0) fault = Fault::kIllegalAddress;
    table[c] = fault;
  }
  for (int f = 1; f < test::kFaults; ++f)  // each at least once among the first
    if (static_cast<size_t>(f) < candidates) table[static_cast<size_t>(f)] = static_cast<Fault>(f);
  return table;
}

int drill(const std::string& device_id, int64_t most, const worker::Limits& limits, const std::string& out,
          const std::string& command) {
  const backend::DevicePtr device = backend::open_device(device_id);
  const std::string folder =
      (std::filesystem::temp_directory_path() / fmt::format("thrice_drill_{}", ::getpid())).string();
  const auto cache = std::make_shared<jit::KernelCache>(device, folder + "/kernels");
  worker::RunnerOptions options;
  options.limits = limits;
  // Kernels that run for ever until they get a signal must not do so ahead of their trial.
  if (device->spec().is_cpu) options.builders = 1;
  worker::Runner runner(device, cache, options);
  auto owned = std::make_unique<Drill>(device, cache, runner);
  Drill& place = *owned;
  measure::TrialRunner trials(device, std::move(owned));

  const FaultFamily family(make_table(static_cast<size_t>(most) * 2));
  plan::PlannedWorkload planned;
  planned.workload = test::unary_workload(ir::Op::relu);
  planned.family = &family;
  planned.facts = ir::facts_at(planned.workload.graph, {{"s0", kElements}});
  planned.schedule = FaultFamily::schedule(0);
  planned.uses = {"drill"};
  const std::map<std::string, plan::PlannedWorkload> workloads{{planned.workload.hash, planned}};
  flow::Settings settings;
  settings.agent = "random";
  settings.max_trials = most;
  const flow::Listener listener{[](const flow::Progress& p) {
                                  if (p.done % 20 == 0)
                                    std::cerr << p.phase << " " << p.done << "/" << p.total << "\n";
                                },
                                {}};
  std::map<std::string, flow::Tuned> results;
  int64_t made = 0;
  flow::TuningContext context;
  context.device = device;
  context.runner = &trials;
  context.settings = &settings;
  context.listener = &listener;
  context.results = &results;
  context.trials = &made;
  store::Store store(folder + "/store.sqlite");
  context.store = &store;
  context.environment = store.put_environment("{}");

  const double begin = monotonic_us();
  flow::measure_defaults(context, workloads, "build and check");
  runner.stop();
  const int64_t free_before = device->free_memory_bytes();  // without a worker
  flow::tune(context, workloads, 1e300);
  std::vector<std::string> notes;
  flow::confirm(context, workloads, notes);
  const double seconds = (monotonic_us() - begin) * 1e-6;
  runner.require_worker();  // the device still serves a fresh one
  runner.stop();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const int64_t free_after = device->free_memory_bytes();

  const flow::Tuned& tuned = results.at(planned.workload.hash);
  int64_t fewest = 1 << 30, ended = 0;
  for (const auto& r : store.all()) {
    ++ended;
    if (r.measurement.outcome == Outcome::kOk && family.fault(r.schedule) == Fault::kNone)
      fewest = std::min<int64_t>(fewest, FaultFamily::rounds(r.schedule));
  }
  json by_fault = json::object();
  bool in_time = true;
  for (const Event& e : place.events) {
    json& entry = by_fault[test::fault_name(e.fault)];
    if (entry.is_null()) entry = {{"outcomes", json::object()}};
    const double limit = e.outcome != Outcome::kTimedOut                   ? 0
                         : e.message.find("building") != std::string::npos ? limits.build_s
                         : e.message.find("device") != std::string::npos
                             ? std::max(limits.run_s, limits.first_run_s)
                             : limits.host_s;
    // A worker that is sent a signal had run for a second by then: that is the drill's, not the fault's.
    const double signalled = e.fault == Fault::kAbort || e.fault == Fault::kKilled ? 1.0 : 0.0;
    const double beyond = e.lost_s - limit - signalled;
    entry["times"] = entry.value("times", 0) + 1;
    entry["most_lost_s"] = std::max(entry.value("most_lost_s", 0.0), e.lost_s);
    entry["most_beyond_limit_s"] = std::max(entry.value("most_beyond_limit_s", 0.0), beyond);
    entry["outcomes"][artifact::outcome_name(e.outcome)] =
        entry["outcomes"].value(artifact::outcome_name(e.outcome), 0) + 1;
    entry["example"] = e.message;
    in_time = in_time && beyond <= 3.0;
  }
  const bool best_right = family.fault(tuned.schedule) == Fault::kNone && notes.empty();
  const double leak_mib = static_cast<double>(free_before - free_after) / (1 << 20);
  // On a card nobody else may allocate meanwhile; the host's free memory is everybody's.
  const bool no_leak = device->spec().is_cpu || free_before < 0 || leak_mib < 64;
  const json report = {
      {"device", device->spec().name},
      {"driver", device->spec().driver},
      {"command", command},
      {"unix_time", unix_time()},
      {"trials", made},
      {"seconds", seconds},
      {"limits_s", {{"build", limits.build_s}, {"run", limits.run_s}, {"first_run", limits.first_run_s}}},
      {"faults_that_cost_a_worker", runner.faults()},
      {"probes", runner.probes()},
      {"search_ended", runner.lost().empty() && made >= std::min<int64_t>(most, ended)},
      {"best", tuned.schedule.str()},
      {"best_us", tuned.best.time_us},
      {"default_us", tuned.by_default.time_us},
      {"best_rounds", FaultFamily::rounds(tuned.schedule)},
      {"fewest_rounds_tried", fewest},
      {"best_is_honest_and_verified", best_right},
      {"time_lost_within_limit_and_3_s", in_time},
      {"device_memory_free_before", free_before},
      {"device_memory_free_after", free_after},
      {"no_device_memory_lost", no_leak},
      {"device_is_cpu", device->spec().is_cpu},
      {"checks_of_this_process_between_faults", place.neighbour_checks},
      {"of_which_wrong", place.neighbour_wrong},
      {"faults", by_fault}};
  std::cout << report.dump(1) << "\n";
  if (!out.empty()) std::ofstream(out) << report.dump(1) << "\n";
  std::filesystem::remove_all(folder);
  return best_right && in_time && no_leak && place.neighbour_wrong == 0 && runner.lost().empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  ::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);
  if (const auto code = worker::serve_if_worker(argc, argv)) return *code;
  std::string device, out, trials = "200", run = "5", build = "30", command = "bench_fault_drill";
  for (int i = 1; i + 1 < argc; i += 2) {
    std::map<std::string, std::string*> flags = {{"--device", &device},
                                                 {"--out", &out},
                                                 {"--trials", &trials},
                                                 {"--run-limit", &run},
                                                 {"--build-limit", &build}};
    if (flags.count(argv[i]) == 0) {
      std::cerr << "no flag '" << argv[i] << "'; the head of bench/fault_drill.cc names them\n";
      return 2;
    }
    *flags[argv[i]] = argv[i + 1];
    if (std::string(argv[i]) != "--out") command += fmt::format(" {} {}", argv[i], argv[i + 1]);
  }
  try {
    worker::Limits limits;
    limits.run_s = std::stod(run);
    limits.first_run_s = std::stod(run);
    limits.build_s = std::stod(build);
    return drill(device, std::stoll(trials), limits, out, command);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
