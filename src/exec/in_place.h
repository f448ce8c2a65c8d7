// Results that take the storage of an operand whose last reader makes them.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "artifact/plan.h"
#include "ir/region.h"

namespace thrice::exec {

// Schedules with `in_place=1` for those regions of the plan (not of bodies) some of whose steps then write
// over an operand at these extents, by workload hash; equal regions keep one schedule, whose kernels are
// right where nothing is shared too. Bindings decide at run time, step by step, whether an operand is still
// needed. Segments whose extents depend on data are left as they are. Errors: those of resolve_plan.
std::map<std::string, artifact::Schedule> in_place_schedules(const std::shared_ptr<const ir::Graph>& graph,
                                                             const artifact::Plan& plan,
                                                             const ir::Bindings& bindings);
// Sets schedules of regions by workload hash; those of bodies stay.
void set_schedules(artifact::Plan& plan, const std::map<std::string, artifact::Schedule>& schedules);

}  // namespace thrice::exec
