// The plan that will be released: its schedules, its workloads, its kernel texts.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "artifact/plan.h"
#include "flow/search.h"
#include "measure/trial.h"
#include "plan/planner.h"

namespace thrice::flow {

// Schedules by workload, where `results` has them.
void set_schedules(artifact::Plan& plan, const std::map<std::string, Tuned>& results);

// Every workload that the plan deploys, with its schedule in `results` (the default where it was not tuned).
std::map<std::string, plan::PlannedWorkload> deployed(
    const artifact::Plan& plan, const std::map<std::string, plan::PlannedWorkload>& known,
    std::map<std::string, Tuned>& results);

// The kernel texts of a plan's regions, those of its bodies too, each once; what has none is left out.
std::vector<artifact::KernelSource> sources_of(const measure::TrialRunner& runner, const artifact::Plan& plan,
                                               const std::map<std::string, plan::PlannedWorkload>& known);

}  // namespace thrice::flow
