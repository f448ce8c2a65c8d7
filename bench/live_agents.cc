// Agents tuning live on a device: final speed, and trials and time to within 5% of the best known.
//   bench_live_agents --out FILE [--device cuda:0] [--cases matmul,row] [--trials 128] [--repeats 3]
//                     [--agents actor_critic,actor_critic:untrained,genetic,random] [--agent-file FILE]
//                     [--limit 200] [--folder DIR]
// Each run starts with an empty kernel cache and no store, so that its seconds hold all that a user waits
// for: building, checking, timing, duels. What was chosen by any run is then timed interleaved with all
// others: the fastest there is the best known. `--agent-file`: what actor_critic has learned; ":untrained"
// goes without. Runs take turns (all agents once, then again), so that the limit (seconds) cuts all alike;
// the file is written after every run.
#include <fmt/format.h>
#include <thrice/status.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/clock.h"
#include "bench/tuned_cases.h"
#include "flow/open_target.h"
#include "flow/tuning.h"
#include "worker/runner.h"
#include "worker/serve.h"

namespace {

using namespace thrice;  // NOLINT: a program of one file
using artifact::Schedule;
using nlohmann::json;

struct Flags {
  std::string device, out, cases = "matmul,row",
                           agents = "actor_critic,actor_critic:untrained,genetic,random", agent_file, folder;
  int64_t trials = 128;
  int repeats = 3;
  double limit_s = 200;
};

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> list;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) list.push_back(word);
  return list;
}

struct Run {
  std::string agent;
  int repeat = 0;
  Schedule chosen;
  double seconds = 0, default_us = 0, best_us = 0;
  int64_t trials = 0, failed = 0;
  std::vector<std::pair<double, double>> best_at;  // by trial: seconds since the start, chosen time in us
};

class Case {
 public:
  Case(const bench::TunedCase& c, const backend::DevicePtr& device, const Flags& flags)
      : name_(c.name),
        problem_(c.problem),
        extent_(c.extents[0]),
        device_(device),
        flags_(flags),
        planned_(bench::planned_at(c, c.extents[0], device->spec())) {}

  void run(const std::string& agent, int repeat) {
    const std::string kernels = fmt::format("{}/{}_{}_{}", flags_.folder, name_, agent, repeat);
    std::filesystem::remove_all(kernels);
    flow::Settings settings;
    settings.agent = agent.substr(0, agent.find(':'));
    settings.pretrained = agent.find(":untrained") == std::string::npos;
    settings.agent_file = flags_.agent_file;
    settings.max_trials = flags_.trials;
    settings.seed = static_cast<uint64_t>(repeat) + 1;
    Run run{agent, repeat, {}, 0, 0, 0, 0, 0, {}};
    {
      const auto cache = std::make_shared<jit::KernelCache>(device_, kernels);
      measure::TrialRunner runner(device_,
                                  std::make_unique<worker::Runner>(device_, cache, worker::RunnerOptions{}));
      std::map<std::string, flow::Tuned> results;
      int64_t made = 0;
      const double begin = monotonic_us();
      std::vector<double> told;  // when each trial was about to begin
      flow::Listener listener;
      listener.progress = [&](const flow::Progress& p) {
        if (p.phase == "tune") told.push_back((monotonic_us() - begin) * 1e-6);
      };
      flow::TuningContext context;
      context.device = device_;
      context.runner = &runner;
      context.settings = &settings;
      context.listener = &listener;
      context.results = &results;
      context.trials = &made;
      const std::map<std::string, plan::PlannedWorkload> workloads{{planned_.workload.hash, planned_}};
      flow::measure_defaults(context, workloads, "build and check");
      flow::tune(context, workloads, 1e300);
      const flow::Tuned& tuned = results.at(planned_.workload.hash);
      run.seconds = (monotonic_us() - begin) * 1e-6;
      run.chosen = tuned.schedule;
      run.default_us = tuned.by_default.time_us;
      run.best_us = tuned.best.time_us;
      run.trials = static_cast<int64_t>(tuned.attempts.size());
      for (size_t i = 0; i < tuned.attempts.size(); ++i) {
        run.failed += !tuned.attempts[i].ok;
        run.best_at.emplace_back(i + 1 < told.size() ? told[i + 1] : run.seconds, tuned.attempts[i].best_us);
      }
    }
    std::filesystem::remove_all(kernels);
    std::cerr << fmt::format(
        "{} {} #{}: {} trials, {} failed, {:.1f} s, default {:.2f} us, best {:.2f} us, {}\n", name_, agent,
        repeat, run.trials, run.failed, run.seconds, run.default_us, run.best_us, run.chosen.str());
    runs_.push_back(std::move(run));
  }

  // All that was chosen, and the default, side by side.
  void compare() {
    const auto cache = std::make_shared<jit::KernelCache>(device_, flags_.folder + "/compare");
    measure::TrialRunner runner(device_,
                                std::make_unique<worker::Runner>(device_, cache, worker::RunnerOptions{}));
    measure::Oracle oracle(planned_.workload, planned_.facts);
    std::vector<Schedule> distinct{planned_.schedule};
    for (const Run& run : runs_)
      if (std::find(distinct.begin(), distinct.end(), run.chosen) == distinct.end())
        distinct.push_back(run.chosen);
    measure::TimingOptions longer;
    longer.min_samples = 25;
    longer.max_total_us = 1e6;
    const auto timings = runner.compare(planned_.workload, *planned_.family, distinct, oracle, longer);
    for (size_t i = 0; i < distinct.size(); ++i) final_us_[distinct[i].str()] = timings[i].median_us;
    std::filesystem::remove_all(flags_.folder + "/compare");
  }

