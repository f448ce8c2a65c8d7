#include "flow/tuning.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <set>

#include "base/clock.h"
#include "flow/agent_train.h"
#include "flow/confirm.h"
#include "flow/environment.h"
#include "library/extract.h"
#include "library/memory.h"
#include "tune/family_space.h"

namespace thrice::flow {

using artifact::Measurement;
using artifact::Outcome;
using artifact::Schedule;
using plan::PlannedWorkload;

std::string shape_key(const PlannedWorkload& planned) { return shape_key(planned.workload, planned.facts); }

std::string shape_key(const ir::Workload& workload, const std::vector<ir::Fact>& facts) {
  std::map<std::string, int64_t> values;
  const ir::Graph& graph = workload.graph;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const ir::Shape& shape = graph.value(graph.inputs[i]).type.shape;
    const ir::Shape& concrete = facts[i].type.shape;
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (!shape[axis].is_const()) values[shape[axis].str()] = concrete[axis].value();
    // Values of shape operands too: launches are made for them.
    const ir::Value& operand = graph.value(graph.inputs[i]);
    if (!ir::is_shape_input(workload, i) || operand.constant || !facts[i].known) continue;
    for (size_t e = 0; e < facts[i].known->size(); ++e) {
      const bool has_name = operand.known && !(*operand.known)[e].is_const();
      const bool is_fixed = operand.known && !has_name;
      if (!is_fixed)
        values[has_name ? (*operand.known)[e].str() : fmt::format("operand{}[{}]", i, e)] =
            (*facts[i].known)[e].value();
    }
  }
  std::string key;
  for (const auto& [symbol, value] : values)
    key += fmt::format("{}{}={}", key.empty() ? "" : " ", symbol, value);
  return key;
}

artifact::TuningRecord record_of(const TuningContext& c, const PlannedWorkload& planned,
                                 const Schedule& schedule) {
  artifact::TuningRecord record;
  record.workload = planned.workload.hash;
  record.shape = shape_key(planned);
  record.environment = c.environment;
  record.schedule = schedule;
  record.unix_time = unix_time();
  try {
    record.source_key = c.runner->generate(planned.workload, *planned.family, schedule).key;
  } catch (const Error&) {
    // the trial will say why there is no text
  }
  return record;
}

namespace {

// A trial that was made with another text of the kernel (a changed template) proves nothing of this one.
bool is_of_this_text(const TuningContext& c, const PlannedWorkload& planned,
                     const artifact::TuningRecord& record) {
  return record.source_key == record_of(c, planned, record.schedule).source_key;
}

// Float64 answers are large: only the workloads touched last keep theirs.
class Oracles {
 public:
  measure::Oracle& of(const PlannedWorkload& planned) {
    constexpr size_t kKept = 12;
    for (auto it = kept_.begin(); it != kept_.end(); ++it)
      if (it->first == planned.workload.hash) {
        std::rotate(kept_.begin(), it, it + 1);
        return *kept_.front().second;
      }
    kept_.emplace_front(planned.workload.hash,
                        std::make_unique<measure::Oracle>(planned.workload, planned.facts));
    if (kept_.size() > kKept) kept_.pop_back();
    return *kept_.front().second;
  }

