// The price of a region by what it must do at least: bytes over the copy rate or operations over the peak,
// and a launch.
#pragma once
#include "plan/cost_model.h"

namespace thrice::plan {

class RooflineCost : public CostModel {
 public:
  // Peaks that `device` does not know are assumed, and the source says so.
  explicit RooflineCost(const target::DeviceSpec& device);
  RegionCost cost(const PricedWorkload& region) override;

 private:
  double bytes_per_us_, flops_per_us_, product_flops_per_us_, launch_us_;
  std::string source_;
};

// Operations that a kernel without a core (a product, window or reduction) does beyond one evaluation of each
// element: a value that is spread over more elements is computed again for each.
double repeated_flops(const ir::Workload& workload, const std::vector<ir::Fact>& facts);

}  // namespace thrice::plan
