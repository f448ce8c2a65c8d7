#include "flow/tuning.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <deque>
#include <limits>

#include "base/clock.h"
#include "flow/agent_train.h"
#include "flow/environment.h"
#include "library/extract.h"
#include "library/memory.h"
#include "tune/family_space.h"

namespace thrice::flow {

using artifact::Measurement;
using artifact::Outcome;
using artifact::Schedule;
using plan::PlannedWorkload;

std::string shape_key(const PlannedWorkload& planned) {
  std::map<std::string, int64_t> values;
  const ir::Graph& graph = planned.workload.graph;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const ir::Shape& shape = graph.value(graph.inputs[i]).type.shape;
    const ir::Shape& concrete = planned.facts[i].type.shape;
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (!shape[axis].is_const()) values[shape[axis].str()] = concrete[axis].value();
  }
  std::string key;
  for (const auto& [symbol, value] : values)
    key += fmt::format("{}{}={}", key.empty() ? "" : " ", symbol, value);
  return key;
}

namespace {

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

artifact::TuningRecord record_of(const TuningContext& c, const PlannedWorkload& planned,
                                 const Schedule& schedule) {
  artifact::TuningRecord record;
  record.workload = planned.workload.hash;
  record.shape = shape_key(planned);
  record.environment = c.environment;
  record.schedule = schedule;
  record.unix_time = unix_time();
  return record;
}

measure::TrialResult run_trial(const TuningContext& c, const PlannedWorkload& planned,
                               const Schedule& schedule, Oracles& oracles, double give_up_us) {
  measure::TrialOptions options;
  // Float64 answers are computed once a round; integers take the next seed too.
  constexpr uint64_t kRound = 16;
  options.seed = c.settings->seed + 2 * (static_cast<uint64_t>(*c.trials) / kRound);
  options.give_up_us = give_up_us;
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
  record.source_key = trial.source_key;
  if (c.store) c.store->finish(begun, record);
  if (c.record)
    c.record->add({planned.workload.hash, shape_key(planned), planned.uses.front(),
                   static_cast<int64_t>(planned.uses.size()), schedule == planned.schedule, schedule,
                   trial.measurement});
  return trial;
}

// Of operands and results.
double operand_bytes(const PlannedWorkload& planned) {
  const ir::Graph& graph = planned.workload.graph;
  const std::vector<ir::Fact> facts = ir::bind(graph, planned.facts);
  double bytes = 0;
  for (const auto* ids : {&graph.inputs, &graph.outputs})
    for (const ir::ValueId id : *ids) {
      const ir::Type& type = facts[static_cast<size_t>(id)].type;
      double elements = 1;
      for (const ir::Dim& extent : type.shape) elements *= static_cast<double>(extent.value());
      bytes += elements * static_cast<double>(dtype_bytes(type.dtype));
    }
  return bytes;
}

// The least time that peaks allow; 0 where they are unknown. What fits into the cache is not bound by memory.
double light_us(const PlannedWorkload& planned, const target::DeviceSpec& spec) {
  if (!(spec.bandwidth_gbs > 0) || !(spec.f32_gflops > 0)) return 0;
  const family::Work work = family::count_work(planned.workload, planned.facts);
  const bool is_product = planned.family->name() == "matmul" || planned.family->name() == "conv";
  const double arithmetic = work.flops / ((is_product ? spec.product_gflops() : spec.f32_gflops) * 1e3);
  const bool from_memory = work.bytes > static_cast<double>(spec.l2_bytes);
  return std::max(arithmetic, from_memory ? work.bytes / (spec.bandwidth_gbs * 1e3) : 0);
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
      return run_trial(c_, *works_[work], schedule, oracles_, give_up_us).measurement;
    } catch (const Error& error) {
      if (c_.runner->place().lost().empty()) throw;
      Measurement not_made;  // no record: the candidate is not to blame
      not_made.message = error.what();
      return not_made;
    }
  }
  size_t lookahead() const override { return c_.runner->place().lookahead(); }
  void prepare(size_t work, const std::vector<Schedule>& schedules) override {
    c_.runner->prepare(works_[work]->workload, *works_[work]->family, schedules);
  }
  std::array<measure::Timing, 2> duel(size_t work, const Schedule& best,
                                      const Schedule& challenger) override {
    const PlannedWorkload& planned = *works_[work];
    try {
      const auto timings =
          c_.runner->compare(planned.workload, *planned.family, {best, challenger}, oracles_.of(planned), {});
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
  Oracles oracles_;
};

}  // namespace

