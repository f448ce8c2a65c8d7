// Prices of regions from the tuning store; what it does not know is priced by the roofline, corrected by what
// it knows of the same family.
#pragma once
#include <string>

#include "plan/roofline_cost.h"
#include "store/store.h"

namespace thrice::flow {

// A record is of use where workload, environment and shape are the same and its answer was verified: the
// fastest. The store must outlive this.
class MeasuredCost : public plan::CostModel {
 public:
  MeasuredCost(const store::Store& store, std::string environment, const target::DeviceSpec& device)
      : store_(store), environment_(std::move(environment)), roofline_(device) {}

  plan::RegionCost cost(const plan::PricedWorkload& region) override;
  // Kernels reach no roofline: estimates are scaled by the median of measured over roofline, of the family
  // where there are records of it, else of all.
  void settle(std::vector<plan::RegionCost>& costs) const override;

 private:
  const store::Store& store_;
  std::string environment_;
  plan::RooflineCost roofline_;
};

}  // namespace thrice::flow
