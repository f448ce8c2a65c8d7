#include "flow/replay.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/hash.h"
#include "flow/search.h"
#include "store/trial_log.h"
#include "tune/family_space.h"

namespace thrice::flow {
namespace {

using artifact::Measurement;
using artifact::Schedule;

// What was recorded of one workload, as a family whose legal schedules are the recorded ones.
class Recorded : public family::Family {
 public:
  void add(const store::LoggedTrial& trial) {
    if (measured_.empty()) first_ = trial;
    if (trial.is_default) default_ = trial.schedule;
    measured_[trial.schedule.str()] = trial;
  }
  const store::LoggedTrial& first() const { return first_; }
  const std::map<std::string, store::LoggedTrial>& measured() const { return measured_; }
  const Measurement* find(const Schedule& schedule) const {
    const auto it = measured_.find(schedule.str());
    return it == measured_.end() ? nullptr : &it->second.measurement;
  }
  const std::optional<Schedule>& chosen_by_rule() const { return default_; }

  std::string_view name() const override { return "recorded"; }
  family::Refusal match(const ir::Workload&) const override { return {}; }
  Schedule default_schedule(const ir::Workload&, const std::vector<ir::Fact>&,
                            const target::DeviceSpec&) const override {
    return *default_;
  }
  artifact::ScheduleSpace space(const ir::Workload&, const std::vector<ir::Fact>&,
                                const target::DeviceSpec&) const override {
    std::map<std::pair<std::string, std::string>, std::vector<std::pair<std::string, std::set<int64_t>>>>
        seen;
    for (const auto& [text, trial] : measured_) {
      auto& parameters = seen[{trial.schedule.family, trial.schedule.tactic}];
      for (const auto& [name, value] : trial.schedule.values) {
        auto it = std::find_if(parameters.begin(), parameters.end(),
                               [&, n = name](const auto& p) { return p.first == n; });
        if (it == parameters.end()) it = parameters.insert(parameters.end(), {name, {}});
        it->second.insert(value);
      }
    }
    artifact::ScheduleSpace space;
    for (const auto& [key, parameters] : seen) {
      artifact::TacticSpace& tactic = space.tactics.emplace_back();
      tactic.family = key.first;
      tactic.tactic = key.second;
      for (const auto& [name, choices] : parameters)
        tactic.parameters.push_back({name, {choices.begin(), choices.end()}});
    }
    return space;
  }
  family::Refusal illegal(const ir::Workload&, const Schedule& schedule,
                          const target::DeviceSpec&) const override {
    if (measured_.count(schedule.str())) return {};
    return "not recorded";
  }
  family::ProgramText emit(const ir::Workload&, const Schedule&, const target::DeviceSpec&) const override {
    throw Error(Code::kInternal, "a recorded schedule has no text");
  }
  artifact::LaunchPlan launch(const ir::Workload&, const Schedule&,
                              const std::vector<ir::Fact>&) const override {
    throw Error(Code::kInternal, "a recorded schedule has no launches");
  }

 private:
  store::LoggedTrial first_;
  std::map<std::string, store::LoggedTrial> measured_;
  std::optional<Schedule> default_;
};

class RecordedTrials : public TrialSource {
 public:
  RecordedTrials(const std::vector<const Recorded*>& works, int64_t& trials)
      : works_(works), trials_(trials) {}
  bool ready(const Progress&) override { return true; }
  std::optional<std::string> refuse(size_t, const Schedule&) override { return {}; }
  Measurement measure(size_t work, const Schedule& schedule, double) override {
    ++trials_;
    return *works_[work]->find(schedule);
  }
  std::array<measure::Timing, 2> duel(size_t work, const Schedule& best,
                                      const Schedule& challenger) override {
    const auto timing = [&](const Schedule& s) {
      const Measurement& m = *works_[work]->find(s);
      return measure::Timing{m.time_us, m.spread_us, m.samples};
    };
    return {timing(best), timing(challenger)};
  }

