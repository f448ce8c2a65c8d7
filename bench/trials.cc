// How many trials a second, with and without worker processes, and where their time goes; and how equal the
// choices of repeated tuning are.
//   bench_trials [--device opencl:0] [--shape 256x256x256] [--trials 24] [--passes 2] [--repeat 0] [--budget
//   20]
//                [--agent greedy] [--states 0] [--where both] [--out FILE]
// --passes: pairs of (in this process, in a worker) over the same schedules of a float32 product; each pass
// builds anew; --where worker leaves the first of each pair out. --repeat N: the product is tuned N times
// from cold with --budget trials each, then all that was chosen is timed interleaved: regret is a choice's
// time over the best choice's, less one. --states N: the default and N - 1 others with warm and cold caches,
// after a rest, as it comes, and after a second of load.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/clock.h"
#include "bench/one_operator.h"
#include "family/matmul/matmul.h"
#include "flow/tuning.h"
#include "ir/check.h"
#include "tune/family_space.h"
#include "worker/runner.h"
#include "worker/serve.h"

namespace {

using namespace thrice;  // NOLINT: a program of one file
using artifact::Schedule;
using nlohmann::json;

ir::Workload make_workload(int64_t m, int64_t n, int64_t k) {
  return bench::one_operator(ir::Op::matmul, {{m, k}, {k, n}});
}

// The products' family with a function of its own in each text, so that no cache knows a pass's kernels.
class Salted : public family::Family {
 public:
  explicit Salted(std::string salt) : salt_(std::move(salt)) {}
  std::string_view name() const override { return inner_.name(); }
  family::Refusal match(const ir::Workload& w) const override { return inner_.match(w); }
  Schedule default_schedule(const ir::Workload& w, const std::vector<ir::Fact>& f,
                            const target::DeviceSpec& d) const override {
    return inner_.default_schedule(w, f, d);
  }
  artifact::ScheduleSpace space(const ir::Workload& w, const std::vector<ir::Fact>& f,
                                const target::DeviceSpec& d) const override {
    return inner_.space(w, f, d);
  }
  family::Refusal illegal(const ir::Workload& w, const Schedule& s,
                          const target::DeviceSpec& d) const override {
    return inner_.illegal(w, s, d);
  }
  family::ProgramText emit(const ir::Workload& w, const Schedule& s,
                           const target::DeviceSpec& d) const override {
    family::ProgramText text = inner_.emit(w, s, d);
    if (text.text.find("TH_KERNEL") != std::string::npos)
      text.text += fmt::format("TH_FN int salt_{}(int x) {{ return x; }}\n", salt_);
    return text;
  }
  artifact::LaunchPlan launch(const ir::Workload& w, const Schedule& s,
                              const std::vector<ir::Fact>& f) const override {
    return inner_.launch(w, s, f);
  }

 private:
  const family::Family& inner_ = family::matmul_family();
  std::string salt_;
};

class Bench {
 public:
  Bench(const std::string& device, const ir::Workload& workload)
      : device_(backend::open_device(device)),
        folder_(
            (std::filesystem::temp_directory_path() / fmt::format("thrice_trials_{}", ::getpid())).string()),
        workload_(workload),
        facts_(ir::facts_at(workload.graph, {})) {}
  ~Bench() { std::filesystem::remove_all(folder_); }

  json throughput(int64_t trials, int passes, bool worker_only) {
    const std::vector<Schedule> schedules = some_schedules(family::matmul_family(), trials);
    json all = json::array();
    double seconds[2] = {0, 0};
    for (int pass = 0; pass < passes; ++pass)
      for (const bool in_worker : {false, true}) {
        if (worker_only && !in_worker) continue;
        all.push_back(one_pass(schedules, in_worker, fmt::format("{}_{}_{:d}", ::getpid(), pass, in_worker)));
        seconds[in_worker] += all.back()["seconds"].get<double>();
        std::cerr << all.back().dump() << "\n";
      }
    const double made = static_cast<double>(schedules.size()) * passes;
    json found = {{"trials", schedules.size()}, {"passes", all}, {"a_second_in_worker", made / seconds[1]}};
    if (worker_only) return found;
    found["a_second_in_process"] = made / seconds[0];
    found["worker_over_in_process"] = seconds[1] / seconds[0];
    return found;
  }