 private:
  std::deque<std::pair<std::string, std::unique_ptr<measure::Oracle>>> kept_;
};

measure::TrialResult run_trial(const TuningContext& c, const PlannedWorkload& planned,
                               const Schedule& schedule, Oracles& oracles, double give_up_us, int64_t round) {
  measure::TrialOptions options;
  options.seed = c.settings->seed + 2 * static_cast<uint64_t>(round);  // integers take the next one too
  options.give_up_us = give_up_us;
  options.timing.cold = c.timing.cold;
  options.both_caches = c.timing.both;
  constexpr double kNearBest = 1.2 / 3;  // give_up_us is three times the best
  options.concurrent_below_us =
      give_up_us > 0 ? kNearBest * give_up_us : std::numeric_limits<double>::infinity();
  artifact::TuningRecord record = record_of(c, planned, schedule);
  const int64_t begun = c.store ? c.store->begin(record) : -1;
  measure::TrialResult trial;
  try {
    trial = c.runner->run(planned.workload, *planned.family, schedule, oracles.of(planned), options);
  } catch (...) {  // stopped, or not the candidate's fault
    if (c.store) c.store->forget(begun);
    throw;
  }
  ++*c.trials;
  record.measurement = trial.measurement;
  if (c.store) c.store->finish(begun, record);
  if (c.record)
    c.record->add({planned.workload.hash, shape_key(planned), planned.uses.front(),
                   static_cast<int64_t>(planned.uses.size()), schedule == planned.schedule, schedule,
                   trial.measurement});
  return trial;
}

// Device memory of a trial: operands, results and scratch, twice, since a promising candidate meets the best
// so far face to face. 0 where the trial itself will say that it is impossible.
int64_t trial_bytes(const PlannedWorkload& planned, const Schedule& schedule) {
  double bytes = operand_bytes(planned);
  try {
    for (const int64_t temporary :
         planned.family->launch(planned.workload, schedule, planned.facts).temporary_bytes)
      bytes += static_cast<double>(temporary);
  } catch (const Error&) {
    return 0;
  }
  return static_cast<int64_t>(std::min(2 * bytes, 1e18));
}

// Trials on the device.
class DeviceTrials : public TrialSource {
 public:
  DeviceTrials(const TuningContext& context, std::vector<const PlannedWorkload*> works, double deadline_us)
      : c_(context), works_(std::move(works)), deadline_us_(deadline_us) {
    for (const PlannedWorkload* planned : works_) entries_.push_back(library::entry_of(*planned));
  }
  std::vector<size_t> alike(size_t work) const override {
    constexpr double kAlike = 3;  // all sizes together differ by a factor of eight
    std::vector<std::pair<double, size_t>> near;
    for (size_t i = 0; i < entries_.size(); ++i)
      if (const double far = library::distance(entries_[work], entries_[i]); i != work && far <= kAlike)
        near.emplace_back(far, i);
    std::sort(near.begin(), near.end());
    std::vector<size_t> places;
    for (const auto& [far, place] : near) places.push_back(place);
    return places;
  }
  bool ready(const Progress& progress) override {
    if (!c_.runner->place().lost().empty()) return false;
    return !c_.guard || c_.guard->wait_until_cool(*c_.listener, progress, deadline_us_);
  }
  std::optional<std::string> refuse(size_t work, const Schedule& schedule) override {
    if (!c_.guard) return {};
    return c_.guard->refuse(trial_bytes(*works_[work], schedule));
  }
  Measurement measure(size_t work, const Schedule& schedule, double give_up_us) override {
    try {
      const int64_t round = 1 + made_[work]++ / kTrialsPerRound;  // 0: of the default
      return run_trial(c_, *works_[work], schedule, oracles_, give_up_us, round).measurement;
    } catch (const Error& error) {
      if (c_.runner->place().lost().empty()) throw;
      Measurement not_made;  // no record: the candidate is not to blame
      not_made.message = error.what();
      return not_made;
    }
  }
  size_t lookahead() const override { return c_.runner->place().lookahead(); }
  void prepare(size_t work, const std::vector<Schedule>& schedules) override {
    c_.runner->prepare(works_[work]->workload, *works_[work]->family, works_[work]->facts, schedules);
  }
  std::array<measure::Timing, 2> duel(size_t work, const Schedule& best,
                                      const Schedule& challenger) override {
    const PlannedWorkload& planned = *works_[work];
    try {
      measure::TimingOptions timing;
      timing.cold = c_.timing.cold;
      timing.settle_us = c_.timing.settle_us;
      timing.rest_us = c_.timing.rest_us;
      const auto timings = c_.runner->compare(planned.workload, *planned.family, {best, challenger},
                                              oracles_.of(planned), timing);
      return {timings[0], timings[1]};
    } catch (const Error& error) {
      if (error.code() == Code::kCancelled) throw;
      // One of them failed beside the other. The challenger passed a trial but is not to be trusted.
      if (c_.store && c_.runner->place().lost().empty()) {
        artifact::TuningRecord record = record_of(c_, planned, challenger);
        record.measurement.outcome = Outcome::kLaunchFailed;
        record.measurement.message = fmt::format("failed in a duel: {}", error.what());
        c_.store->add(record);
      }
      constexpr double kNever = std::numeric_limits<double>::infinity();
      return {measure::Timing{1, 0, 1}, measure::Timing{kNever, 0, 0}};
    }
  }