void measure_defaults(const TuningContext& c, const std::map<std::string, PlannedWorkload>& workloads,
                      const std::string& phase) {
  Oracles oracles;
  int64_t done = 0;
  for (const auto& [hash, planned] : workloads)
    if (!c.results->count(hash)) c.runner->prepare(planned.workload, *planned.family, {planned.schedule});
  for (const auto& [hash, planned] : workloads) {
    if (c.listener->stop()) return;
    c.listener->tell({phase, planned.uses.front(), done++, static_cast<int64_t>(workloads.size()), 0, -1});
    if (c.results->count(hash)) continue;
    Tuned tuned;
    tuned.schedule = planned.schedule;
    const std::string shape = shape_key(planned);
    std::optional<artifact::TuningRecord> known_default;
    std::vector<artifact::TuningRecord> known;
    if (c.store)
      for (artifact::TuningRecord& r : c.store->records(hash, c.environment)) {
        if (r.shape != shape || !is_verified(r.measurement) || !(r.measurement.time_us > 0)) continue;
        if (r.schedule == planned.schedule) known_default = r;
        known.push_back(std::move(r));
      }
    if (known_default) {
      tuned.by_default = known_default->measurement;
    } else {
      if (c.guard && !c.guard->wait_until_cool(
                         *c.listener, {phase, "", done, static_cast<int64_t>(workloads.size()), 0, -1},
                         std::numeric_limits<double>::infinity()))
        return;
      measure::TrialResult trial = run_trial(c, planned, planned.schedule, oracles, 0);
      // A read beyond a buffer that reaches no result is a fault of ours, but no reason to give no release.
      if (trial.measurement.outcome == Outcome::kLaunchFailed && c.runner->drop_fences())
        trial = run_trial(c, planned, planned.schedule, oracles, 0);
      tuned.by_default = trial.measurement;
      ++tuned.trials;
      if (tuned.by_default.outcome != Outcome::kOk)
        throw Error(trial.failure,
                    fmt::format("default schedule '{}' of region '{}' failed ({}): {}",
                                planned.schedule.str(), planned.uses.front(),
                                outcome_name(tuned.by_default.outcome), tuned.by_default.message));
    }
    tuned.best = tuned.by_default;
    // A stored winner is legal only where this version's family still says so; it is taken without a trial
    // because its record was verified in this very environment. Weights may be others than when it was made.
    const Reward reward(c.settings->agent_config.reward_weights, operand_bytes(planned), tuned.by_default);
    double best_cost = reward.cost(tuned.by_default) - 0.01 * reward.time_weight();
    for (const artifact::TuningRecord& r : known) {
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
    work.light_us = light_us(planned, c.peaks ? *c.peaks : c.device->spec());
    work.space = std::make_unique<tune::Space>(
        tune::family_space(planned.workload, *planned.family, planned.facts, c.device->spec()));
    tune::AgentOptions options = agent_options(*c.settings, hash);
    const tune::Context facts = context_of(planned, c.device->spec());
    if (const auto net = knowledge.find(std::string(planned.family->name())); net && net->covers(facts))
      options.prior = std::make_shared<tune::NetPrior>(net, facts);
    if (c.store)
      c.store->put_workload_facts(hash, shape_key(planned), c.environment, tune::context_text(facts));
    work.agent = tune::make_agent(c.settings->agent, *work.space, options);
    tell(work, planned.schedule, it->second.by_default);
    if (!(it->second.schedule == planned.schedule)) tell(work, it->second.schedule, it->second.best);
    if (!c.store) continue;
    const std::string shape = shape_key(planned);
    std::vector<Schedule> known{planned.schedule};
    for (const artifact::TuningRecord& r : c.store->records(hash, c.environment))
      if (r.shape == shape) {
        tell(work, r.schedule, r.measurement);
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

void confirm(const TuningContext& c, const std::map<std::string, PlannedWorkload>& workloads,
             std::vector<std::string>& notes) {
  Oracles oracles;
  int64_t done = 0;
  for (const auto& [hash, planned] : workloads) {
    const auto it = c.results->find(hash);
    if (it == c.results->end()) continue;
    Tuned& tuned = it->second;
    c.listener->tell({"verify", planned.uses.front(), done++, static_cast<int64_t>(workloads.size()), 0, -1});
    for (const bool is_fallback : {false, true}) {
      measure::TrialOptions options;
      options.gate = measure::Gate::kFull;
      options.seed = c.settings->seed + 7919;  // seeds that no screening used
      options.timing = {0, 1, 0};              // judged here, timed elsewhere
      const Measurement m =
          c.runner->run(planned.workload, *planned.family, tuned.schedule, oracles.of(planned), options)
              .measurement;
      if (m.outcome == Outcome::kOk) {
        tuned.best.error = m.error;
        tuned.best.error_limit = m.error_limit;
        break;
      }
      if (is_fallback || tuned.schedule == planned.schedule)
        throw Error(Code::kWrongResult,
                    fmt::format("default schedule '{}' of region '{}' fails the full gate: {}",
                                planned.schedule.str(), planned.uses.front(), m.message));
      notes.push_back(fmt::format("{}: '{}' passed screening but not the full gate ({}); the default is used",
                                  planned.uses.front(), tuned.schedule.str(), m.message));
      tuned.schedule = planned.schedule;
      tuned.best = tuned.by_default;
    }
  }
}

}  // namespace thrice::flow
