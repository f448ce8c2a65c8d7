// The order of steps within a segment: any topological one gives the same answers, but not the same memory.
#pragma once
#include <map>
#include <string>

#include "plan/planner.h"

namespace thrice::plan {

// Sorts the steps of each segment anew where that lowers the most bytes that are alive at one time: values
// between steps and scratch, at `facts` (of the graph's values) and the workloads' facts. Two greedy orders
// are tried (next is the step that frees most; that needs least), and the given order stays where neither is
// better. Host and control steps stay where they are. Cost: steps times those ready at one time.
void order_for_memory(const ir::Graph& graph, const std::vector<ir::Fact>& facts,
                      const std::map<std::string, PlannedWorkload>& workloads, artifact::Plan& plan);

}  // namespace thrice::plan
