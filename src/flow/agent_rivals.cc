// Two-fold search for the settings of genetic and annealing.
#include <fmt/format.h>
#include <thrice/status.h>

#include "base/clock.h"
#include "flow/agent_eval.h"

namespace thrice::flow {
namespace {

struct Knob {
  const char* name;
  std::vector<double> choices;
};
const std::vector<std::pair<const char*, std::vector<Knob>>>& rivals() {
  static const std::vector<std::pair<const char*, std::vector<Knob>>> kRivals = {
      {"genetic",
       {{"population", {6, 10, 14, 20, 30, 40}},
        {"tournament", {1, 2, 3, 5}},
        {"crossover", {0, 0.3, 0.5, 0.7, 0.9}},
        {"mutation", {0.5, 1, 1.5, 2, 3}},
        {"step", {0, 0.25, 0.5, 0.75}}}},
      {"annealing",
       {{"temperature", {0.02, 0.05, 0.1, 0.2, 0.5, 1}},
        {"cooling", {0.95, 0.97, 0.98, 0.99, 0.995, 1}},
        {"wide", {0, 0.25, 0.5, 0.75, 1}},
        {"patience", {8, 15, 30, 60, 120}},
        {"elsewhere", {0, 0.15, 0.3, 0.6, 1}}}}};
  return kRivals;
}

}  // namespace

std::string tune_rivals(const std::vector<tune::RecordedSpace>& spaces, int64_t tries, int64_t repeats,
                        uint64_t seed, const Listener& listener) {
  std::string text;
  std::vector<tune::Baseline> baselines;
  for (const tune::RecordedSpace& s : spaces) baselines.emplace_back(s.sorted);
  const double begun = monotonic_us();
  int64_t done = 0;
  const int64_t total = 4 * tries;
  for (const auto& [agent, knobs] : rivals())
    for (size_t fold = 0; fold < 2; ++fold) {
      Rng rng(seed);
      std::map<std::string, double> best_knobs;
      double best_score = -1e300;
      for (int64_t t = 0; t < tries; ++t) {
        tune::RunOptions options;
        for (const Knob& knob : knobs)
          options.agent.knobs[knob.name] = knob.choices[rng.below(knob.choices.size())];
        double score = 0;
        int64_t runs = 0;
        for (size_t s = fold; s < spaces.size(); s += 2)
          for (int64_t r = 0; r < repeats; ++r, ++runs) {
            options.agent.seed = seed + static_cast<uint64_t>(r) * 131 + 7;
            options.trials = std::min<int64_t>(500, std::max<int64_t>(100, baselines[s].budget()));
            score += baselines[s].score(tune::run_agent(agent, spaces[s], options).best);
          }
        score /= static_cast<double>(std::max<int64_t>(runs, 1));
        if (score > best_score) {
          best_score = score;
          best_knobs = options.agent.knobs;
        }
        if (listener.stop()) throw Error(Code::kCancelled, "stopped before the search ended");
        const double spent = (monotonic_us() - begun) / 1e6;
        listener.tell({"tune rivals", agent, ++done, total, 0,
                       spent / static_cast<double>(done) * static_cast<double>(total - done)});
      }
      for (const auto& [name, value] : best_knobs)
        text += fmt::format("{} {} {} {}\n", agent, fold, name, value);
    }
  return text;
}

}  // namespace thrice::flow
