#include "plan/planner.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>

#include "ir/check.h"
#include "ir/inputs.h"
#include "ir/region_name.h"
#include "plan/attention_core.h"
#include "plan/grouping.h"
#include "plan/launch_order.h"
#include "plan/merge_rules.h"
#include "plan/roofline_cost.h"

namespace thrice::plan {

using analysis::Place;
using artifact::PlanStep;
using artifact::StepKind;
using ir::Graph;
using ir::NodeId;

const family::Family* match_family(const ir::Workload& workload, std::string* reasons) {
  std::string all;
  for (const family::Family* family : family::families()) {
    const family::Refusal refusal = family->match(workload);
    if (!refusal) return family;
    all += fmt::format("{}{}: {}", all.empty() ? "" : "; ", family->name(), *refusal);
  }
  if (reasons) *reasons = all;
  return nullptr;
}

std::vector<ir::Fact> model_facts(const Graph& graph, const ir::Bindings& bindings, int64_t guess) {
  std::vector<ir::Fact> facts(graph.values.size());
  const auto concrete = [&](const ir::Dim& dim) -> ir::Dim {
    ir::Bindings all;
    for (const std::string& symbol : dim.symbols()) {
      const auto it = bindings.find(symbol);
      all[symbol] = it != bindings.end() ? it->second : guess;
    }
    return dim.evaluate(all);
  };
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const ir::Value& value = graph.values[v];
    facts[v].type.dtype = value.type.dtype;
    for (const ir::Dim& dim : value.type.shape) facts[v].type.shape.push_back(concrete(dim));
    if (value.constant) facts[v].constant = &*value.constant;
    if (value.known) {
      facts[v].known.emplace();
      for (const ir::Dim& dim : *value.known) facts[v].known->push_back(concrete(dim));
    }
  }
  return facts;
}

namespace {

class Planner {
 public:
  Planner(const Graph& graph, const target::DeviceSpec& device, const PlanOptions& options,
          PlanResult& result)
      : graph_(graph),
        device_(device),
        options_(options),
        result_(result),
        placement_(analysis::place(graph, [&](const ir::Node& node) { return runs_alone(node); })),
        groups_(graph, placement_),
        facts_(model_facts(graph, options.bindings)) {}

  artifact::Plan plan() {
    merge_origins();
    merge_attention(options_.planner != "original");
    if (options_.planner == "greedy") merge_greedily();
    if (options_.planner == "dp") {
      const Grouping operators = groups_;
      merge_greedily();
      const Grouping greedy = groups_;
      groups_ = operators;
      result_.fusion += fuse_exactly(graph_, placement_, facts_, *options_.costs, greedy, groups_);
    }
    artifact::Plan plan;
    plan.graph_hash = ir::structural_hash(graph_, false);
    plan.planner = options_.planner;
    plan.segments = segments();
    plan_bodies(plan);
    return plan;
  }

 private:
  // Asked while `placement_` is being made: uses the graph only.
  bool runs_alone(const ir::Node& node) {
    const NodeId n = static_cast<NodeId>(&node - graph_.nodes.data());
    const ir::Workload workload = ir::extract(graph_, ir::make_region(graph_, {n}));
    std::string reasons;
    if (match_family(workload, &reasons)) return true;
    if (!options_.allow_slow) {
      const ir::Origin& origin = graph_.origins.at(static_cast<size_t>(std::max(node.origin, 0)));
      throw Error(Code::kUnsupported, fmt::format("operator {} (opset {}) at node '{}' has no device kernel "
                                                  "[{}]; run it on the host with --allow-slow",
                                                  origin.op_type, origin.opset, origin.name, reasons));
    }
    slow_.push_back(n);
    return false;
  }

  bool on_device(int group) const {
    return std::all_of(groups_.nodes(group).begin(), groups_.nodes(group).end(), [&](NodeId n) {
      const Place place = placement_.nodes[static_cast<size_t>(n)];
      return place == Place::kDevice || place == Place::kAlias;
    });
  }
  bool is_alias(int group) const {
    return groups_.nodes(group).size() == 1 &&
           placement_.nodes[static_cast<size_t>(groups_.nodes(group)[0])] == Place::kAlias;
  }
  static int32_t origin_of(const Graph& graph, NodeId n) {
    return graph.nodes[static_cast<size_t>(n)].origin;
  }

