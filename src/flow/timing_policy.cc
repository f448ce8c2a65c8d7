// As the model will run: with cold caches where it moves more than they hold, and at the clocks of its load.
#include <fmt/format.h>

#include <algorithm>

#include "family/family.h"
#include "flow/tuning.h"

namespace thrice::flow {

using plan::PlannedWorkload;

double operand_bytes(const PlannedWorkload& planned) {
  const ir::Graph& graph = planned.workload.graph;
  const std::vector<ir::Fact> facts = ir::bind(graph, planned.facts);
  double bytes = 0;
  for (const auto* ids : {&graph.inputs, &graph.outputs})
    for (const ir::ValueId id : *ids) {
      const ir::Type& type = facts[static_cast<size_t>(id)].type;
      double elements = 1;
      for (const ir::Dim& extent : type.shape) elements *= static_cast<double>(extent.value());
      bytes += elements * static_cast<double>(dtype_bytes(type.dtype));
    }
  return bytes;
}

double light_us(const PlannedWorkload& planned, const target::DeviceSpec& spec) {
  if (!(spec.bandwidth_gbs > 0) || !(spec.f32_gflops > 0)) return 0;
  const family::Work work = family::count_work(planned.workload, planned.facts);
  const bool is_product = planned.family->name() == "matmul" || planned.family->name() == "conv";
  const double arithmetic = work.flops / ((is_product ? spec.product_gflops() : spec.f32_gflops) * 1e3);
  const bool from_memory = work.bytes > static_cast<double>(spec.l2_bytes);
  return std::max(arithmetic, from_memory ? work.bytes / (spec.bandwidth_gbs * 1e3) : 0);
}

TimingPolicy timing_policy(const Settings& settings, const target::DeviceSpec& device, double model_bytes) {
  constexpr double kSettle_us = 100e3;  // power is averaged over tens of milliseconds
  constexpr double kRest_us = 2e3;
  TimingPolicy policy;
  const bool is_card = !device.is_cpu && device.api != target::Api::kNull && device.l2_bytes > 0;
  const double l2 = static_cast<double>(device.l2_bytes);
  policy.both = is_card;
  policy.cold = settings.caches == "cold" || (settings.caches == "auto" && is_card && model_bytes > l2);
  if (is_card) {
    policy.settle_us = settings.load == "sustained" ? kSettle_us : 0;
    policy.rest_us = settings.load == "burst" ? kRest_us : 0;
    policy.sentence = fmt::format(
        "schedules were chosen by times with {} caches (the model moves {:.0f} MB, the L2 cache holds {:.0f} "
        "MB), under {} load",
        policy.cold ? "cold" : "warm", model_bytes * 1e-6, l2 * 1e-6, settings.load);
  }
  return policy;
}

}  // namespace thrice::flow