  json report() const {
    double best = 0;
    for (const auto& [schedule, us] : final_us_) best = best > 0 ? std::min(best, us) : us;
    json list = json::array();
    std::map<std::string, std::vector<json>> by_agent;
    for (const Run& run : runs_) {
      json one = {{"agent", run.agent},           {"repeat", run.repeat},
                  {"schedule", run.chosen.str()}, {"trials", run.trials},
                  {"failed_trials", run.failed},  {"seconds", run.seconds},
                  {"default_us", run.default_us}, {"best_us_of_its_trials", run.best_us}};
      if (const auto it = final_us_.find(run.chosen.str()); it != final_us_.end()) {
        one["final_us"] = it->second;
        one["final_over_best_known"] = it->second / best;
        // Its own clock: what it chose took best_us there and final_us beside the others.
        const double within = 1.05 * best * run.best_us / it->second;
        one["trials_to_within_5_percent"] = nullptr;
        one["seconds_to_within_5_percent"] = nullptr;
        if (run.default_us <= within) {
          one["trials_to_within_5_percent"] = 0;
          one["seconds_to_within_5_percent"] = run.best_at.empty() ? run.seconds : run.best_at[0].first;
        } else {
          for (size_t i = 0; i < run.best_at.size(); ++i)
            if (run.best_at[i].second <= within) {
              one["trials_to_within_5_percent"] = i + 1;
              one["seconds_to_within_5_percent"] = run.best_at[i].first;
              break;
            }
        }
      }
      by_agent[run.agent].push_back(one);
      list.push_back(std::move(one));
    }
    json totals = json::object();
    for (const auto& [agent, of] : by_agent) {
      json total = {{"runs", of.size()}};
      for (const char* key : {"final_us", "final_over_best_known", "trials_to_within_5_percent",
                              "seconds_to_within_5_percent", "seconds"}) {
        std::vector<double> values;
        for (const json& one : of)
          if (one.contains(key)) values.push_back(one[key].is_null() ? INFINITY : one[key].get<double>());
        std::sort(values.begin(), values.end());
        if (values.empty()) continue;
        const double median = values[values.size() / 2];
        total[std::string("median_") + key] = std::isfinite(median) ? json(median) : json();
      }
      totals[agent] = std::move(total);
    }
    return {{"case", name_},
            {"problem", problem_},
            {"s0", extent_},
            {"best_known_us", best},
            {"default_us",
             final_us_.count(planned_.schedule.str()) ? json(final_us_.at(planned_.schedule.str())) : json()},
            {"default_schedule", planned_.schedule.str()},
            {"agents", totals},
            {"runs", list}};
  }
  bool empty() const { return runs_.empty(); }

 private:
  std::string name_, problem_;
  int64_t extent_;
  backend::DevicePtr device_;
  const Flags& flags_;
  plan::PlannedWorkload planned_;
  std::vector<Run> runs_;
  std::map<std::string, double> final_us_;
};

void tune_all(const Flags& flags, const std::string& command) {
  const double begin = monotonic_us();
  const auto seconds = [&] { return (monotonic_us() - begin) * 1e-6; };
  const backend::DevicePtr device = flow::open_target(flags.device).device;
  std::vector<bench::TunedCase> chosen;
  for (const bench::TunedCase& c : bench::live_cases())
    if (const auto names = words(flags.cases); std::find(names.begin(), names.end(), c.name) != names.end())
      chosen.push_back(c);
  std::vector<Case> cases;
  for (const bench::TunedCase& c : chosen) cases.emplace_back(c, device, flags);
  json report = {{"device", device->spec().name},
                 {"driver", device->spec().driver},
                 {"command", command},
                 {"unix_time", unix_time()},
                 {"trials", flags.trials},
                 {"cores", ::sysconf(_SC_NPROCESSORS_ONLN)}};
  const auto keep = [&] {
    report["cases"] = json::array();
    for (const Case& c : cases)
      if (!c.empty()) report["cases"].push_back(c.report());
    report["seconds"] = seconds();
    std::ofstream(flags.out) << report.dump(1) << "\n";
  };
  for (int repeat = 0; repeat < flags.repeats; ++repeat) {
    for (Case& c : cases)
      for (const std::string& agent : words(flags.agents)) {
        if (seconds() > flags.limit_s) break;
        c.run(agent, repeat);
        keep();
      }
    for (Case& c : cases)
      if (!c.empty()) c.compare();
    keep();
  }
  std::cout << report.dump(1) << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  ::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);
  if (const auto code = worker::serve_if_worker(argc, argv)) return *code;
  Flags flags;
  std::string command = "bench_live_agents";
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    const std::map<std::string, std::string*> texts = {
        {"--device", &flags.device}, {"--out", &flags.out},       {"--cases", &flags.cases},
        {"--agents", &flags.agents}, {"--folder", &flags.folder}, {"--agent-file", &flags.agent_file}};
    if (const auto it = texts.find(flag); it != texts.end())
      *it->second = value;
    else if (flag == "--trials")
      flags.trials = std::stoll(value);
    else if (flag == "--repeats")
      flags.repeats = std::stoi(value);
    else if (flag == "--limit")
      flags.limit_s = std::stod(value);
    else {
      std::cerr << "no flag '" << flag << "'; the head of bench/live_agents.cc names them\n";
      return 2;
    }
    if (flag != "--out" && flag != "--folder" && flag != "--agent-file") command += " " + flag + " " + value;
  }
  if (flags.out.empty()) {
    std::cerr << "--out FILE says where the report goes\n";
    return 2;
  }
  if (flags.folder.empty())
    flags.folder =
        (std::filesystem::temp_directory_path() / fmt::format("thrice_live_{}", ::getpid())).string();
  try {
    tune_all(flags, command);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  std::filesystem::remove_all(flags.folder);
  return 0;
}
