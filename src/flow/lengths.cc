#include "flow/lengths.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <limits>
#include <set>

#include "base/clock.h"
#include "flow/confirm.h"
#include "flow/whole_model.h"

namespace thrice::flow {

using artifact::Bucket;
using artifact::Schedule;
using plan::PlannedWorkload;

namespace {

constexpr size_t kPoints = 4;        // tuned for: more would share the budget too thin
constexpr double kLeastGain = 0.02;  // of a region's time that a kernel more must win

std::vector<ir::Fact> facts_of(const PlannedWorkload& planned, const std::vector<ir::Fact>& model) {
  std::vector<ir::Fact> facts;
  for (ir::ValueId v : planned.workload.inputs) facts.push_back(model[static_cast<size_t>(v)]);
  return facts;
}

bool same_extents(const std::vector<ir::Fact>& a, const std::vector<ir::Fact>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (!(a[i].type.shape == b[i].type.shape && a[i].known == b[i].known)) return false;
  return true;
}

// Workloads of regions outside of bodies: their operands are values of the model's own graph.
std::map<std::string, PlannedWorkload> outer_workloads(const ir::Graph& graph,
                                                       const plan::PlanResult& planned) {
  std::map<std::string, PlannedWorkload> workloads;
  for (const auto& segment : planned.plan.segments)
    for (const auto& step : segment.steps) {
      if (step.kind != artifact::StepKind::kRegion || workloads.count(step.workload)) continue;
      PlannedWorkload& work = workloads[step.workload] = planned.workloads.at(step.workload);
      work.workload = ir::extract(graph, ir::make_region(graph, step.nodes));
    }
  return workloads;
}

ir::Bindings at_length(ir::Bindings bindings, const std::string& symbol, int64_t length) {
  bindings[symbol] = length;
  return bindings;
}

}  // namespace

int64_t main_length(const LengthSpec& spec) {
  const std::vector<int64_t> points = plan::tuning_points(spec.lengths, kPoints);
  return points[points.size() / 2];
}

std::vector<LengthPoint> length_points(const ir::Graph& graph, const plan::PlanResult& planned,
                                       const target::DeviceSpec& device, const LengthSpec& spec,
                                       const ir::Bindings& main) {
  std::vector<LengthPoint> points;
  const auto outer = outer_workloads(graph, planned);
  for (const int64_t length : plan::tuning_points(spec.lengths, kPoints)) {
    if (length == main_length(spec)) continue;
    LengthPoint& point = points.emplace_back();
    point.length = length;
    point.bindings = at_length(main, spec.symbol, length);
    const std::vector<ir::Fact> facts = plan::model_facts(graph, point.bindings);
    for (const auto& [hash, work] : outer) {
      std::vector<ir::Fact> there = facts_of(work, facts);
      if (same_extents(there, work.facts)) continue;
      PlannedWorkload& at = point.workloads[hash] = work;
      at.facts = std::move(there);
      at.schedule = at.family->default_schedule(at.workload, at.facts, device);
    }
  }
  return points;
}

void tune_lengths(const TuningContext& main, const std::map<std::string, PlannedWorkload>& workloads,
                  std::vector<LengthPoint>& points, bool tunes, double deadline_us) {
  size_t left = points.size() + 1;
  const auto tune_at = [&](std::map<std::string, Tuned>& results,
                           const std::map<std::string, PlannedWorkload>& works, const std::string& where) {
    Settings settings = *main.settings;
    settings.max_trials =
        *main.trials + std::max<int64_t>(settings.max_trials - *main.trials, 0) / static_cast<int64_t>(left);
    const double now = monotonic_us();
    const double until = now + std::max(0.0, deadline_us - now) / static_cast<double>(left--);
    TuningContext context = main;
    context.settings = &settings;
    context.results = &results;
    measure_defaults(context, works, "build and check" + where);
    if (tunes && !main.listener->stop()) tune(context, works, until);
  };
  tune_at(*main.results, workloads, "");
  for (LengthPoint& point : points)
    tune_at(point.results, point.workloads, fmt::format(" at length {}", point.length));
}

namespace {

// A workload at one of the points, the main one included.
struct AtPoint {
  int64_t length = 0;
  const PlannedWorkload* planned = nullptr;
  const Tuned* tuned = nullptr;
};

// What was best or rule-chosen at any point, each once.
std::vector<Schedule> schedules_of(const std::vector<AtPoint>& points) {
  std::vector<Schedule> all;
  const auto add = [&](const Schedule& s) {
    if (std::find(all.begin(), all.end(), s) == all.end()) all.push_back(s);
  };
  for (const AtPoint& point : points) add(point.tuned->schedule);
  for (const AtPoint& point : points) add(point.tuned->default_schedule);
  return all;
}

std::vector<plan::LengthCost> time_choices(const TuningContext& c, const std::vector<AtPoint>& points,
                                           const std::vector<Schedule>& choices) {
  std::vector<plan::LengthCost> costs(choices.size());
  measure::TimingOptions timing;
  timing.cold = c.timing.cold;
  for (const AtPoint& point : points) {
    const PlannedWorkload& planned = *point.planned;
    measure::Oracle oracle(planned.workload, planned.facts);
    const auto times = c.runner->compare(planned.workload, *planned.family, choices, oracle, timing);
    for (size_t k = 0; k < choices.size(); ++k) costs[k].us.emplace_back(point.length, times[k].median_us);
  }
  return costs;
}

}  // namespace

LengthBuckets choose_buckets(const TuningContext& c, const std::map<std::string, PlannedWorkload>& workloads,
                             std::vector<LengthPoint>& points, const LengthSpec& spec,
                             std::vector<std::string>& notes) {
  LengthBuckets buckets;
  double apart = 0, together = 0;
  int64_t done = 0, split = 0;
  for (const auto& [hash, planned] : workloads) {
    c.listener->tell(
        {"choose by length", planned.uses.front(), done++, static_cast<int64_t>(workloads.size()), 0, -1});
    if (c.listener->stop()) return {};
    std::vector<AtPoint> all;
    for (const LengthPoint& point : points) {
      const auto it = point.results.find(hash);
      if (it != point.results.end()) all.push_back({point.length, &point.workloads.at(hash), &it->second});
    }
    const auto main = c.results->find(hash);
    if (all.empty() || main == c.results->end()) continue;
    all.push_back({main_length(spec), &planned, &main->second});
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.length < b.length; });
    const std::vector<Schedule> choices = schedules_of(all);
    if (choices.size() == 1) continue;
    try {
      const std::vector<plan::LengthCost> costs = time_choices(c, all, choices);
      const auto one = plan::split_lengths(spec.lengths, costs, std::numeric_limits<double>::infinity());
      const double one_us = plan::expected_us(spec.lengths, costs, one);
      const auto ranges = plan::split_lengths(spec.lengths, costs, kLeastGain * one_us);
      const double uses = static_cast<double>(planned.uses.size());
      together += uses * one_us;
      apart += uses * plan::expected_us(spec.lengths, costs, ranges);
      split += ranges.size() > 1;
      for (const plan::LengthRange& range : ranges)
        buckets[hash].push_back({range.up_to, choices[range.choice]});
    } catch (const Error& error) {
      if (error.code() == Code::kCancelled) throw;
      notes.push_back(
          fmt::format("{}: one schedule for all lengths, they could not be timed beside each "
                      "other: {}",
                      planned.uses.front(), error.what()));
    }
  }
  notes.push_back(split == 0
                      ? fmt::format("{}: one schedule a region serves all lengths", spec.symbol)
                      : fmt::format("{}: {} regions take other schedules for other lengths; expected time of "
                                    "what differs: {:.3f} of the best single schedules'",
                                    spec.symbol, split, apart / together));
  return buckets;
}