  // Nodes of one origin are one operator of the model: they run together wherever a family takes them.
  void merge_origins() {
    for (int g : groups_.ordered()) {
      if (!on_device(g) || is_alias(g)) continue;
      grow(g, [&](int p) {
        return !is_alias(p) &&
               origin_of(graph_, groups_.nodes(p)[0]) == origin_of(graph_, groups_.nodes(g).back());
      });
    }
  }

  // Attention before anything else takes its parts. What its operands are read through comes along; what
  // makes them stays with the products before. `all`: else only what is one operator.
  void merge_attention(bool all) {
    for (const std::vector<NodeId>& core : attention_cores(graph_)) {
      // One operator (of packed sequences): its parts would compute rows by rows.
      const int32_t origin = origin_of(graph_, core.front());
      const bool is_whole =
          origin >= 0 && graph_.origins[static_cast<size_t>(origin)].op_type == ir::kPackedAttention &&
          std::all_of(core.begin(), core.end(), [&](NodeId n) { return origin_of(graph_, n) == origin; });
      if (!all && !is_whole) continue;
      Grouping trial = groups_;
      const int g = trial.group_of(core.back());
      if (g < 0) continue;  // nobody wants the product
      const bool merged =
          std::all_of(core.rbegin(), core.rend(), [&](NodeId n) {  // consumers first: no path around
            const int p = trial.group_of(n);
            if (p == g) return true;
            if (p < 0 || !on_device(p) || !trial.can_merge(g, p)) return false;
            trial.merge(g, p);
            return true;
          });
      if (!merged || !is_worth_one_kernel(trial.nodes(g), is_whole)) continue;
      groups_ = std::move(trial);
      if (all) grow(g, [](int) { return true; });
    }
  }
  std::vector<ir::Fact> facts_of(const ir::Workload& workload) const {
    std::vector<ir::Fact> inputs;
    for (ir::ValueId v : workload.inputs) inputs.push_back(facts_[static_cast<size_t>(v)]);
    return inputs;
  }
  // The portable tactic exists for every device, but loses to its parts.
  bool is_worth_one_kernel(const std::vector<NodeId>& nodes, bool is_whole) const {
    const ir::Workload workload = ir::extract(graph_, ir::make_region(graph_, nodes));
    const family::Family* family = match_family(workload);
    if (!family || family->name() != "attention") return false;
    if (is_whole) return true;
    return family->default_schedule(workload, facts_of(workload), device_).tactic != "row";
  }

  void merge_greedily() {
    for (int g : groups_.ordered()) {
      if (groups_.nodes(g).empty() || !on_device(g) || is_alias(g)) continue;
      do grow(g, [&](int p) { return !is_alias(p); });
      while (reach_through_aliases(g));
    }
  }

  // A view that costs nothing is worth nothing in a region, but what lies behind it may be.
  bool reach_through_aliases(int g) {
    for (int p : groups_.producers(g)) {
      std::vector<int> chain;
      for (int at = p; at >= 0 && on_device(at);) {
        chain.push_back(at);
        if (!is_alias(at)) break;
        const std::vector<int> before = groups_.producers(at);
        at = before.size() == 1 ? before[0] : -1;
      }
      if (chain.size() > 1 && !is_alias(chain.back()) && try_merge(g, chain)) return true;
    }
    return false;
  }

  // Merges producers into g as long as one can be: all of them at once first (a value read on both sides of a
  // diamond stays inside), then one by one.
  template <class Allowed>
  void grow(int g, Allowed allowed) {
    for (bool merged = true; merged;) {
      merged = false;
      std::vector<int> candidates;
      for (int p : groups_.producers(g))
        if (on_device(p) && allowed(p)) candidates.push_back(p);
      if (candidates.size() > 1 && try_merge(g, candidates)) merged = true;
      for (size_t i = 0; !merged && i < candidates.size(); ++i) merged = try_merge(g, {candidates[i]});
    }
  }

