#include "flow/confirm.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>

#include "family/in_place.h"
#include "flow/tuning.h"
#include "tune/family_space.h"

namespace thrice::flow {

using artifact::Measurement;
using artifact::Outcome;
using artifact::Schedule;
using plan::PlannedWorkload;

std::vector<Schedule> stand_ins(const PlannedWorkload& planned, const target::DeviceSpec& device,
                                const Schedule& failed) {
  constexpr size_t kMost = 8;
  constexpr int kDraws = 32;
  const tune::Space space = tune::family_space(planned.workload, *planned.family, planned.facts, device);
  std::vector<Schedule> others, same;
  const auto add = [&](const Schedule& schedule) {
    std::vector<Schedule>& list = schedule.tactic == failed.tactic ? same : others;
    if (!(schedule == failed) && std::find(list.begin(), list.end(), schedule) == list.end())
      list.push_back(schedule);
  };
  for (const tune::Point& point : space.firsts()) add(space.schedule(point));
  Rng rng(1);
  for (int draw = 0; draw < kDraws; ++draw)
    if (const auto point = space.sample(rng)) add(space.schedule(*point));
  // Of each tactic once before any is there twice.
  std::vector<Schedule> order;
  for (const bool again : {false, true})
    for (const Schedule& schedule : others) {
      const bool has = std::any_of(order.begin(), order.end(),
                                   [&](const Schedule& o) { return o.tactic == schedule.tactic; });
      if (has == again && std::find(order.begin(), order.end(), schedule) == order.end())
        order.push_back(schedule);
    }
  if (order.size() > kMost / 2) order.resize(kMost / 2);
  order.insert(order.end(), same.begin(), same.end());
  if (order.size() > kMost) order.resize(kMost);
  return order;
}

namespace {

// What takes the place of a schedule that fails, in this order: the same in buffers apart, the default, this
// run's other verified trials (the fastest first), stand-ins.
std::vector<Schedule> next_best(const TuningContext& c, const PlannedWorkload& planned, const Tuned& tuned) {
  constexpr size_t kTrialsTaken = 4;
  std::vector<Schedule> list;
  if (tuned.schedule.get("in_place", 0)) list.push_back(family::apart(tuned.schedule));
  list.push_back(tuned.default_schedule);
  std::vector<Attempt> attempts = tuned.attempts;
  std::erase_if(attempts, [](const Attempt& a) { return !a.ok; });
  std::stable_sort(attempts.begin(), attempts.end(),
                   [](const Attempt& a, const Attempt& b) { return a.time_us < b.time_us; });
  if (attempts.size() > kTrialsTaken) attempts.resize(kTrialsTaken);
  for (const Attempt& a : attempts) list.push_back(Schedule::parse(a.schedule));
  for (const Schedule& s : stand_ins(planned, c.device->spec(), tuned.default_schedule)) list.push_back(s);
  return list;
}

constexpr uint64_t kHidden = 7919;  // seeds that no screening used

store::Store::Passed key_of(const TuningContext& c, const PlannedWorkload& planned,
                            const Schedule& schedule) {
  const artifact::TuningRecord record = record_of(c, planned, schedule);
  store::Store::Passed key;
  key.workload = record.workload;
  key.shape = record.shape;
  key.environment = record.environment;
  key.schedule = schedule.str();
  key.source_key = record.source_key;
  key.gate = fmt::format("full seed={} fences={}", c.settings->seed + kHidden, c.runner->place().fences());
  key.unix_time = record.unix_time;
  return key;
}

}  // namespace

Measurement full_gate(const TuningContext& c, const PlannedWorkload& planned, const Schedule& schedule,
                      measure::Oracle& oracle) {
  measure::TrialOptions options;
  options.gate = measure::Gate::kFull;
  options.seed = c.settings->seed + kHidden;
  options.timing = {0, 1, 0};  // judged here, timed elsewhere
  const Measurement m =
      c.runner->run(planned.workload, *planned.family, schedule, oracle, options).measurement;
  store::Store::Passed key = key_of(c, planned, schedule);
  if (c.store && m.outcome == Outcome::kOk && !key.source_key.empty()) {
    key.error = m.error;
    key.error_limit = m.error_limit;
    c.store->put_passed(key);
  }
  return m;
}

namespace {

// The text, the inputs and the environment decide the answers of a gate: one that was passed would be passed
// again.
bool passed_before(const TuningContext& c, const PlannedWorkload& planned, Tuned& tuned) {
  if (!tuned.passed.empty() && tuned.passed == tuned.schedule.str()) return true;
  if (!c.store) return false;
  store::Store::Passed key = key_of(c, planned, tuned.schedule);
  if (key.source_key.empty() || !c.store->find_passed(key)) return false;
  tuned.passed = key.schedule;
  tuned.best.error = key.error;
  tuned.best.error_limit = key.error_limit;
  return true;
}

void keep_refused(const TuningContext& c, const PlannedWorkload& planned, const Schedule& schedule,
                  const Measurement& m, const std::string& why) {
  if (!c.store) return;
  artifact::TuningRecord record = record_of(c, planned, schedule);
  record.measurement = m;
  record.measurement.message = why;
  c.store->add(record);
}

void deploy(const Schedule& schedule, const Measurement& m, Tuned& tuned) {
  const bool is_same_apart = schedule == family::apart(tuned.schedule);  // which has the times of both
  tuned.schedule = schedule;
  tuned.passed = schedule.str();
  if (!is_same_apart) tuned.best = schedule == tuned.default_schedule ? tuned.by_default : m;
  tuned.best.error = m.error;
  tuned.best.error_limit = m.error_limit;
}

worker::ToLaunch to_launch(const TuningContext& c, const PlannedWorkload& planned, const Schedule& schedule) {
  worker::ToLaunch one{&planned.workload, &planned.facts, {}};
  one.job.source = c.runner->generate(planned.workload, *planned.family, schedule);
  one.job.launches = planned.family->launch(planned.workload, schedule, planned.facts);
  one.job.options.seed = c.settings->seed;
  return one;
}

}  // namespace

worker::RaceVerdict race_verdict(const TuningContext& c, const PlannedWorkload& planned,
                                 const Schedule& schedule, const worker::RaceChecker& checker) {
  return checker.check({to_launch(c, planned, schedule)})[0];
}

void confirm(const TuningContext& c, const std::map<std::string, PlannedWorkload>& workloads,
             std::vector<std::string>& notes) {
  int64_t done = 0;
  for (const auto& [hash, planned] : workloads) {
    const auto it = c.results->find(hash);
    if (it == c.results->end()) continue;
    Tuned& tuned = it->second;
    if (tuned.default_schedule.family.empty()) tuned.default_schedule = planned.schedule;  // never tuned
    c.listener->tell({"verify", planned.uses.front(), done++, static_cast<int64_t>(workloads.size()), 0, -1});
    if (passed_before(c, planned, tuned)) continue;
    measure::Oracle oracle(planned.workload, planned.facts);
    std::vector<Schedule> waiting{tuned.schedule};
    std::string first_reason;
    for (size_t i = 0;; ++i) {
      const Schedule schedule = waiting[i];
      const Measurement m = full_gate(c, planned, schedule, oracle);
      if (m.outcome == Outcome::kOk) {
        if (i > 0) {
          notes.push_back(fmt::format("{}: '{}' passed screening but not the full gate ({}); '{}' is used",
                                      planned.uses.front(), waiting.front().str(), first_reason,
                                      schedule.str()));
          deploy(schedule, m, tuned);
        }
        tuned.passed = schedule.str();
        tuned.best.error = m.error;
        tuned.best.error_limit = m.error_limit;
        break;
      }
      const bool can_go_on = c.runner->place().lost().empty();
      if (can_go_on) keep_refused(c, planned, schedule, m, kFailsFullGate + m.message);
      if (i == 0) {
        first_reason = m.message;
        for (const Schedule& next : next_best(c, planned, tuned))
          if (std::find(waiting.begin(), waiting.end(), next) == waiting.end()) waiting.push_back(next);
      }
      if (i + 1 < waiting.size() && can_go_on) continue;
      throw Error(Code::kWrongResult,
                  fmt::format("region '{}': '{}' fails the full gate ({}), and so does whatever could take "
                              "its place ({} schedules tried)",
                              planned.uses.front(), waiting.front().str(), first_reason, i + 1));
    }
  }
}

namespace {

// In place of one with a hazard: the first that passes the full gate and has none.
void replace_racy(const TuningContext& c, const PlannedWorkload& planned, const worker::RaceChecker& checker,
                  const std::string& why, Tuned& tuned, std::vector<std::string>& notes) {
  const Schedule racy = tuned.schedule;
  const auto refuse = [&](const Schedule& schedule, const std::string& message) {
    Measurement m;
    m.outcome = Outcome::kWrong;
    keep_refused(c, planned, schedule, m, kHasHazard + message);
  };
  refuse(racy, why);
  measure::Oracle oracle(planned.workload, planned.facts);
  std::vector<Schedule> tried{racy};
  for (const Schedule& next : next_best(c, planned, tuned)) {
    if (!c.runner->place().lost().empty()) break;
    if (std::find(tried.begin(), tried.end(), next) != tried.end()) continue;
    tried.push_back(next);
    const Measurement m = full_gate(c, planned, next, oracle);
    if (m.outcome != Outcome::kOk) {
      keep_refused(c, planned, next, m, kFailsFullGate + m.message);
      continue;
    }
    const worker::RaceVerdict verdict = race_verdict(c, planned, next, checker);
    if (verdict.kind == worker::RaceVerdict::kHazard) {
      refuse(next, verdict.why);
      continue;
    }
    notes.push_back(fmt::format("{}: a race checker refuses '{}' ({}); '{}' is used{}", planned.uses.front(),
                                racy.str(), why, next.str(),
                                verdict.kind == worker::RaceVerdict::kClean
                                    ? ""
                                    : fmt::format(", which could not be checked ({})", verdict.why)));
    deploy(next, m, tuned);
    return;
  }
  throw Error(
      Code::kWrongResult,
      fmt::format("region '{}': a race checker refuses '{}' ({}), and nothing that could take its place "
                  "passes ({} schedules tried)",
                  planned.uses.front(), racy.str(), why, tried.size()));
}

}  // namespace

RaceReport check_races(const TuningContext& c, const std::map<std::string, PlannedWorkload>& workloads,
                       const worker::RaceChecker& checker, std::vector<std::string>& notes) {
  RaceReport report;
  report.tool = checker.name();
  std::vector<const PlannedWorkload*> works;
  std::vector<worker::ToLaunch> all;
  for (const auto& [hash, planned] : workloads) {
    const auto it = c.results->find(hash);
    if (it == c.results->end()) continue;
    works.push_back(&planned);
    all.push_back(to_launch(c, planned, it->second.schedule));
  }
  const std::vector<worker::RaceVerdict> verdicts = checker.check(all);
  for (size_t i = 0; i < works.size(); ++i) {
    Tuned& tuned = c.results->at(works[i]->workload.hash);
    switch (verdicts[i].kind) {
      case worker::RaceVerdict::kClean:
        ++report.clean;
        break;
      case worker::RaceVerdict::kNotChecked:
        ++report.not_checked;
        notes.push_back(fmt::format("{}: '{}' was not checked for races ({})", works[i]->uses.front(),
                                    tuned.schedule.str(), verdicts[i].why));
        break;
      case worker::RaceVerdict::kHazard:
        ++report.refused;
        replace_racy(c, *works[i], checker, verdicts[i].why, tuned, notes);
        break;
    }
  }
  notes.push_back(
      fmt::format("race checker {}: {} kernels without a hazard, {} refused and replaced, {} not "
                  "checked",
                  report.tool, report.clean, report.refused, report.not_checked));
  return report;
}

}  // namespace thrice::flow
