#include "plan/launch_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace thrice::plan {

namespace {

using analysis::OrderProblem;
using artifact::PlanStep;
using artifact::StepKind;
using ir::ValueId;

class Reader {
 public:
  Reader(const ir::Graph& graph, const std::vector<ir::Fact>& facts,
         const std::map<std::string, PlannedWorkload>& workloads)
      : graph_(graph), facts_(facts), workloads_(workloads), reads_(graph.values.size(), 0) {
    for (ValueId v : graph.outputs) ++reads_[static_cast<size_t>(v)];
    for (const ir::Node& node : graph.nodes)
      for (ValueId v : node.inputs)
        if (v != ir::kNoValue) ++reads_[static_cast<size_t>(v)];
  }

  OrderProblem read(const std::vector<PlanStep>& steps) {
    OrderProblem segment;
    segment.steps.resize(steps.size());
    std::map<ValueId, size_t> piece, maker;    // of values made here
    std::map<ValueId, size_t> inside;          // reads within the segment, of each value
    std::vector<std::vector<ValueId>> values;  // by piece
    for (size_t s = 0; s < steps.size(); ++s) {
      analysis::OrderedStep& work = segment.steps[s];
      std::set<size_t> reads, before;
      std::set<ValueId> own;
      for (int32_t n : steps[s].nodes)
        for (ValueId v : graph_.nodes[static_cast<size_t>(n)].outputs)
          if (v != ir::kNoValue) own.insert(v);
      for (int32_t n : steps[s].nodes)
        for (ValueId v : graph_.nodes[static_cast<size_t>(n)].inputs) {
          if (v == ir::kNoValue) continue;
          ++inside[v];
          if (own.count(v) || !piece.count(v)) continue;
          reads.insert(piece.at(v));
          before.insert(maker.at(v));
        }
      for (ValueId v : own) {
        maker[v] = s;
        if (steps[s].kind == StepKind::kAlias) {
          const ValueId of = graph_.nodes[static_cast<size_t>(steps[s].nodes[0])].inputs[0];
          if (!piece.count(of)) continue;
          piece[v] = piece.at(of);
          values[piece.at(of)].push_back(v);
          continue;
        }
        piece[v] = segment.bytes.size();
        work.makes.push_back(segment.bytes.size());
        segment.bytes.push_back(bytes_of(v));
        values.push_back({v});
      }
      work.reads.assign(reads.begin(), reads.end());
      work.before.assign(before.begin(), before.end());
      if (const auto it = workloads_.find(steps[s].workload);
          steps[s].kind == StepKind::kRegion && it != workloads_.end()) {
        const artifact::LaunchPlan plan =
            it->second.family->launch(it->second.workload, steps[s].schedule, it->second.facts);
        for (size_t t = 0; t < plan.temporary_bytes.size(); ++t)
          if (!plan.temporary_kept[t]) work.scratch += plan.temporary_bytes[t];
      }
    }
    // What lives within a step only is no memory; what is read elsewhere too lies outside the arena.
    std::vector<uint8_t> is_read(segment.bytes.size(), 0);
    for (const analysis::OrderedStep& work : segment.steps)
      for (size_t p : work.reads) is_read[p] = 1;
    for (size_t p = 0; p < segment.bytes.size(); ++p) {
      const bool escapes = std::any_of(values[p].begin(), values[p].end(),
                                       [&](ValueId v) { return reads_[static_cast<size_t>(v)] > inside[v]; });
      if (escapes || is_read[p] == 0) segment.bytes[p] = 0;
    }
    return segment;
  }

 private:
  int64_t bytes_of(ValueId v) const {
    int64_t bytes = static_cast<int64_t>(dtype_bytes(facts_[static_cast<size_t>(v)].type.dtype));
    for (const ir::Dim& dim : facts_[static_cast<size_t>(v)].type.shape)
      bytes *= dim.is_const() ? dim.value() : 1;
    return bytes;
  }
  const ir::Graph& graph_;
  const std::vector<ir::Fact>& facts_;
  const std::map<std::string, PlannedWorkload>& workloads_;
  std::vector<size_t> reads_;  // by value, in the whole graph
};

}  // namespace

std::vector<SegmentOrder> order_for_memory(const ir::Graph& graph, const std::vector<ir::Fact>& facts,
                                           const std::map<std::string, PlannedWorkload>& workloads,
                                           artifact::Plan& plan) {
  std::vector<SegmentOrder> orders;
  Reader reader(graph, facts, workloads);
  for (size_t s = 0; s < plan.segments.size(); ++s) {
    std::vector<PlanStep>& steps = plan.segments[s].steps;
    if (steps.size() < 3) continue;
    const analysis::StepOrder order = analysis::order_steps(reader.read(steps));
    orders.push_back(
        {s, steps.size(), order.method, order.is_optimal, order.states, order.given_peak, order.peak});
    if (order.method == analysis::OrderMethod::kGiven) continue;
    std::vector<PlanStep> sorted;
    for (size_t i : order.order) sorted.push_back(std::move(steps[i]));
    steps = std::move(sorted);
  }
  return orders;
}

std::string SegmentOrder::str() const {
  const char* how = is_optimal ? "no order needs less" : "too many orders to look at all";
  if (peak == given_peak)
    return fmt::format(
        "segment {}: {} steps stay in the graph's order, {} bytes between them at most ({}; {} sets of "
        "steps)",
        segment, steps, peak, how, states);
  return fmt::format(
      "segment {}: {} steps in another order, {} bytes between them at most where the graph's order has {} "
      "({}; {} sets of steps)",
      segment, steps, peak, given_peak, how, states);
}

}  // namespace thrice::plan
