#include "flow/memory_budget.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>

#include "exec/predict.h"

namespace thrice::flow {

namespace {

using artifact::Schedule;
using plan::PlannedWorkload;

exec::PredictedMemory predict(const std::shared_ptr<const ir::Graph>& graph, const artifact::Plan& plan,
                              const ir::Bindings& bindings) {
  return exec::predict_memory(*exec::resolve_plan(graph, std::make_shared<artifact::Plan>(plan)), bindings);
}

// Bytes that one schedule costs beyond operands and results: scratch, and packed weights less the weights
// that they stand for, once a use.
int64_t need(const PlannedWorkload& planned, const Schedule& schedule) {
  const artifact::LaunchPlan launches = planned.family->launch(planned.workload, schedule, planned.facts);
  int64_t scratch = 0, kept = 0;
  for (size_t t = 0; t < launches.temporary_bytes.size(); ++t)
    (launches.temporary_kept[t] ? kept : scratch) += launches.temporary_bytes[t];
  const std::vector<family::KernelUse> uses = planned.family->uses(planned.workload, schedule);
  const ir::Graph& graph = planned.workload.graph;
  size_t buffer = 0;
  for (size_t i = 0; i < graph.inputs.size() && !uses.empty(); ++i) {
    if (ir::is_shape_input(planned.workload, i)) continue;
    const auto needs = [&](const family::KernelUse& use) { return !use.once && use.touches[buffer]; };
    if (graph.value(graph.inputs[i]).is_weight && std::none_of(uses.begin(), uses.end(), needs)) {
      const ir::Type& type = planned.facts[i].type;
      kept -= ir::num_elements(ir::static_shape(type.shape)) * static_cast<int64_t>(dtype_bytes(type.dtype));
    }
    ++buffer;
  }
  return scratch + kept * static_cast<int64_t>(std::max<size_t>(planned.uses.size(), 1));
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

std::map<std::string, Schedule> fit_memory(const std::shared_ptr<const ir::Graph>& graph,
                                           artifact::Plan& plan,
                                           const std::map<std::string, PlannedWorkload>& workloads,
                                           const Alternatives& alternatives, const ir::Bindings& bindings,
                                           int64_t budget, std::vector<std::string>& notes) {
  std::map<std::string, Schedule> now, changed;
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
    notes.push_back(fmt::format("{}: '{}' instead of '{}', {} bytes less, for the memory budget",
                                workloads.at(region).uses.front(), next.str(), now[region].str(), most));
    now[region] = changed[region] = next;
    set_schedule(plan, region, next);
    memory = predict(graph, plan, bindings);
  }
  return changed;
}

void keep_within(int64_t budget, const std::shared_ptr<const ir::Graph>& graph, const ir::Bindings& bindings,
                 plan::PlanResult& planned, std::map<std::string, Tuned>& results,
                 std::vector<std::string>& notes) {
  Alternatives alternatives;
  std::map<std::string, std::map<std::string, double>> times;
  for (const auto& [hash, tuned] : results) {
    std::vector<std::pair<double, std::string>> tried;
    for (const Attempt& attempt : tuned.attempts)
      if (attempt.ok) tried.emplace_back(attempt.time_us, attempt.schedule);
    std::sort(tried.begin(), tried.end());
    for (const auto& [us, schedule] : tried) {
      alternatives[hash].push_back(artifact::Schedule::parse(schedule));
      times[hash].emplace(schedule, us);
    }
    alternatives[hash].push_back(tuned.default_schedule);
  }
  for (const auto& [hash, schedule] :
       fit_memory(graph, planned.plan, planned.workloads, alternatives, bindings, budget, notes)) {
    Tuned& tuned = results.at(hash);
    tuned.schedule = schedule;
    const auto tried = times[hash].find(schedule.str());
    tuned.best.time_us = tried == times[hash].end() ? tuned.by_default.time_us : tried->second;
  }
}

}  // namespace thrice::flow
