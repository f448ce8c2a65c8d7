// A limit of device memory on a plan: schedules that need less take the place of those that need more.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "flow/memory_model.h"
#include "flow/search.h"
#include "plan/planner.h"

namespace thrice::flow {

// All device memory of one session at these extents: weights, packed copies, inputs, outputs, temporaries.
int64_t total_memory(const std::shared_ptr<const ir::Graph>& graph, const artifact::Plan& plan,
                     const ir::Bindings& bindings);

// Rules' choices with less scratch: those for the same device without its tactics that pack operands.
Alternatives frugal_schedules(const std::map<std::string, plan::PlannedWorkload>& workloads,
                              const target::DeviceSpec& device);

// Changes schedules of the plan until it takes at most `budget` bytes; one note for each. Returns what was
// changed, by workload: the fastest point of the front of time against memory that keeps the budget once it
// is bound, or what exchanging one region after the other (the one with the most to give up first) ends with,
// where that is faster. Schedules without a time in `times` are priced by their order and the region's work.
// Where the alternatives do not suffice: throws kOutOfMemory, which says what the least is and what it is
// made of; the plan is unspecified then.
std::map<std::string, artifact::Schedule> fit_memory(
    const std::shared_ptr<const ir::Graph>& graph, artifact::Plan& plan,
    const std::map<std::string, plan::PlannedWorkload>& workloads, const Alternatives& alternatives,
    const ir::Bindings& bindings, int64_t budget, std::vector<std::string>& notes,
    const ScheduleTimes& times = {});

// Time against memory for what was tried, and for the rules' frugal schedules: the front around the plan.
std::vector<artifact::MemoryPoint> memory_points(const std::shared_ptr<const ir::Graph>& graph,
                                                 const plan::PlanResult& planned,
                                                 const std::map<std::string, Tuned>& results,
                                                 const target::DeviceSpec& device,
                                                 const ir::Bindings& bindings);

// What tuning chose gives way to slower schedules that it tried, down to the default, until the plan is
// within the budget again: the defaults are.
void keep_within(int64_t budget, const std::shared_ptr<const ir::Graph>& graph, const ir::Bindings& bindings,
                 plan::PlanResult& planned, std::map<std::string, Tuned>& results,
                 std::vector<std::string>& notes);

}  // namespace thrice::flow