 private:
  const TuningContext& c_;
  std::vector<const PlannedWorkload*> works_;
  std::vector<library::Entry> entries_;  // of works_
  double deadline_us_;
  std::map<size_t, int64_t> made_;  // trials by workload
  Oracles oracles_;
};

}  // namespace

namespace {

// A trial was made for the state of the caches that its model asked for; where it knows the other, that is
// what counts for a model that asks for it.
double asked_time_us(const TuningContext& c, const Measurement& m) {
  const double us = c.timing.cold ? m.cold_us : m.warm_us;
  return us > 0 ? us : m.time_us;
}

// By the full gate or a race checker.
bool is_refused(const std::string& message) {
  return message.rfind(kFailsFullGate, 0) == 0 || message.rfind(kHasHazard, 0) == 0;
}

// What is stored of one workload at its shape in this environment, and was made with today's texts.
struct Known {
  std::vector<artifact::TuningRecord> verified;
  std::set<std::string> failed;  // schedules with a failed trial, duel or full gate: no winners
  std::string default_failed;    // why the rule-chosen schedule was refused; "" = it was not
};
Known known_of(const TuningContext& c, const PlannedWorkload& planned) {
  Known known;
  if (!c.store) return known;
  const std::string shape = shape_key(planned);
  for (artifact::TuningRecord& r : c.store->records(planned.workload.hash, c.environment)) {
    if (r.shape != shape || !is_of_this_text(c, planned, r)) continue;
    if (r.measurement.outcome != Outcome::kOk) known.failed.insert(r.schedule.str());
    if (r.schedule == planned.schedule && is_refused(r.measurement.message))
      known.default_failed = r.measurement.message;
    r.measurement.time_us = asked_time_us(c, r.measurement);
    if (is_verified(r.measurement) && r.measurement.time_us > 0) known.verified.push_back(std::move(r));
  }
  std::erase_if(known.verified, [&](const artifact::TuningRecord& r) {
    // A default whose trial was cut short (kill -9) is no failure of its own.
    const bool is_default = r.schedule == planned.schedule && known.default_failed.empty();
    return !is_default && known.failed.count(r.schedule.str()) != 0;
  });
  return known;
}

// The rule-chosen schedule, or the first of its stand-ins that passes; throws what failed the former where
// none does.
void measure_default(const TuningContext& c, const PlannedWorkload& planned, const Known& known,
                     Oracles& oracles, Tuned& tuned) {
  std::string why = known.default_failed;
  Code code = Code::kWrongResult;
  if (why.empty()) {
    for (const artifact::TuningRecord& r : known.verified)
      if (r.schedule == planned.schedule) tuned.by_default = r.measurement;
    if (is_verified(tuned.by_default)) return;
    measure::TrialResult trial = run_trial(c, planned, planned.schedule, oracles, 0, 0);
    // A read beyond a buffer that reaches no result is a fault of ours, but no reason to give no release.
    if (trial.measurement.outcome == Outcome::kLaunchFailed && c.runner->drop_fences())
      trial = run_trial(c, planned, planned.schedule, oracles, 0, 0);
    tuned.by_default = trial.measurement;
    ++tuned.trials;
    if (tuned.by_default.outcome == Outcome::kOk) return;
    why = fmt::format("{}: {}", outcome_name(tuned.by_default.outcome), tuned.by_default.message);
    code = trial.failure;
  }
  for (const Schedule& schedule : stand_ins(planned, c.device->spec(), planned.schedule)) {
    if (!c.runner->place().lost().empty() || c.listener->stop()) break;
    if (known.failed.count(schedule.str())) continue;
    const auto stored = std::find_if(known.verified.begin(), known.verified.end(),
                                     [&](const auto& r) { return r.schedule == schedule; });
    if (stored != known.verified.end()) {
      tuned.by_default = stored->measurement;
    } else {
      tuned.by_default = run_trial(c, planned, schedule, oracles, 0, 0).measurement;
      ++tuned.trials;
    }
    if (tuned.by_default.outcome != Outcome::kOk) continue;
    tuned.default_schedule = schedule;
    tuned.note = fmt::format("{}: the rule-chosen '{}' failed ({}); '{}' takes its place",
                             planned.uses.front(), planned.schedule.str(), why, schedule.str());
    return;
  }
  throw Error(code,
              fmt::format("default schedule '{}' of region '{}' failed ({}), and no other tactic passes",
                          planned.schedule.str(), planned.uses.front(), why));
}

}  // namespace