  json noise(int repeat, int64_t budget, const std::string& agent) {
    const Salted family("noise");
    const auto cache = std::make_shared<jit::KernelCache>(device_, folder_ + "/noise");
    std::vector<Schedule> chosen;
    json runs = json::array();
    measure::TrialRunner runner(device_,
                                std::make_unique<worker::Runner>(device_, cache, worker::RunnerOptions{}));
    for (int r = 0; r < repeat; ++r) {
      const double begin = monotonic_us();
      flow::Settings settings;
      settings.agent = agent;
      settings.max_trials = budget;
      const flow::Listener listener;
      std::map<std::string, flow::Tuned> results;
      int64_t made = 0;
      flow::TuningContext context;
      context.device = device_;
      context.runner = &runner;
      context.settings = &settings;
      context.listener = &listener;
      context.results = &results;
      context.trials = &made;
      const std::map<std::string, plan::PlannedWorkload> workloads{{workload_.hash, planned(family)}};
      flow::measure_defaults(context, workloads, "build and check");
      flow::tune(context, workloads, 1e300);
      const flow::Tuned& tuned = results.at(workload_.hash);
      chosen.push_back(tuned.schedule);
      runs.push_back({{"schedule", tuned.schedule.str()},
                      {"best_us", tuned.best.time_us},
                      {"default_us", tuned.by_default.time_us},
                      {"trials", made},
                      {"seconds", (monotonic_us() - begin) * 1e-6}});
      std::cerr << runs.back().dump() << "\n";
    }
    std::map<std::string, int> counts;
    std::vector<Schedule> distinct;
    for (const Schedule& s : chosen)
      if (counts[s.str()]++ == 0) distinct.push_back(s);
    measure::Oracle oracle(workload_, facts_);
    measure::TimingOptions long_look;
    long_look.min_samples = 25;
    long_look.max_total_us = 2e6;
    const auto timings = runner.compare(workload_, family, distinct, oracle, long_look);
    double best = timings[0].median_us;
    for (const measure::Timing& t : timings) best = std::min(best, t.median_us);
    int most = 0, near = 0;
    double worst = 0, sum = 0;
    json table = json::array();
    for (size_t i = 0; i < distinct.size(); ++i) {
      const int times = counts[distinct[i].str()];
      const double regret = timings[i].median_us / best - 1;
      most = std::max(most, times);
      near += regret <= 0.01 ? times : 0;
      worst = std::max(worst, regret);
      sum += regret * times;
      table.push_back({{"schedule", distinct[i].str()},
                       {"times_chosen", times},
                       {"us", timings[i].median_us},
                       {"spread_us", timings[i].spread_us},
                       {"regret", regret}});
    }
    const double n = repeat;
    return {{"repeat", repeat},
            {"agent", agent},
            {"budget_trials", budget},
            {"share_equal", most / n},
            {"share_within_1_percent_of_best", near / n},
            {"mean_regret", sum / n},
            {"worst_regret", worst},
            {"choices", table},
            {"runs", runs}};
  }
  json states(int64_t most) {
    const family::Family& family = family::matmul_family();
    const auto cache = std::make_shared<jit::KernelCache>(device_, folder_ + "/states");
    measure::TrialRunner runner(device_,
                                std::make_unique<worker::Runner>(device_, cache, worker::RunnerOptions{}));
    measure::Oracle oracle(workload_, facts_);
    json table = json::array();
    for (const Schedule& schedule : some_schedules(family, most))
      for (const bool cold : {false, true})
        for (const char* load : {"burst", "as it comes", "sustained"}) try {
            measure::TimingOptions how;
            how.cold = cold;
            how.min_samples = 25;
            how.max_total_us = 200e3;
            how.rest_us = load[0] == 'b' ? 20e3 : 0;
            how.settle_us = load[0] == 's' ? 1e6 : 0;
            const measure::Timing t = runner.compare(workload_, family, {schedule}, oracle, how)[0];
            table.push_back({{"schedule", schedule.str()},
                             {"caches", cold ? "cold" : "warm"},
                             {"load", load},
                             {"us", t.median_us},
                             {"spread_us", t.spread_us},
                             {"samples", t.samples},
                             {"throttled_samples", t.conditions.throttled_samples},
                             {"sm_mhz", t.conditions.sm_mhz},
                             {"least_sm_mhz", t.conditions.least_sm_mhz},
                             {"memory_mhz", t.conditions.memory_mhz},
                             {"temperature_c", t.conditions.temperature_c},
                             {"power_w", t.conditions.power_w}});
          } catch (const Error& error) {
            std::cerr << schedule.str() << ": " << error.what() << "\n";
          }
    return table;
  }
  const target::DeviceSpec& spec() const { return device_->spec(); }

