// What a region would cost, before it is built: the prices by which fusion is planned.
#pragma once
#include <string>
#include <vector>

#include "family/family.h"
#include "ir/region.h"
#include "target/device_spec.h"

namespace thrice::plan {

// A region that may be planned. Its default schedule is `family->default_schedule(workload, facts, device)`;
// it is not made here, since the models there are do not look at it.
struct PricedWorkload {
  const ir::Workload& workload;
  const family::Family& family;
  const std::vector<ir::Fact>& facts;  // concrete, of the workload's inputs
};

// Microseconds of one execution. The planner goes by price(): what may be slower than it looks is not taken
// for faster than what is known.
struct RegionCost {
  double us = 0, uncertainty_us = 0;
  std::string source;  // "measured record", "roofline": shown by explain
  std::string family;
  double floor_us = 0;  // what the roofline says, whatever the source
  bool is_measured = false;
  double price() const { return us + uncertainty_us; }
};

// Sources, best first: a measured record of this region, the agent's value model, the roofline. flow/ fills
// the first (flow/measured_cost.h); a value model has its place there, between the two: it needs the default
// schedule and features of a region, which tune/ makes, above plan/. None is at hand in this version.
class CostModel {
 public:
  virtual ~CostModel() = default;
  // Asked once for each distinct workload. Not thread-safe.
  virtual RegionCost cost(const PricedWorkload& region) = 0;
  // Asked once, when all costs are there: what known ones say of the others.
  virtual void settle(std::vector<RegionCost>& costs) const { (void)costs; }
};

}  // namespace thrice::plan
