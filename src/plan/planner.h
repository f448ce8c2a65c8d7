// Graph -> Plan: which nodes run together, in which order, by which family's default schedule.
// Runs after infer_graph and the transforms (it looks at final nodes), before tuning (which only exchanges
// schedules).
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "analysis/placement.h"
#include "artifact/plan.h"
#include "family/family.h"
#include "ir/region.h"
#include "plan/cost_model.h"
#include "plan/fuse.h"

namespace thrice::plan {

struct PlanOptions {
  // "greedy": regions grow along edges wherever a family takes the union and a round trip through memory is
  // saved. "dp": regions of the least sum of prices (fuse.h). "original": every operator of the model by
  // itself (nodes of one origin together), nothing fused across operators.
  std::string planner = "greedy";
  bool allow_slow = false;     // operators that no family runs go to the host, marked; otherwise kUnsupported
  ir::Bindings bindings;       // extents for which default schedules are chosen
  CostModel* costs = nullptr;  // prices of "dp"; null: the roofline of the device
};

// What the planner decided for one distinct workload.
struct PlannedWorkload {
  ir::Workload workload;
  const family::Family* family = nullptr;
  std::vector<ir::Fact> facts;    // concrete, at the options' bindings (for schedules, tuning, floors)
  artifact::Schedule schedule;    // the rule-chosen default; tuning replaces it
  std::vector<std::string> uses;  // names of the regions that share it: "Conv_12 + HardSwish_13"
};

struct PlanResult {
  artifact::Plan plan;
  std::map<std::string, PlannedWorkload> workloads;  // by structural hash; the bodies' workloads too
  std::vector<std::string> slow_steps;               // operators on the host by --allow-slow
  std::map<std::string, std::string> refusals;  // for explain: "why not fused" sentences, by "A -> B" names
  FusionSummary fusion;                         // of "dp": bodies' decisions included
  std::vector<std::string> orders;  // sentences: segments whose order of steps needs another amount of memory
                                    // than the graph's, or whose best order was not found
};

// Errors: kUnsupported (no family, allow_slow off: operator, opset, node, each family's reason).
PlanResult make_plan(const ir::Graph& graph, const target::DeviceSpec& device, const PlanOptions& options);

// First family that takes the workload; nullptr and, in `reasons`, one line a family where none does.
const family::Family* match_family(const ir::Workload& workload, std::string* reasons = nullptr);

// Concrete facts of every value of the model graph at these bindings where inference can tell; data-dependent
// extents take `guess` elements.
std::vector<ir::Fact> model_facts(const ir::Graph& graph, const ir::Bindings& bindings, int64_t guess = 8);

}  // namespace thrice::plan
