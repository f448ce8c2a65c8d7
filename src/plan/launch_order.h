// The order of steps within a segment: any topological one gives the same answers, but not the same memory.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "analysis/step_order.h"
#include "plan/planner.h"

namespace thrice::plan {

// How the order of one segment was found, and what it gains. Bytes: values between steps and scratch.
struct SegmentOrder {
  size_t segment = 0, steps = 0;
  analysis::OrderMethod method = analysis::OrderMethod::kGiven;
  bool is_optimal = false;
  size_t states = 0;  // sets of steps that were looked at
  int64_t given_peak = 0, peak = 0;
  std::string str() const;  // a sentence
};

// Sorts the steps of each segment anew where that lowers the most bytes that are alive at one time: values
// between steps and scratch, at `facts` (of the graph's values) and the workloads' facts. Exact where the
// number of sets of steps allows it, else the better of two greedy orders (analysis/step_order.h); the given
// order stays where none is better. Host and control steps stay where they are. One entry for each segment of
// three steps or more.
std::vector<SegmentOrder> order_for_memory(const ir::Graph& graph, const std::vector<ir::Fact>& facts,
                                           const std::map<std::string, PlannedWorkload>& workloads,
                                           artifact::Plan& plan);

}  // namespace thrice::plan
