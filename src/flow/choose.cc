#include "flow/choose.h"

#include <fmt/format.h>

#include <algorithm>

#include "family/family.h"
#include "ir/region_name.h"

namespace thrice::flow {

std::map<int32_t, TimedStep> timed_steps(const artifact::Plan& plan,
                                         const std::vector<std::vector<double>>& times) {
  std::map<int32_t, TimedStep> by_node;
  for (size_t s = 0; s < plan.segments.size(); ++s)
    for (size_t i = 0; i < plan.segments[s].steps.size(); ++i)
      for (int32_t n : plan.segments[s].steps[i].nodes)
        by_node[n] = {&plan.segments[s].steps[i], times[s][i]};
  return by_node;
}
namespace {

// The original's steps that cover a region's nodes, each once, in order.
std::vector<TimedStep> parts_of(const artifact::PlanStep& region,
                                const std::map<int32_t, TimedStep>& original) {
  std::vector<TimedStep> parts;
  for (int32_t n : region.nodes) {
    const auto it = original.find(n);
    if (it == original.end()) continue;
    const auto same = [&](const TimedStep& t) { return t.step == it->second.step; };
    if (std::none_of(parts.begin(), parts.end(), same)) parts.push_back(it->second);
  }
  return parts;
}

}  // namespace

bool keep_faster_side(const std::map<int32_t, TimedStep>& original,
                      const std::vector<std::vector<double>>& times, artifact::Plan& plan,
                      std::vector<std::string>& notes, const ir::Graph& graph) {
  bool changed = false;
  for (size_t s = 0; s < plan.segments.size(); ++s) {
    std::vector<artifact::PlanStep> steps;
    for (size_t i = 0; i < plan.segments[s].steps.size(); ++i) {
      artifact::PlanStep& step = plan.segments[s].steps[i];
      const std::vector<TimedStep> parts = parts_of(step, original);
      double apart = 0;
      size_t covered = 0;
      for (const TimedStep& part : parts) {
        apart += part.us;
        covered += part.step->nodes.size();
      }
      const bool comparable =
          step.kind == artifact::StepKind::kRegion && parts.size() > 1 && covered == step.nodes.size();
      if (!comparable || !(apart < 0.97 * times[s][i])) {
        steps.push_back(std::move(step));
        continue;
      }
      changed = true;
      notes.push_back(
          fmt::format("{}: its operators one by one are faster ({:.1f} us against {:.1f} us); not fused",
                      ir::region_name(graph, step.nodes), apart, times[s][i]));
      for (const TimedStep& part : parts) steps.push_back(*part.step);
    }
    plan.segments[s].steps = std::move(steps);
  }
  return changed;
}

void report_regions(const std::map<int32_t, TimedStep>& original, const artifact::Plan& plan,
                    const std::vector<std::vector<double>>& times,
                    const std::map<std::string, plan::PlannedWorkload>& workloads,
                    const std::map<std::string, Tuned>& results, const ir::Graph& graph,
                    const target::DeviceSpec& spec, OptimizeReport& report) {
  std::map<std::string, RegionReport> regions;
  for (size_t s = 0; s < plan.segments.size(); ++s)
    for (size_t i = 0; i < plan.segments[s].steps.size(); ++i) {
      const artifact::PlanStep& step = plan.segments[s].steps[i];
      if (step.kind != artifact::StepKind::kRegion) continue;
      auto [it, is_new] = regions.try_emplace(step.workload);
      RegionReport& r = it->second;
      r.uses = is_new ? 1 : r.uses + 1;
      r.now_us = std::max(r.now_us, 0.0) + times[s][i];
      r.original_us = std::max(r.original_us, 0.0);
      for (const TimedStep& part : parts_of(step, original)) r.original_us += part.us;
      if (!is_new) continue;
      const Tuned& tuned = results.at(step.workload);
      r.name = ir::region_name(graph, step.nodes);
      r.family = step.schedule.family;
      r.schedule = step.schedule.str();
      r.workload = step.workload;
      r.error = tuned.best.error;
      r.error_limit = tuned.best.error_limit;
      r.trials = tuned.trials;
      r.trials_without_gain = tuned.trials_without_gain;
      r.share_at_start = tuned.share_at_start;
      r.ended = tuned.ended;
    }
  report.bandwidth_gbs = spec.bandwidth_gbs;
  report.gflops = spec.f32_gflops;
  report.product_gflops = spec.product_gflops();
  for (auto& [hash, r] : regions) {
    const plan::PlannedWorkload& planned = workloads.at(hash);
    const family::Work work = family::count_work(planned.workload, planned.facts);
    r.flops = work.flops;
    r.bytes = work.bytes;
    if (spec.bandwidth_gbs > 0 && spec.f32_gflops > 0 && r.now_us > 0) {
      const bool is_product = r.family == "matmul" || r.family == "conv";
      const double gflops = is_product ? spec.product_gflops() : spec.f32_gflops;
      r.light_share =
          r.uses * std::max(work.bytes / (spec.bandwidth_gbs * 1e3), work.flops / (gflops * 1e3)) / r.now_us;
    }
    report.regions.push_back(r);
  }
  std::stable_sort(report.regions.begin(), report.regions.end(),
                   [](const RegionReport& a, const RegionReport& b) { return a.now_us > b.now_us; });
}

}  // namespace thrice::flow