void measure_defaults(const TuningContext& c, const std::map<std::string, PlannedWorkload>& workloads,
                      const std::string& phase) {
  Oracles oracles;
  int64_t done = 0;
  // The last first: what is prepared goes before what waits, and the first trial's kernel is to be the first.
  for (auto it = workloads.rbegin(); it != workloads.rend(); ++it)
    if (const PlannedWorkload& planned = it->second; !c.results->count(it->first))
      c.runner->prepare(planned.workload, *planned.family, planned.facts, {planned.schedule});
  std::vector<artifact::KernelSource> later;
  for (const PlannedWorkload* planned : c.later) try {
      later.push_back(c.runner->generate(planned->workload, *planned->family, planned->schedule));
    } catch (const Error&) {
      // whoever builds it hears why
    }
  c.runner->build_later(later);
  for (const auto& [hash, planned] : workloads) {
    if (c.listener->stop()) return;
    c.listener->tell({phase, planned.uses.front(), done++, static_cast<int64_t>(workloads.size()), 0, -1});
    if (c.results->count(hash)) continue;
    if (c.guard && !c.guard->wait_until_cool(*c.listener,
                                             {phase, "", done, static_cast<int64_t>(workloads.size()), 0, -1},
                                             std::numeric_limits<double>::infinity()))
      return;
    Tuned tuned;
    tuned.schedule = tuned.default_schedule = planned.schedule;
    const Known known = known_of(c, planned);
    measure_default(c, planned, known, oracles, tuned);
    tuned.schedule = tuned.default_schedule;
    tuned.best = tuned.by_default;
    // A stored winner is legal only where this version's family still says so; it is taken without a trial
    // because its record was verified in this very environment. Weights may be others than when it was made.
    const Reward reward(c.settings->agent_config.reward_weights, operand_bytes(planned), tuned.by_default);
    double best_cost = reward.cost(tuned.by_default) - 0.01 * reward.time_weight();
    for (const artifact::TuningRecord& r : known.verified) {
      const double cost = reward.cost(r.measurement);
      if (!(cost < best_cost) || r.measurement.time_us > tuned.by_default.time_us) continue;
      if (planned.family->illegal(planned.workload, r.schedule, c.device->spec())) continue;
      best_cost = cost;
      tuned.schedule = r.schedule;
      tuned.best = r.measurement;
    }
    (*c.results)[hash] = std::move(tuned);
  }
}

