#include "plan/roofline_cost.h"

#include <algorithm>

namespace thrice::plan {

namespace {

// A rule that knows no kernel is right within a factor of about two; all regions share it, so that it decides
// nothing among rooflines alone.
constexpr double kUncertainty = 0.5;
// Assumed where a device does not tell: a core of a server, a card of the middle.
constexpr double kCpuGbs = 10, kCpuGflops = 20, kGpuGbs = 500, kGpuGflops = 10'000;

// One launch in a row of them: replayed as a graph on CUDA, enqueued one by one elsewhere. PoCL wakes its
// threads for each.
double launch_us(const target::DeviceSpec& device) {
  if (device.is_cpu) return 15;
  return device.api == target::Api::kCuda ? 2 : 5;
}

bool is_simple(ir::Op op) {  // one or two instructions
  switch (op) {
    case ir::Op::neg:
    case ir::Op::abs:
    case ir::Op::relu:
    case ir::Op::cast:
    case ir::Op::identity:
    case ir::Op::add:
    case ir::Op::sub:
    case ir::Op::mul:
    case ir::Op::min:
    case ir::Op::max:
    case ir::Op::where:
    case ir::Op::equal:
    case ir::Op::less:
    case ir::Op::greater:
      return true;
    default:
      return false;
  }
}

double elements(const ir::Fact& fact) {
  double n = 1;
  for (const ir::Dim& dim : fact.type.shape) n *= static_cast<double>(dim.value());
  return n;
}

}  // namespace

double repeated_flops(const ir::Workload& workload, const std::vector<ir::Fact>& facts) {
  const ir::Graph& graph = workload.graph;
  for (const ir::Node& node : graph.nodes)
    if (const ir::OpClass cls = ir::op_class(node.op);
        cls == ir::OpClass::kHeavy || cls == ir::OpClass::kReduce)
      return 0;
  const std::vector<ir::Fact> all = ir::bind(graph, facts);
  std::vector<double> wanted(graph.values.size(), 0);  // evaluations of one element or another
  for (const ir::ValueId v : graph.outputs)
    wanted[static_cast<size_t>(v)] = elements(all[static_cast<size_t>(v)]);
  double flops = 0;
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const ir::Node& node = graph.nodes[n];
    double times = 0, made = 0;
    for (const ir::ValueId v : node.outputs) {
      if (v == ir::kNoValue) continue;
      times = std::max(times, wanted[static_cast<size_t>(v)]);
      made = std::max(made, elements(all[static_cast<size_t>(v)]));
    }
    const bool is_view = ir::op_class(node.op) == ir::OpClass::kView;
    if (!is_view) flops += std::max(0.0, times - made) * (is_simple(node.op) ? 1 : 20);
    for (const ir::ValueId v : node.inputs) {
      if (v == ir::kNoValue) continue;
      double& w = wanted[static_cast<size_t>(v)];
      // Element-wise readers at one place share what they read; those through views read at other places.
      w = is_view ? w + times : std::max(w, times);
    }
  }
  return flops;
}

RooflineCost::RooflineCost(const target::DeviceSpec& device)
    : launch_us_(launch_us(device)), source_("roofline") {
  double gbs = device.bandwidth_gbs, gflops = device.f32_gflops, product = device.product_gflops();
  if (!(gbs > 0 && gflops > 0)) {
    gbs = device.is_cpu ? kCpuGbs : kGpuGbs;
    gflops = product = device.is_cpu ? kCpuGflops : kGpuGflops;
    source_ = "roofline of assumed peaks";
  }
  bytes_per_us_ = gbs * 1e3;
  flops_per_us_ = gflops * 1e3;
  product_flops_per_us_ = std::max(gflops, product) * 1e3;
}

RegionCost RooflineCost::cost(const PricedWorkload& region) {
  const family::Work work = family::count_work(region.workload, region.facts);
  const std::string family(region.family.name());
  const bool multiplies = family == "matmul" || family == "conv" || family == "attention";
  const double compute_us = work.flops / (multiplies ? product_flops_per_us_ : flops_per_us_) +
                            repeated_flops(region.workload, region.facts) / flops_per_us_;
  RegionCost cost;
  cost.us = launch_us_ + std::max(work.bytes / bytes_per_us_, compute_us);
  cost.uncertainty_us = kUncertainty * cost.us;
  cost.floor_us = cost.us;
  cost.source = source_;
  cost.family = family;
  return cost;
}

}  // namespace thrice::plan