  bool try_merge(int g, const std::vector<int>& producers) {
    Grouping trial = groups_;
    for (int p : producers) {
      if (!trial.can_merge(g, p)) continue;
      trial.merge(g, p);
    }
    if (trial.nodes(g).size() == groups_.nodes(g).size()) return false;
    const MergeVerdict verdict = judge_merge(graph_, trial.nodes(g), groups_.nodes(g));
    if (!verdict.refusal.empty()) {
      result_.refusals[ir::region_name(graph_, groups_.nodes(producers[0])) + " -> " +
                       ir::region_name(graph_, groups_.nodes(g))] = verdict.refusal;
      return false;
    }
    groups_ = std::move(trial);
    return true;
  }

  std::vector<artifact::Segment> segments() {
    std::vector<artifact::Segment> segments(1);
    for (int g : groups_.ordered()) {
      const PlanStep step = make_step(g);
      const bool waits = step.kind == StepKind::kHost || step.kind == StepKind::kControl;
      if (waits && !segments.back().steps.empty()) segments.emplace_back();
      segments.back().steps.push_back(step);
      if (waits) segments.emplace_back();
    }
    if (segments.size() > 1 && segments.back().steps.empty()) segments.pop_back();
    return segments;
  }

  PlanStep make_step(int g) {
    PlanStep step;
    step.nodes = groups_.nodes(g);
    const NodeId first = step.nodes[0];
    switch (placement_.nodes[static_cast<size_t>(first)]) {
      case Place::kHost:
        step.kind = StepKind::kHost;
        step.slow = std::find(slow_.begin(), slow_.end(), first) != slow_.end() ||
                    graph_.nodes[static_cast<size_t>(first)].op == ir::Op::host_function;
        if (step.slow) result_.slow_steps.push_back(ir::region_name(graph_, step.nodes));
        return step;
      case Place::kControl:
        step.kind = StepKind::kControl;
        return step;
      case Place::kAlias:
        if (step.nodes.size() == 1) {
          step.kind = StepKind::kAlias;
          return step;
        }
        break;
      default:
        break;
    }
    step.kind = StepKind::kRegion;
    ir::Workload workload = ir::extract(graph_, ir::make_region(graph_, step.nodes));
    step.workload = workload.hash;
    PlannedWorkload& planned = result_.workloads[workload.hash];
    planned.uses.push_back(ir::region_name(graph_, step.nodes));
    if (!planned.family) {
      planned.family = match_family(workload);
      planned.facts = facts_of(workload);
      planned.workload = std::move(workload);
      planned.schedule = planned.family->default_schedule(planned.workload, planned.facts, device_);
    }
    step.schedule = planned.schedule;
    return step;
  }

  void plan_bodies(artifact::Plan& plan) {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (placement_.nodes[n] != Place::kControl) continue;
      const auto& bodies = graph_.nodes[n].bodies;
      for (size_t b = 0; b < bodies.size(); ++b) {
        artifact::Plan body = Planner(*bodies[b], device_, options_, result_).plan();
        plan.bodies.push_back({static_cast<int32_t>(n), static_cast<int32_t>(b), {std::move(body)}});
      }
    }
  }

  const Graph& graph_;
  const target::DeviceSpec& device_;
  const PlanOptions& options_;
  PlanResult& result_;
  std::vector<NodeId> slow_;
  analysis::Placement placement_;
  Grouping groups_;
  std::vector<ir::Fact> facts_;
};

}  // namespace

PlanResult make_plan(const Graph& graph, const target::DeviceSpec& device, const PlanOptions& asked) {
  if (asked.planner != "greedy" && asked.planner != "dp" && asked.planner != "original")
    throw Error(Code::kInvalidArgument,
                fmt::format("unknown planner '{}'; known: greedy, dp, original", asked.planner));
  RooflineCost roofline(device);
  PlanOptions options = asked;
  if (!options.costs) options.costs = &roofline;
  PlanResult result;
  result.plan = Planner(graph, device, options, result).plan();
  if (options.planner != "original")
    for (const SegmentOrder& order :
         order_for_memory(graph, model_facts(graph, options.bindings), result.workloads, result.plan))
      if (order.peak < order.given_peak || !order.is_optimal) result.orders.push_back(order.str());
  return result;
}

}  // namespace thrice::plan
