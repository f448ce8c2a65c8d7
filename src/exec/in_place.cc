#include "exec/in_place.h"

#include <thrice/status.h>

#include "exec/bind.h"
#include "exec/lifetimes.h"
#include "family/in_place.h"

namespace thrice::exec {

using artifact::Schedule;
using artifact::StepKind;

namespace {

// Whether a launch of the step finds an operand and a result at one place.
bool is_shared(const StepCode& code, const BoundSegment& bound, size_t step, const family::Share& share) {
  size_t input = 0, inputs = 0;
  for (size_t i = 0; i < code.workload.inputs.size(); ++i) {
    if (ir::is_shape_input(code.workload, i)) continue;
    if (i < share.input) ++input;
    ++inputs;
  }
  const BoundStep& launches = bound.steps[step];
  for (size_t l = launches.first_launch; l < launches.first_launch + launches.num_launches; ++l) {
    const BoundArgument& from = bound.launches[l].arguments[input];
    const BoundArgument& to = bound.launches[l].arguments[inputs + share.output];
    if (from.storage == Storage::kArena && to.storage == Storage::kArena && from.offset == to.offset &&
        from.bytes > 0)
      return true;
  }
  return false;
}

}  // namespace

void set_schedules(artifact::Plan& plan, const std::map<std::string, Schedule>& schedules) {
  for (artifact::Segment& segment : plan.segments)
    for (artifact::PlanStep& step : segment.steps)
      if (const auto it = schedules.find(step.workload);
          step.kind == StepKind::kRegion && it != schedules.end())
        step.schedule = it->second;
}

std::map<std::string, Schedule> in_place_schedules(const std::shared_ptr<const ir::Graph>& graph,
                                                   const artifact::Plan& plan, const ir::Bindings& bindings) {
  auto trial = std::make_shared<artifact::Plan>(plan);
  const auto given = resolve_plan(graph, std::make_shared<artifact::Plan>(plan));
  bool is_any = false;
  for (size_t s = 0; s < trial->segments.size(); ++s)
    for (size_t i = 0; i < trial->segments[s].steps.size(); ++i) {
      artifact::PlanStep& step = trial->segments[s].steps[i];
      if (step.kind != StepKind::kRegion) continue;
      const family::Family& family = *family::find_family(step.schedule.family);
      const ir::Workload& workload = given->segments[s].steps[i].workload;
      step.schedule = family::in_place(family, workload, step.schedule);
      is_any = is_any || !family::shares_of(family, workload, step.schedule).empty();
    }
  std::map<std::string, Schedule> found;
  if (!is_any) return found;
  const auto code = resolve_plan(graph, trial);
  const Lifetimes lifetimes = find_lifetimes(*code);
  RunFacts facts(*graph);
  const std::vector<ir::Fact> inputs = ir::facts_at(*graph, bindings);
  for (size_t i = 0; i < inputs.size(); ++i)
    facts.set_input(i, inputs[i].type.dtype, ir::static_shape(inputs[i].type.shape));
  for (size_t s = 0; s < code->segments.size(); ++s) {
    const auto& steps = code->segments[s].steps;
    if (steps.empty() || steps[0].step->kind == StepKind::kHost || steps[0].step->kind == StepKind::kControl)
      continue;
    BoundSegment bound;
    try {
      bound = bind_segment(*code, s, facts, lifetimes.escapes[s]);
    } catch (const Error&) {
      continue;  // sizes that data decide
    }
    for (size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].step->kind != StepKind::kRegion) continue;
      const Schedule& schedule = steps[i].step->schedule;
      for (const family::Share& share :
           family::shares_of(*family::find_family(schedule.family), steps[i].workload, schedule))
        if (is_shared(steps[i], bound, i, share)) found[steps[i].step->workload] = schedule;
    }
  }
  return found;
}

}  // namespace thrice::exec
