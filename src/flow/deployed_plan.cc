#include "flow/deployed_plan.h"

#include <thrice/status.h>

namespace thrice::flow {

void set_schedules(artifact::Plan& plan, const std::map<std::string, Tuned>& results) {
  for (auto& segment : plan.segments)
    for (auto& step : segment.steps)
      if (const auto it = results.find(step.workload);
          step.kind == artifact::StepKind::kRegion && it != results.end())
        step.schedule = it->second.schedule;
  for (auto& body : plan.bodies) set_schedules(body.plan[0], results);
}

std::map<std::string, plan::PlannedWorkload> deployed(
    const artifact::Plan& plan, const std::map<std::string, plan::PlannedWorkload>& known,
    std::map<std::string, Tuned>& results) {
  std::map<std::string, plan::PlannedWorkload> workloads;
  const auto collect = [&](const auto& self, const artifact::Plan& p) -> void {
    for (const auto& segment : p.segments)
      for (const auto& step : segment.steps) {
        if (step.kind != artifact::StepKind::kRegion) continue;
        const plan::PlannedWorkload& planned = known.at(step.workload);
        workloads.emplace(step.workload, planned);
        const auto [it, is_new] = results.try_emplace(step.workload);
        if (is_new) it->second.schedule = planned.schedule;
      }
    for (const auto& body : p.bodies) self(self, body.plan[0]);
  };
  collect(collect, plan);
  return workloads;
}

std::vector<artifact::KernelSource> sources_of(const measure::TrialRunner& runner, const artifact::Plan& plan,
                                               const std::map<std::string, plan::PlannedWorkload>& known) {
  std::map<std::string, artifact::KernelSource> sources;  // by their keys
  const auto collect = [&](const auto& self, const artifact::Plan& p) -> void {
    for (const auto& segment : p.segments)
      for (const auto& step : segment.steps) {
        if (step.kind != artifact::StepKind::kRegion) continue;
        const plan::PlannedWorkload& planned = known.at(step.workload);
        const auto add = [&](const artifact::Schedule& schedule) {
          try {
            artifact::KernelSource source = runner.generate(planned.workload, *planned.family, schedule);
            sources.emplace(source.key, std::move(source));
          } catch (const Error&) {
            // whoever builds it hears why
          }
        };
        add(step.schedule);
        for (const artifact::Bucket& bucket : step.buckets) add(bucket.schedule);
      }
    for (const auto& body : p.bodies) self(self, body.plan[0]);
  };
  collect(collect, plan);
  std::vector<artifact::KernelSource> list;
  for (auto& [key, source] : sources) list.push_back(std::move(source));
  return list;
}

}  // namespace thrice::flow
