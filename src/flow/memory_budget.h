// A limit of device memory on a plan: schedules that need less take the place of those that need more.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "flow/search.h"
#include "plan/planner.h"

namespace thrice::flow {

// All device memory of one session at these extents: weights, packed copies, inputs, outputs, temporaries.
int64_t total_memory(const std::shared_ptr<const ir::Graph>& graph, const artifact::Plan& plan,
                     const ir::Bindings& bindings);

// By workload hash: other schedules that may be taken, the fastest first.
using Alternatives = std::map<std::string, std::vector<artifact::Schedule>>;

// Rules' choices with less scratch: those for the same device without its tactics that pack operands.
Alternatives frugal_schedules(const std::map<std::string, plan::PlannedWorkload>& workloads,
                              const target::DeviceSpec& device);

// Changes schedules of the plan until it takes at most `budget` bytes; one note for each. Returns what was
// changed, by workload. Where the alternatives do not suffice: throws kOutOfMemory, which says what the least
// is and what it is made of; the plan is unspecified then.
std::map<std::string, artifact::Schedule> fit_memory(
    const std::shared_ptr<const ir::Graph>& graph, artifact::Plan& plan,
    const std::map<std::string, plan::PlannedWorkload>& workloads, const Alternatives& alternatives,
    const ir::Bindings& bindings, int64_t budget, std::vector<std::string>& notes);

// What tuning chose gives way to slower schedules that it tried, down to the default, until the plan is
// within the budget again: the defaults are.
void keep_within(int64_t budget, const std::shared_ptr<const ir::Graph>& graph, const ir::Bindings& bindings,
                 plan::PlanResult& planned, std::map<std::string, Tuned>& results,
                 std::vector<std::string>& notes);

}  // namespace thrice::flow