 private:
  // The default, then others drawn at random, each once.
  std::vector<Schedule> some_schedules(const family::Family& family, int64_t most) const {
    const tune::Space space = tune::family_space(workload_, family, facts_, device_->spec());
    std::vector<Schedule> schedules{family.default_schedule(workload_, facts_, device_->spec())};
    std::set<std::string> seen{schedules[0].str()};
    Rng rng(3);
    for (int64_t draw = 0; static_cast<int64_t>(schedules.size()) < most && draw < 20 * most; ++draw)
      if (const auto point = space.sample(rng); point && seen.insert(space.schedule(*point).str()).second)
        schedules.push_back(space.schedule(*point));
    return schedules;
  }
  plan::PlannedWorkload planned(const family::Family& family) const {
    plan::PlannedWorkload p;
    p.workload = workload_;
    p.family = &family;
    p.facts = facts_;
    p.schedule = family.default_schedule(workload_, facts_, device_->spec());
    p.uses = {"product"};
    return p;
  }

  // Of this process and of the workers that have ended; what a busy machine does not lengthen much.
  static double cpu_seconds() {
    double seconds = 0;
    for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
      rusage used{};
      getrusage(who, &used);
      seconds += static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                 static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
    }
    return seconds;
  }

  json one_pass(const std::vector<Schedule>& schedules, bool in_worker, const std::string& salt) {
    const Salted family(salt);
    const auto cache = std::make_shared<jit::KernelCache>(device_, folder_ + "/" + salt);
    std::unique_ptr<measure::TrialPlace> place;
    if (in_worker)
      place = std::make_unique<worker::Runner>(device_, cache, worker::RunnerOptions{});
    else
      place = measure::place_here(device_, cache);
    const double cpu_begin = cpu_seconds();
    auto owned = std::make_unique<measure::TrialRunner>(device_, std::move(place));
    measure::TrialRunner& runner = *owned;
    measure::Oracle oracle(workload_, facts_);
    measure::TrialCost cost;
    std::map<std::string, int> outcomes;
    double best_us = 0, first_s = 0;
    const double begin = monotonic_us();
    const size_t ahead = runner.place().lookahead();
    for (size_t i = 0; i < schedules.size(); ++i) {
      if (ahead > 1 && i % ahead == 0)
        runner.prepare(
            workload_, family, facts_,
            {schedules.begin() + static_cast<std::ptrdiff_t>(i),
             schedules.begin() + static_cast<std::ptrdiff_t>(std::min(i + 2 * ahead, schedules.size()))});
      measure::TrialOptions options;
      // Float64 answers once a round, as when tuning.
      options.seed = 5 + 2 * static_cast<uint64_t>(static_cast<int64_t>(i) / flow::kTrialsPerRound);
      options.give_up_us = 3 * best_us;
      options.both_caches = !device_->spec().is_cpu;  // as optimize does
      const auto r = runner.run(workload_, family, schedules[i], oracle, options);
      ++outcomes[artifact::outcome_name(r.measurement.outcome)];
      if (r.measurement.outcome == artifact::Outcome::kOk)
        best_us = best_us > 0 ? std::min(best_us, r.measurement.time_us) : r.measurement.time_us;
      cost.build += r.cost.build;
      cost.check += r.cost.check;
      cost.timing += r.cost.timing;
      cost.after += r.cost.after;
      if (i == 0) first_s = (monotonic_us() - begin) * 1e-6;
    }
    const double seconds = (monotonic_us() - begin) * 1e-6;
    owned.reset();  // its worker's processor time is counted when it has ended
    const double cpu = cpu_seconds() - cpu_begin;
    const double told = (cost.build + cost.check + cost.timing + cost.after) * 1e-3;
    return {{"where", in_worker ? "worker" : "in process"},
            {"seconds", seconds},
            {"trials_a_second", static_cast<double>(schedules.size()) / seconds},
            {"processor_seconds", cpu},
            {"first_trial_s", first_s},
            {"best_us", best_us},
            {"outcomes", outcomes},
            {"seconds_of",
             {{"build", cost.build * 1e-3},
              {"check", cost.check * 1e-3},
              {"timing", cost.timing * 1e-3},
              {"check_again", cost.after * 1e-3},
              {"rest: start, text, messages, allocation, waiting for builders", seconds - told}}}};
  }

