#include "flow/memory_budget.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "exec/predict.h"
#include "family/in_place.h"

namespace thrice::flow {

namespace {

using artifact::Schedule;
using plan::PlannedWorkload;

exec::PredictedMemory predict(const std::shared_ptr<const ir::Graph>& graph, const artifact::Plan& plan,
                              const ir::Bindings& bindings) {
  return exec::predict_memory(*exec::resolve_plan(graph, std::make_shared<artifact::Plan>(plan)), bindings);
}

void set_schedule(artifact::Plan& plan, const std::string& workload, const Schedule& schedule) {
  for (artifact::Segment& segment : plan.segments)
    for (artifact::PlanStep& step : segment.steps)
      if (step.kind == artifact::StepKind::kRegion && step.workload == workload) step.schedule = schedule;
  for (artifact::Plan::Body& body : plan.bodies) set_schedule(body.plan[0], workload, schedule);
}

void collect(const artifact::Plan& plan, std::map<std::string, Schedule>& schedules) {
  for (const artifact::Segment& segment : plan.segments)
    for (const artifact::PlanStep& step : segment.steps)
      if (step.kind == artifact::StepKind::kRegion) schedules[step.workload] = step.schedule;
  for (const artifact::Plan::Body& body : plan.bodies) collect(body.plan[0], schedules);
}

}  // namespace

namespace {

// What tuning tried, the fastest first and the default last, with its times.
void tried(const std::map<std::string, Tuned>& results, Alternatives& alternatives, ScheduleTimes& times) {
  for (const auto& [hash, tuned] : results) {
    std::vector<std::pair<double, std::string>> ranked;
    for (const Attempt& attempt : tuned.attempts)
      if (attempt.ok) ranked.emplace_back(attempt.time_us, attempt.schedule);
    std::sort(ranked.begin(), ranked.end());
    for (const auto& [us, schedule] : ranked) {
      alternatives[hash].push_back(Schedule::parse(schedule));
      times[hash].emplace(schedule, us);
    }
    if (tuned.default_schedule.family.empty()) continue;
    alternatives[hash].push_back(tuned.default_schedule);
    if (tuned.by_default.time_us > 0)
      times[hash].emplace(family::apart(tuned.default_schedule).str(), tuned.by_default.time_us);
    if (tuned.best.time_us > 0) times[hash].emplace(family::apart(tuned.schedule).str(), tuned.best.time_us);
  }
}

}  // namespace

int64_t total_memory(const std::shared_ptr<const ir::Graph>& graph, const artifact::Plan& plan,
                     const ir::Bindings& bindings) {
  return predict(graph, plan, bindings).use.total();
}

Alternatives frugal_schedules(const std::map<std::string, PlannedWorkload>& workloads,
                              const target::DeviceSpec& device) {
  Alternatives found;
  target::DeviceSpec plain = device;
  if (!plain.architecture.empty() && plain.architecture.back() == 'a') plain.architecture.pop_back();
  for (const auto& [hash, planned] : workloads) {
    const Schedule schedule = planned.family->default_schedule(planned.workload, planned.facts, plain);
    if (schedule == planned.schedule || planned.family->illegal(planned.workload, schedule, device)) continue;
    found[hash].push_back(schedule);
  }
  return found;
}

namespace {

int64_t need(const PlannedWorkload& planned, const Schedule& schedule) {
  const ScheduleNeed need = need_of(planned, schedule);
  return need.scratch + need.kept;
}

struct Fitted {
  std::map<std::string, Schedule> changed;
  std::vector<std::string> notes;
};

// One exchange after the other. Throws where they do not suffice.
Fitted exchange(const std::shared_ptr<const ir::Graph>& graph, artifact::Plan& plan,
                const std::map<std::string, PlannedWorkload>& workloads, const Alternatives& alternatives,
                const ir::Bindings& bindings, int64_t budget) {
  std::map<std::string, Schedule> now;
  Fitted fitted;
  collect(plan, now);
  exec::PredictedMemory memory = predict(graph, plan, bindings);
  while (memory.use.total() > budget) {
    // The region with the most to give up takes its fastest schedule that needs less.
    std::string region;
    Schedule next;
    int64_t most = 0;
    for (const auto& [hash, schedule] : now) {
      const auto others = alternatives.find(hash);
      const auto planned = workloads.find(hash);
      if (others == alternatives.end() || planned == workloads.end()) continue;
      const int64_t needs = need(planned->second, schedule);
      for (const Schedule& other : others->second) {
        const int64_t saved = needs - need(planned->second, other);
        if (saved <= 0) continue;
        if (saved > most) {
          most = saved;
          region = hash;
          next = other;
        }
        break;
      }
    }
    if (region.empty())
      throw Error(
          Code::kOutOfMemory,
          fmt::format("a memory budget of {} bytes is too small: at {} this model takes {} bytes at "
                      "least, {} of them weights on the device, {} inputs, outputs and values between "
                      "segments, {} temporaries of '{}'; raise the budget or lower the extents (--dims)",
                      budget, bindings.empty() ? "its shapes" : "these extents", memory.use.total(),
                      memory.use.held, memory.use.pool, memory.use.arena,
                      memory.fullest.empty() ? "no step" : memory.fullest));
    fitted.notes.push_back(fmt::format("{}: '{}' instead of '{}', {} bytes less, for the memory budget",
                                       workloads.at(region).uses.front(), next.str(), now[region].str(),
                                       most));
    now[region] = fitted.changed[region] = next;
    set_schedule(plan, region, next);
    memory = predict(graph, plan, bindings);
  }
  return fitted;
}

// The fastest point of the front that keeps the budget, as the binding counts it; nullopt: none of the
// nearest does.
std::optional<Fitted> from_front(const std::shared_ptr<const ir::Graph>& graph, artifact::Plan& plan,
                                 const std::map<std::string, PlannedWorkload>& workloads,
                                 const MemoryModel& model, const ir::Bindings& bindings, int64_t budget) {
  constexpr int kTries = 16;  // bindings: some milliseconds a hundred regions each
  const analysis::MemoryFront front = front_of(model);
  int tries = 0;
  for (size_t i = front.points.size(); i-- > 0 && tries < kTries;) {
    const analysis::FrontPoint& point = front.points[i];
    if (point.bytes > budget) continue;
    ++tries;
    artifact::Plan other = plan;
    Fitted fitted;
    for (size_t r = 0; r < model.regions.size(); ++r) {
      if (point.choices[r] == 0) continue;
      const std::string& hash = model.regions[r];
      const Schedule &before = model.schedules[r][0], &next = model.schedules[r][point.choices[r]];
      set_schedule(other, hash, next);
      fitted.changed[hash] = next;
      fitted.notes.push_back(fmt::format("{}: '{}' instead of '{}', {} bytes less, for the memory budget",
                                         workloads.at(hash).uses.front(), next.str(), before.str(),
                                         need(workloads.at(hash), before) - need(workloads.at(hash), next)));
    }
    if (predict(graph, other, bindings).use.total() > budget) continue;
    plan = std::move(other);
    return fitted;
  }
  return std::nullopt;
}

// What the plan's regions take with these changes, as the model prices them.
double time_of(const MemoryModel& model, const std::map<std::string, Schedule>& changed) {
  double time = 0;
  for (size_t r = 0; r < model.regions.size(); ++r) {
    size_t choice = 0;
    if (const auto it = changed.find(model.regions[r]); it != changed.end()) {
      const auto at = std::find(model.schedules[r].begin(), model.schedules[r].end(), it->second);
      if (at == model.schedules[r].end()) return std::numeric_limits<double>::infinity();  // beaten by others
      choice = static_cast<size_t>(at - model.schedules[r].begin());
    }
    time += model.choices[r][choice].time;
  }
  return time;
}

}  // namespace

std::map<std::string, Schedule> fit_memory(const std::shared_ptr<const ir::Graph>& graph,
                                           artifact::Plan& plan,
                                           const std::map<std::string, PlannedWorkload>& workloads,
                                           const Alternatives& alternatives, const ir::Bindings& bindings,
                                           int64_t budget, std::vector<std::string>& notes,
                                           const ScheduleTimes& times) {
  const exec::PredictedMemory memory = predict(graph, plan, bindings);
  if (memory.use.total() <= budget) return {};
  const MemoryModel model = model_memory(plan, memory, workloads, alternatives, times);
  artifact::Plan best = plan;
  std::optional<Fitted> fitted = from_front(graph, best, workloads, model, bindings, budget);
  artifact::Plan step_by_step = fitted ? plan : artifact::Plan();
  try {
    Fitted other = exchange(graph, fitted ? step_by_step : plan, workloads, alternatives, bindings, budget);
    if (!fitted || time_of(model, other.changed) < time_of(model, fitted->changed)) {
      if (fitted) plan = std::move(step_by_step);
      notes.insert(notes.end(), other.notes.begin(), other.notes.end());
      return other.changed;
    }
  } catch (const Error&) {
    if (!fitted) throw;
  }
  plan = std::move(best);
  notes.insert(notes.end(), fitted->notes.begin(), fitted->notes.end());
  return fitted->changed;
}

std::vector<artifact::MemoryPoint> memory_points(const std::shared_ptr<const ir::Graph>& graph,
                                                 const plan::PlanResult& planned,
                                                 const std::map<std::string, Tuned>& results,
                                                 const target::DeviceSpec& device,
                                                 const ir::Bindings& bindings) {
  Alternatives alternatives = frugal_schedules(planned.workloads, device);  // counts where nothing was tried
  ScheduleTimes times;
  tried(results, alternatives, times);
  for (auto& [hash, others] : alternatives)  // where the plan writes in place they would too
    if (const auto it = results.find(hash);
        it != results.end() && it->second.schedule.get("in_place", 0) != 0 && planned.workloads.count(hash))
      for (Schedule& other : others) {
        const PlannedWorkload& work = planned.workloads.at(hash);
        other = family::in_place(*work.family, work.workload, other);
      }
  const MemoryModel model = model_memory(planned.plan, predict(graph, planned.plan, bindings),
                                         planned.workloads, alternatives, times);
  if (model.regions.empty()) return {};
  return describe(model, front_of(model), planned.workloads);
}

void keep_within(int64_t budget, const std::shared_ptr<const ir::Graph>& graph, const ir::Bindings& bindings,
                 plan::PlanResult& planned, std::map<std::string, Tuned>& results,
                 std::vector<std::string>& notes) {
  Alternatives alternatives;
  ScheduleTimes times;
  tried(results, alternatives, times);
  for (const auto& [hash, schedule] :
       fit_memory(graph, planned.plan, planned.workloads, alternatives, bindings, budget, notes, times)) {
    Tuned& tuned = results.at(hash);
    tuned.schedule = schedule;
    const auto tried = times[hash].find(schedule.str());
    tuned.best.time_us = tried == times[hash].end() ? tuned.by_default.time_us : tried->second;
  }
}

}  // namespace thrice::flow