 private:
  const std::vector<const Recorded*>& works_;
  int64_t& trials_;
};

}  // namespace

ReplayReport replay(const std::string& path, const Settings& settings, const Listener& listener) {
  tune::require_agent(settings.agent);
  ReplayReport report;
  report.file = path;
  report.agent = settings.agent;
  std::map<std::pair<std::string, std::string>, Recorded> recorded;  // by workload and shape
  for (const store::LoggedTrial& trial : store::read_trial_log(path))
    recorded[{trial.workload, trial.shape}].add(trial);

  const ir::Workload nothing;
  const std::vector<ir::Fact> no_facts;
  const target::DeviceSpec no_device;
  std::vector<const Recorded*> sources;
  std::vector<Searched> works;
  std::vector<std::unique_ptr<Tuned>> tuned;
  for (const auto& [key, family] : recorded) {
    const auto& by_rule = family.chosen_by_rule();
    const Measurement* by_default = by_rule ? family.find(*by_rule) : nullptr;
    if (!by_default || !is_verified(*by_default)) {
      report.notes.push_back(fmt::format("{} ({}): the file has no good default of it; left out",
                                         family.first().region, key.first.substr(0, 12)));
      continue;
    }
    tuned.push_back(std::make_unique<Tuned>(Tuned{*by_rule, *by_default, *by_default, *by_rule, "", "", 1}));
    sources.push_back(&family);
    Searched& work = works.emplace_back();
    work.name = family.first().region;
    work.uses = static_cast<double>(family.first().uses);
    work.tuned = tuned.back().get();
    work.space = std::make_unique<tune::Space>(tune::family_space(nothing, family, no_facts, no_device));
    work.agent = tune::make_agent(settings.agent, *work.space, agent_options(settings, hash_hex(key.first)));
    tell(work, *by_rule, *by_default);
  }
  report.trials = static_cast<int64_t>(works.size());
  RecordedTrials source(sources, report.trials);
  search(works, source, {&report.trials, settings.max_trials, std::numeric_limits<double>::infinity()},
         listener);

  for (size_t i = 0; i < works.size(); ++i) {
    ReplayedWorkload& w = report.workloads.emplace_back();
    const store::LoggedTrial& first = sources[i]->first();
    w.workload = first.workload;
    w.shape = first.shape;
    w.region = first.region;
    w.uses = first.uses;
    w.recorded = static_cast<int64_t>(sources[i]->measured().size());
    w.trials = tuned[i]->trials;
    w.schedule = tuned[i]->schedule.str();
    w.default_us = tuned[i]->by_default.time_us;
    w.chosen_us = tuned[i]->best.time_us;
    for (const auto& [text, trial] : sources[i]->measured())
      if (is_verified(trial.measurement) && trial.measurement.time_us > 0 &&
          (w.best_us < 0 || trial.measurement.time_us < w.best_us)) {
        w.best_us = trial.measurement.time_us;
        w.best_schedule = text;
      }
    const auto uses = static_cast<double>(w.uses);
    report.default_us += uses * w.default_us;
    report.chosen_us += uses * w.chosen_us;
    report.best_us += uses * w.best_us;
  }
  return report;
}

std::string ReplayReport::to_json() const {
  nlohmann::json j = {{"file", file},           {"agent", agent},
                      {"trials", trials},       {"default_us", default_us},
                      {"chosen_us", chosen_us}, {"best_us", best_us},
                      {"notes", notes},         {"workloads", nlohmann::json::array()}};
  for (const ReplayedWorkload& w : workloads)
    j["workloads"].push_back({{"workload", w.workload},
                              {"shape", w.shape},
                              {"region", w.region},
                              {"uses", w.uses},
                              {"recorded", w.recorded},
                              {"trials", w.trials},
                              {"default_us", w.default_us},
                              {"chosen_us", w.chosen_us},
                              {"best_us", w.best_us},
                              {"schedule", w.schedule},
                              {"best_schedule", w.best_schedule}});
  return j.dump(2);
}

}  // namespace thrice::flow