void confirm_buckets(const TuningContext& c, const ir::Graph& graph, const LengthSpec& spec,
                     const ir::Bindings& bindings, const std::vector<LengthPoint>& points,
                     LengthBuckets& buckets, const worker::RaceChecker* races, RaceReport& report,
                     std::vector<std::string>& notes) {
  std::map<int64_t, std::vector<ir::Fact>> facts;  // of the model, by length
  // Why the schedule cannot serve this length; "" = it can.
  const auto refused = [&](const PlannedWorkload& planned, const Schedule& schedule,
                           int64_t length) -> std::string {
    auto [it, is_new] = facts.try_emplace(length);
    if (is_new) it->second = plan::model_facts(graph, at_length(bindings, spec.symbol, length));
    PlannedWorkload there = planned;
    there.facts = facts_of(planned, it->second);
    measure::Oracle oracle(there.workload, there.facts);
    const artifact::Measurement m = full_gate(c, there, schedule, oracle);
    if (m.outcome != artifact::Outcome::kOk) return kFailsFullGate + m.message;
    if (races == nullptr) return {};
    const worker::RaceVerdict verdict = race_verdict(c, there, schedule, *races);
    report.clean += verdict.kind == worker::RaceVerdict::kClean;
    report.not_checked += verdict.kind == worker::RaceVerdict::kNotChecked;
    if (verdict.kind != worker::RaceVerdict::kHazard) return {};
    ++report.refused;
    return kHasHazard + verdict.why;
  };
  int64_t done = 0;
  for (auto it = buckets.begin(); it != buckets.end();) {
    const auto point = std::find_if(points.begin(), points.end(),
                                    [&](const LengthPoint& p) { return p.workloads.count(it->first) != 0; });
    const PlannedWorkload& planned = point->workloads.at(it->first);
    c.listener->tell(
        {"verify by length", planned.uses.front(), done++, static_cast<int64_t>(buckets.size()), 0, -1});
    std::string why;
    size_t first = 0;
    for (const Bucket& bucket : it->second) {
      const int64_t shortest = spec.lengths[first].length;
      while (first < spec.lengths.size() && spec.lengths[first].length <= bucket.up_to) ++first;
      for (const int64_t length : std::set<int64_t>{shortest, bucket.up_to}) {
        if (!why.empty()) continue;
        if (const std::string reason = refused(planned, bucket.schedule, length); !reason.empty())
          why = fmt::format("'{}' at {} {}: {}", bucket.schedule.str(), spec.symbol, length, reason);
      }
    }
    if (why.empty()) {
      ++it;
      continue;
    }
    notes.push_back(fmt::format("{}: one schedule for all lengths: {}", planned.uses.front(), why));
    it = buckets.erase(it);
  }
}

