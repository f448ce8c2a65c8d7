#include "flow/measured_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "flow/tuning.h"

namespace thrice::flow {

namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

plan::RegionCost MeasuredCost::cost(const plan::PricedWorkload& region) {
  plan::RegionCost cost = roofline_.cost(region);
  const auto record =
      store_.best(region.workload.hash, environment_, shape_key(region.workload, region.facts));
  if (!record) return cost;  // the agent's value model would be asked here
  cost.us = record->measurement.time_us;
  cost.uncertainty_us = record->measurement.spread_us;
  cost.source = "measured record";
  cost.is_measured = true;
  return cost;
}

void MeasuredCost::settle(std::vector<plan::RegionCost>& costs) const {
  std::map<std::string, std::vector<double>> of_family;
  std::vector<double> all;
  for (const plan::RegionCost& cost : costs) {
    if (!cost.is_measured || !(cost.floor_us > 0)) continue;
    of_family[cost.family].push_back(cost.us / cost.floor_us);
    all.push_back(cost.us / cost.floor_us);
  }
  if (all.empty()) return;
  std::map<std::string, double> factors;
  for (const auto& [family, ratios] : of_family) factors[family] = median(ratios);
  const double of_all = median(all);
  for (plan::RegionCost& cost : costs) {
    if (cost.is_measured) continue;
    const auto it = factors.find(cost.family);
    const double factor = it == factors.end() ? of_all : it->second;
    cost.us *= factor;
    cost.uncertainty_us *= factor;
    cost.source += fmt::format(" x {:.2f}, as records of {} say", factor,
                               it == factors.end() ? "other families" : cost.family);
  }
}

}  // namespace thrice::flow
