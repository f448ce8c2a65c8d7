// What a fused region costs against its operators one by one, read off whole executions of the model: which
// of the two stays, and what the report says of it.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "artifact/plan.h"
#include "flow/optimize.h"
#include "flow/search.h"
#include "ir/graph.h"
#include "plan/planner.h"
#include "target/device_spec.h"

namespace thrice::flow {

// Steps of a plan by node, each with its time in one execution of the model.
struct TimedStep {
  const artifact::PlanStep* step = nullptr;
  double us = 0;
};
// `times`: microseconds by segment and step.
std::map<int32_t, TimedStep> timed_steps(const artifact::Plan& plan,
                                         const std::vector<std::vector<double>>& times);

// A fused region that lost against its own operators one by one is taken apart again: never slower. Returns
// whether anything changed.
bool keep_faster_side(const std::map<int32_t, TimedStep>& original,
                      const std::vector<std::vector<double>>& times, artifact::Plan& plan,
                      std::vector<std::string>& notes, const ir::Graph& graph);

// Every region of the deployed plan with what its operators cost one by one, both read off whole executions
// of the model.
void report_regions(const std::map<int32_t, TimedStep>& original, const artifact::Plan& plan,
                    const std::vector<std::vector<double>>& times,
                    const std::map<std::string, plan::PlannedWorkload>& workloads,
                    const std::map<std::string, Tuned>& results, const ir::Graph& graph,
                    const target::DeviceSpec& spec, OptimizeReport& report);

}  // namespace thrice::flow
