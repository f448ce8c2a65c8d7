#include "plan/launch_order.h"

#include <algorithm>
#include <set>

namespace thrice::plan {

namespace {

using artifact::PlanStep;
using artifact::StepKind;
using ir::ValueId;

// One step of a segment: pieces of memory that it reads and makes. Aliases make nothing.
struct Work {
  std::vector<size_t> reads, makes;
  int64_t scratch = 0;
  std::vector<size_t> after;  // steps that read what it makes
  size_t waits_for = 0;       // steps
};
struct Segment {
  std::vector<Work> steps;
  std::vector<int64_t> bytes;   // by piece
  std::vector<size_t> readers;  // by piece: steps; pieces that outlive the segment have one more
};

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

  Segment read(const std::vector<PlanStep>& steps) {
    Segment segment;
    segment.steps.resize(steps.size());
    std::map<ValueId, size_t> piece, maker;    // of values made here
    std::map<ValueId, size_t> inside;          // reads within the segment, of each value
    std::vector<std::vector<ValueId>> values;  // by piece
    for (size_t s = 0; s < steps.size(); ++s) {
      Work& work = segment.steps[s];
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
      for (size_t b : before) {
        segment.steps[b].after.push_back(s);
        ++work.waits_for;
      }
      if (const auto it = workloads_.find(steps[s].workload);
          steps[s].kind == StepKind::kRegion && it != workloads_.end()) {
        const artifact::LaunchPlan plan =
            it->second.family->launch(it->second.workload, steps[s].schedule, it->second.facts);
        for (size_t t = 0; t < plan.temporary_bytes.size(); ++t)
          if (!plan.temporary_kept[t]) work.scratch += plan.temporary_bytes[t];
      }
    }
    // What lives within a step only is no memory; what is read elsewhere too lies outside the arena.
    segment.readers.assign(segment.bytes.size(), 0);
    for (const Work& work : segment.steps)
      for (size_t p : work.reads) ++segment.readers[p];
    for (size_t p = 0; p < segment.bytes.size(); ++p) {
      const bool escapes = std::any_of(values[p].begin(), values[p].end(),
                                       [&](ValueId v) { return reads_[static_cast<size_t>(v)] > inside[v]; });
      if (escapes || segment.readers[p] == 0) segment.bytes[p] = 0;
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

// Runs steps one after the other and counts.
class Simulation {
 public:
  explicit Simulation(const Segment& segment) : segment_(segment), left_(segment.readers) {
    for (size_t s = 0; s < segment.steps.size(); ++s) waits_.push_back(segment.steps[s].waits_for);
    for (size_t s = 0; s < waits_.size(); ++s)
      if (waits_[s] == 0) ready_.insert(s);
  }
  const std::set<size_t>& ready() const { return ready_; }
  int64_t while_running(size_t s) const {
    int64_t bytes = live_ + segment_.steps[s].scratch;
    for (size_t p : segment_.steps[s].makes) bytes += segment_.bytes[p];
    return bytes;
  }
  int64_t growth(size_t s) const {
    int64_t bytes = 0;
    for (size_t p : segment_.steps[s].makes) bytes += segment_.bytes[p];
    for (size_t p : segment_.steps[s].reads)
      if (left_[p] == 1) bytes -= segment_.bytes[p];
    return bytes;
  }
  void run(size_t s) {
    most_ = std::max(most_, while_running(s));
    live_ += growth(s);
    for (size_t p : segment_.steps[s].reads) --left_[p];
    ready_.erase(s);
    for (size_t next : segment_.steps[s].after)
      if (--waits_[next] == 0) ready_.insert(next);
  }
  int64_t most() const { return most_; }

 private:
  const Segment& segment_;
  std::vector<size_t> left_, waits_;
  std::set<size_t> ready_;
  int64_t live_ = 0, most_ = 0;
};

}  // namespace

void order_for_memory(const ir::Graph& graph, const std::vector<ir::Fact>& facts,
                      const std::map<std::string, PlannedWorkload>& workloads, artifact::Plan& plan) {
  Reader reader(graph, facts, workloads);
  for (artifact::Segment& planned : plan.segments) {
    if (planned.steps.size() < 3) continue;
    const Segment segment = reader.read(planned.steps);
    Simulation given(segment);
    for (size_t s = 0; s < segment.steps.size(); ++s) given.run(s);
    int64_t most = given.most();
    std::vector<size_t> best;
    for (const bool by_growth : {true, false}) {
      Simulation simulation(segment);
      std::vector<size_t> order;
      while (!simulation.ready().empty()) {
        const auto cost = [&](size_t s) {
          const int64_t growth = simulation.growth(s), running = simulation.while_running(s);
          return by_growth ? std::pair(growth, running) : std::pair(running, growth);
        };
        const size_t next = *std::min_element(simulation.ready().begin(), simulation.ready().end(),
                                              [&](size_t a, size_t b) { return cost(a) < cost(b); });
        simulation.run(next);
        order.push_back(next);
      }
      if (order.size() == segment.steps.size() && simulation.most() < most) {
        most = simulation.most();
        best = std::move(order);
      }
    }
    if (best.empty()) continue;
    std::vector<PlanStep> sorted;
    for (size_t s : best) sorted.push_back(std::move(planned.steps[s]));
    planned.steps = std::move(sorted);
  }
}

}  // namespace thrice::plan