void tune(const TuningContext& c, const std::map<std::string, PlannedWorkload>& workloads,
          double deadline_us) {
  constexpr size_t kOlderTried = 3;
  std::vector<Searched> works;
  std::vector<const PlannedWorkload*> planned_works;
  std::optional<library::Memory> memory;
  if (c.store) memory.emplace(*c.store, c.environment);
  const tune::Knowledge knowledge = c.settings->pretrained ? knowledge_of(*c.settings) : tune::Knowledge();
  for (const auto& [hash, planned] : workloads) {
    const auto it = c.results->find(hash);
    if (it == c.results->end()) continue;
    planned_works.push_back(&planned);
    Searched& work = works.emplace_back();
    work.name = planned.uses.front();
    work.uses = static_cast<double>(planned.uses.size());
    work.tuned = &it->second;
    work.reward =
        Reward(c.settings->agent_config.reward_weights, operand_bytes(planned), it->second.by_default);
    // A CPU's peaks come from a probe whose cores others use too: on a busy machine they are far too low.
    if (!c.device->spec().is_cpu) work.light_us = light_us(planned, c.peaks ? *c.peaks : c.device->spec());
    work.space = std::make_unique<tune::Space>(
        tune::family_space(planned.workload, *planned.family, planned.facts, c.device->spec()));
    tune::AgentOptions options = agent_options(*c.settings, hash);
    const tune::Context facts = context_of(planned, c.device->spec());
    if (const auto net = knowledge.find(std::string(planned.family->name())); net && net->covers(facts))
      options.prior = std::make_shared<tune::NetPrior>(net, facts);
    if (c.store)
      c.store->put_workload_facts(hash, shape_key(planned), c.environment, tune::context_text(facts));
    work.agent = tune::make_agent(c.settings->agent, *work.space, options);
    tell(work, it->second.default_schedule, it->second.by_default);
    if (!(it->second.schedule == it->second.default_schedule))
      tell(work, it->second.schedule, it->second.best);
    if (!c.store) continue;
    const std::string shape = shape_key(planned);
    std::vector<Schedule> known{planned.schedule, it->second.default_schedule};
    std::vector<artifact::TuningRecord> older;
    for (artifact::TuningRecord& r : c.store->records(hash, c.environment))
      if (r.shape == shape) {
        const bool is_of_today = is_of_this_text(c, planned, r);
        r.measurement.time_us = asked_time_us(c, r.measurement);
        if (is_of_today) tell(work, r.schedule, r.measurement);
        if (is_of_today || r.source_key.empty()) known.push_back(r.schedule);
        if (!is_of_today) older.push_back(std::move(r));
      }
    // Made with another text of their kernel: worth a trial, the fastest first.
    std::stable_sort(older.begin(), older.end(), [](const auto& a, const auto& b) {
      return a.measurement.time_us < b.measurement.time_us;
    });
    for (const artifact::TuningRecord& r : older)
      if (const auto point = work.space->point(r.schedule);
          is_verified(r.measurement) && work.first.size() < kOlderTried && point &&
          work.space->legal(*point) && std::find(known.begin(), known.end(), r.schedule) == known.end()) {
        work.first.push_back(r.schedule);
        known.push_back(r.schedule);
      }
    for (const Schedule& warm : warm_starts(*c.store, hash, shape, c.environment))
      if (const auto point = work.space->point(warm);
          std::find(known.begin(), known.end(), warm) == known.end() && point && work.space->legal(*point))
        work.first.push_back(warm);
    for (const library::Neighbour& near : memory->neighbours(library::entry_of(planned), shape))
      if (const auto point = work.space->point(near.schedule);
          std::find(known.begin(), known.end(), near.schedule) == known.end() &&
          std::find(work.first.begin(), work.first.end(), near.schedule) == work.first.end() && point &&
          work.space->legal(*point))
        work.first.push_back(near.schedule);
  }
  DeviceTrials source(c, std::move(planned_works), deadline_us);
  search(works, source, {c.trials, c.settings->max_trials, deadline_us}, *c.listener);
}

}  // namespace thrice::flow
