#include "flow/agent_eval.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <set>
#include <thread>

#include "base/clock.h"
#include "flow/agent_train.h"
#include "tune/agents/tuned.h"

namespace thrice::flow {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Contender {
  std::string text, name;
  bool transfer = false;
  std::map<std::string, double> knobs;
};

Contender contender_of(const std::string& text) {
  Contender c;
  c.text = text;
  c.name = text.substr(0, text.find(':'));
  tune::require_agent(c.name);
  for (size_t at = c.name.size(); at < text.size();) {
    const size_t end = std::min(text.find(':', at + 1), text.size());
    const std::string flag = text.substr(at + 1, end - at - 1);
    at = end;
    if (flag == "transfer") {
      c.transfer = true;
    } else if (flag == "no_policy" || flag == "no_crossover" || flag == "no_local" || flag == "no_mask" ||
               flag == "no_race") {
      c.knobs[flag.substr(3)] = 0;
    } else if (const size_t is = flag.find('='); is != std::string::npos) {
      char* stop = nullptr;
      c.knobs[flag.substr(0, is)] = std::strtod(flag.c_str() + is + 1, &stop);
      if (*stop || stop == flag.c_str() + is + 1)
        throw Error(Code::kInvalidArgument, fmt::format("agent '{}': '{}' has no number", text, flag));
    } else {
      throw Error(Code::kInvalidArgument,
                  fmt::format("agent '{}': unknown flag '{}'; known: no_policy, no_crossover, no_local, "
                              "no_mask, no_race, transfer, KNOB=NUMBER",
                              text, flag));
    }
  }
  return c;
}

std::vector<int64_t> curve_moments(int64_t trials) {
  std::vector<int64_t> moments;
  for (double t = 1; t <= static_cast<double>(trials); t = std::max(t + 1, std::floor(t * 1.15)))
    moments.push_back(static_cast<int64_t>(t));
  if (moments.empty() || moments.back() != trials) moments.push_back(trials);
  return moments;
}

double reached_at(const tune::Run& run, int64_t trials, double optimum) {
  if (run.best.empty()) return 0;
  const double best = run.best[std::min(run.best.size(), static_cast<size_t>(trials)) - 1];
  return std::isfinite(best) ? optimum / best : 0;
}

tune::Interval share_interval(const std::vector<tune::Run>& runs, int64_t trials, double optimum) {
  std::vector<double> shares;
  for (const tune::Run& run : runs) shares.push_back(reached_at(run, trials, optimum));
  return tune::mean_interval(shares);
}

std::vector<double> trials_to_95(const std::vector<tune::Run>& runs, double optimum) {
  std::vector<double> trials;
  for (const tune::Run& run : runs) {
    const int64_t t = tune::trials_to(run.best, optimum, 0.95);
    trials.push_back(t < 0 ? kNever : static_cast<double>(t));
  }
  return trials;
}

double share_finite(const std::vector<double>& values) {
  double finite = 0;
  for (const double v : values) finite += std::isfinite(v);
  return values.empty() ? 0 : finite / static_cast<double>(values.size());
}

// What runs on one space need.
struct Ground {
  std::string name;
  double optimum = 0;
  std::unique_ptr<tune::Baseline> baseline;  // null: not known (synthetic)
  const tune::RecordedSpace* recorded = nullptr;
  int fold = 0;  // half that this space belongs to
};

// All runs of one agent so far, for its total; scores with the repeat they belong to.
struct Sum {
  std::vector<double> to_95, shares[3], cpu;
  std::vector<double> score_of_repeat;  // summed over spaces
  int64_t spaces = 0;
};

}  // namespace