  backend::DevicePtr device_;
  std::string folder_;
  const ir::Workload workload_;
  const std::vector<ir::Fact> facts_;
};

}  // namespace

int main(int argc, char** argv) {
  ::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);
  if (const auto code = worker::serve_if_worker(argc, argv)) return *code;
  std::string device, shape = "256x256x256", trials = "24", passes = "2", repeat = "0", budget = "20",
                      agent = "greedy", states = "0", where = "both", out, command = "bench_trials";
  for (int i = 1; i + 1 < argc; i += 2) {
    std::map<std::string, std::string*> flags = {
        {"--device", &device}, {"--shape", &shape},   {"--trials", &trials}, {"--passes", &passes},
        {"--repeat", &repeat}, {"--budget", &budget}, {"--agent", &agent},   {"--states", &states},
        {"--where", &where},   {"--out", &out}};
    if (flags.count(argv[i]) == 0) {
      std::cerr << "no flag '" << argv[i] << "'; the head of bench/trials.cc names them\n";
      return 2;
    }
    *flags[argv[i]] = argv[i + 1];
    if (std::string(argv[i]) != "--out") command += fmt::format(" {} {}", argv[i], argv[i + 1]);
  }
  long long m = 0, n = 0, k = 0;
  if (std::sscanf(shape.c_str(), "%lldx%lldx%lld", &m, &n, &k) != 3) {
    std::cerr << "--shape '" << shape << "' is not MxNxK\n";
    return 2;
  }
  try {
    Bench bench(device, make_workload(m, n, k));
    double load[3] = {-1, -1, -1};
    ::getloadavg(load, 3);
    json report = {{"load_average_at_start", load[0]},
                   {"device", bench.spec().name},
                   {"driver", bench.spec().driver},
                   {"command", command},
                   {"unix_time", unix_time()},
                   {"shape", shape},
                   {"cores", ::sysconf(_SC_NPROCESSORS_ONLN)}};
    const auto keep = [&] {
      if (!out.empty()) std::ofstream(out) << report.dump(1) << "\n";
    };
    if (std::stoi(passes) > 0)
      report["throughput"] = bench.throughput(std::stoll(trials), std::stoi(passes), where == "worker");
    keep();
    if (std::stoi(repeat) > 0) report["noise"] = bench.noise(std::stoi(repeat), std::stoll(budget), agent);
    keep();
    if (std::stoi(states) > 0) report["states"] = bench.states(std::stoll(states));
    keep();
    std::cout << report.dump(1) << "\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