std::vector<ir::Bindings> length_ends(const LengthSpec& spec, const ir::Bindings& bindings) {
  if (spec.lengths.empty()) return {};
  return {at_length(bindings, spec.symbol, spec.lengths.front().length),
          at_length(bindings, spec.symbol, spec.lengths.back().length)};
}

std::vector<LengthReport> time_lengths(backend::Device& device, exec::Executor& original,
                                       exec::Executor& best, const std::vector<LengthPoint>& points,
                                       uint64_t seed) {
  std::vector<LengthReport> rows;
  for (const LengthPoint& point : points) {
    const auto times = time_models(device, original, best, point.bindings, seed);
    rows.push_back({point.length, times[0].median_us, times[1].median_us});
  }
  return rows;
}

void set_buckets(const LengthBuckets& buckets, const std::string& symbol, artifact::Plan& plan) {
  bool any = false;
  for (auto& segment : plan.segments)
    for (auto& step : segment.steps) {
      step.buckets.clear();
      const auto it = buckets.find(step.workload);
      if (step.kind != artifact::StepKind::kRegion || it == buckets.end()) continue;
      step.buckets.assign(it->second.begin(), it->second.end() - 1);
      step.schedule = it->second.back().schedule;
      any = any || !step.buckets.empty();
    }
  plan.bucket_symbol = any ? symbol : "";
}

}  // namespace thrice::flow