EvalReport evaluate_agents(const EvalRequest& request) {
  if (request.repeats < 1 || request.trials < 1 || request.noise < 0)
    throw Error(Code::kInvalidArgument, "repeats and trials are at least 1, noise is not negative");
  std::vector<Contender> contenders;
  for (const std::string& text : request.agents) contenders.push_back(contender_of(text));
  std::vector<tune::RecordedSpace> spaces;
  tune::SyntheticSpace synthetic;
  std::vector<Ground> grounds;
  EvalReport report;
  if (request.spaces == "synthetic") {
    synthetic = tune::make_synthetic_space();
    Ground& ground = grounds.emplace_back();
    ground.name = "synthetic";
    ground.optimum = synthetic.optimum;
    report.spaces.push_back({"synthetic", synthetic.legal, 0, synthetic.optimum, 0, {}});
  } else {
    spaces = tune::read_spaces(request.spaces);
    for (size_t i = 0; i < spaces.size(); ++i) {
      const tune::RecordedSpace& s = spaces[i];
      Ground& ground = grounds.emplace_back();
      ground.name = s.name;
      ground.optimum = s.optimum();
      ground.baseline = std::make_unique<tune::Baseline>(s.sorted);
      ground.recorded = &s;
      ground.fold = static_cast<int>(i % 2);
      const auto all = static_cast<int64_t>(s.times.size()), good = static_cast<int64_t>(s.sorted.size());
      report.spaces.push_back(
          {s.name, all, all - good, s.optimum(), s.sorted[s.sorted.size() / 2], importance_of(s)});
    }
  }
  report.repeats = request.repeats;
  report.trials = request.trials;
  report.noise = request.noise;
  report.seed = request.seed;

  const double begun = monotonic_us();
  std::vector<Sum> sums(contenders.size());
  const size_t total = grounds.size() * contenders.size() * static_cast<size_t>(request.repeats);
  std::atomic<size_t> done{0};
  const std::vector<int64_t> moments = curve_moments(request.trials);
  for (const Ground& ground : grounds) {
    std::shared_ptr<const tune::Prior> transfer;  // made when the first contender needs it
    for (size_t c = 0; c < contenders.size(); ++c) {
      const Contender& contender = contenders[c];
      const auto repeats = static_cast<size_t>(request.repeats);
      if (contender.transfer) {
        if (!transfer && ground.recorded) transfer = prior_without(spaces, *ground.recorded);
        if (!transfer) {
          done += repeats;
          continue;
        }
      }
      tune::RunOptions options;
      options.trials = request.trials;
      options.noise = request.noise;
      options.agent.knobs = tune::tuned_knobs(contender.name, 1 - ground.fold);
      for (const auto& [knob, value] : contender.knobs) options.agent.knobs[knob] = value;
      if (contender.transfer) options.agent.prior = transfer;
      std::vector<tune::Run> runs(repeats);
      std::atomic<size_t> next{0};
      std::mutex telling;
      const auto work = [&] {
        tune::Space own;  // legality of a space that is not listed remembers what it was asked
        if (!ground.recorded) own = synthetic.space;
        for (size_t r; (r = next++) < repeats && !request.listener.stop();) {
          tune::RunOptions mine = options;
          mine.agent.seed = request.seed + 1000 * r + 17;
          runs[r] = ground.recorded ? tune::run_agent(contender.name, *ground.recorded, mine)
                                    : tune::run_agent(
                                          contender.name, own,
                                          [&](const tune::Point& p) { return synthetic.time(p); }, mine);
          const size_t now = ++done;
          const double spent = (monotonic_us() - begun) / 1e6;
          const std::scoped_lock lock(telling);
          request.listener.tell({"eval", fmt::format("{} on {}", contender.text, ground.name),
                                 static_cast<int64_t>(now), static_cast<int64_t>(total), 0,
                                 spent / static_cast<double>(now) * static_cast<double>(total - now)});
        }
      };
      std::vector<std::thread> threads;
      for (int j = 1; j < request.jobs; ++j) threads.emplace_back(work);
      work();
      for (std::thread& thread : threads) thread.join();
      if (request.listener.stop()) throw Error(Code::kCancelled, "stopped before all runs were made");

      AgentOnSpace& row = report.results.emplace_back();
      row.agent = contender.text;
      row.space = ground.name;
      Sum& sum = sums[c];
      ++sum.spaces;
      sum.score_of_repeat.resize(repeats, 0);
      std::vector<double> scores;
      for (size_t r = 0; r < repeats; ++r) {
        if (ground.baseline) scores.push_back(ground.baseline->score(runs[r].best));
        if (ground.baseline) sum.score_of_repeat[r] += scores.back();
        row.cpu_s += runs[r].cpu_s / static_cast<double>(repeats);
        sum.cpu.push_back(runs[r].cpu_s);
      }
      if (ground.baseline) row.budget = ground.baseline->budget();
      row.score = tune::mean_interval(scores);
      tune::Interval* shares[3] = {&row.at_50, &row.at_100, &row.at_500};
      const int64_t at[3] = {50, 100, 500};
      for (int i = 0; i < 3; ++i) {
        *shares[i] = share_interval(runs, std::min(at[i], request.trials), ground.optimum);
        for (const tune::Run& run : runs)
          sum.shares[i].push_back(reached_at(run, std::min(at[i], request.trials), ground.optimum));
      }
      const std::vector<double> to_95 = trials_to_95(runs, ground.optimum);
      row.trials_to_95 = tune::median_interval(to_95);
      row.reached = share_finite(to_95);
      sum.to_95.insert(sum.to_95.end(), to_95.begin(), to_95.end());
      row.moments = moments;
      for (const int64_t moment : moments) row.curve.push_back(share_interval(runs, moment, ground.optimum));
    }
  }
  for (size_t c = 0; c < contenders.size(); ++c) {
    AgentTotal& total_row = report.totals.emplace_back();
    Sum& sum = sums[c];
    total_row.agent = contenders[c].text;
    total_row.spaces = sum.spaces;
    if (sum.spaces == 0) continue;
    for (double& score : sum.score_of_repeat) score /= static_cast<double>(sum.spaces);
    total_row.score = tune::mean_interval(sum.score_of_repeat);
    total_row.at_50 = tune::mean_interval(sum.shares[0]);
    total_row.at_100 = tune::mean_interval(sum.shares[1]);
    total_row.at_500 = tune::mean_interval(sum.shares[2]);
    total_row.trials_to_95 = tune::median_interval(sum.to_95);
    total_row.reached = share_finite(sum.to_95);
    total_row.cpu_s = tune::mean_interval(sum.cpu).value;
  }
  return report;
}

std::vector<std::pair<std::string, double>> importance_of(const tune::RecordedSpace& space) {
  double mean = 0, variance = 0;
  const auto n = static_cast<double>(space.sorted.size());
  for (const double t : space.sorted) mean += std::log(t) / n;
  for (const double t : space.sorted) variance += (std::log(t) - mean) * (std::log(t) - mean) / n;
  std::vector<std::pair<std::string, double>> shares;
  const auto& dimensions = space.space.dimensions();
  for (size_t d = 1; d < dimensions.size(); ++d) {
    std::vector<double> sum(dimensions[d].choices.size(), 0), count = sum;
    for (size_t i = 0; i < space.times.size(); ++i) {
      if (std::isnan(space.times[i])) continue;
      const uint16_t choice = space.space.listed()[i][d];
      sum[choice] += std::log(space.times[i]);
      ++count[choice];
    }
    double explained = 0;
    for (size_t c = 0; c < sum.size(); ++c)
      if (count[c] > 0) explained += count[c] / n * std::pow(sum[c] / count[c] - mean, 2);
    shares.emplace_back(dimensions[d].name, variance > 0 ? explained / variance : 0);
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return shares;
}

}  // namespace thrice::flow
