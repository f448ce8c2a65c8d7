#include "exec/predict.h"

#include <thrice/status.h>

#include <algorithm>
#include <map>
#include <set>

#include "exec/lifetimes.h"
#include "ir/region.h"

namespace thrice::exec {

using ir::ValueId;

namespace {

// Buffers that the pool lends, by value.
class Pool {
 public:
  explicit Pool(int64_t& peak) : peak_(peak) {}
  void take(ValueId v, int64_t bytes) {
    if (!lent_.emplace(v, bytes).second) return;
    in_use_ += bytes;
    peak_ = std::max(peak_, in_use_);
  }
  void give_back(ValueId v) {
    const auto it = lent_.find(v);
    if (it == lent_.end()) return;
    in_use_ -= it->second;
    lent_.erase(it);
  }

 private:
  int64_t& peak_;
  int64_t in_use_ = 0;
  std::map<ValueId, int64_t> lent_;
};

void find_holders(const Executable& code, const SegmentMemory& memory, PredictedMemory& found) {
  std::vector<int64_t> live(static_cast<size_t>(memory.num_moments) + 1, 0);
  for (const BoundPiece& piece : memory.pieces)
    for (int m = piece.first; m <= piece.last; ++m) live[static_cast<size_t>(m)] += piece.bytes;
  const int fullest = static_cast<int>(std::max_element(live.begin(), live.end()) - live.begin());
  const auto& steps = code.segments[memory.segment].steps;
  size_t step = steps.size() - 1;
  while (step > 0 && memory.first_moment[step] > fullest) --step;
  found.fullest = steps[step].name;
  found.holders.clear();
  for (const BoundPiece& piece : memory.pieces)
    if (piece.first <= fullest && fullest <= piece.last && piece.bytes > 0)
      found.holders.push_back({steps[piece.step].name, piece.is_scratch, piece.bytes});
  std::stable_sort(found.holders.begin(), found.holders.end(),
                   [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; });
}

}  // namespace

PredictedMemory predict_memory(const Executable& code, const std::vector<std::vector<int64_t>>& inputs) {
  const ir::Graph& graph = *code.graph;
  PredictedMemory found;
  found.use.weights = code.constant_bytes;
  found.use.held = code.resident_bytes;
  if (!code.bodies.empty()) found.missing = "bodies of loops and branches are bound while they run";
  const Lifetimes lifetimes = find_lifetimes(code);
  RunFacts facts(graph);
  Pool pool(found.use.pool);
  std::set<std::string> kept_keys;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const DType dtype = graph.value(graph.inputs[i]).type.dtype;
    facts.set_input(i, dtype, inputs.at(i));
    const int64_t elements = ir::num_elements(inputs[i]);
    pool.take(graph.inputs[i],
              static_cast<int64_t>(pooled_bytes(static_cast<size_t>(elements) * dtype_bytes(dtype))));
  }
  for (size_t s = 0; s < code.segments.size(); ++s) {
    const auto& steps = code.segments[s].steps;
    if (steps.empty() || steps[0].step->kind == artifact::StepKind::kHost ||
        steps[0].step->kind == artifact::StepKind::kControl)
      continue;
    BoundSegment bound;
    try {
      bound = bind_segment(code, s, facts, lifetimes.escapes[s]);
    } catch (const Error& error) {
      found.missing =
          "segment " + std::to_string(s) + ", which begins with '" + steps[0].name + "': " + error.what();
      continue;
    }
    for (const BoundArgument& piece : bound.carried)
      pool.take(piece.value, static_cast<int64_t>(pooled_bytes(static_cast<size_t>(piece.bytes))));
    for (ValueId v : lifetimes.last_read[s])
      if (std::find(graph.inputs.begin(), graph.inputs.end(), v) == graph.inputs.end()) pool.give_back(v);
    for (const BoundKept& kept : bound.kept)
      if (kept_keys.insert(kept.key).second) found.use.held += kept.bytes;
    found.use.arena_lower_bound = std::max(found.use.arena_lower_bound, bound.arena_lower_bound);
    SegmentMemory memory{
        s, std::move(bound.pieces), {}, bound.num_moments, bound.arena_bytes, bound.arena_lower_bound};
    int moment = 0;
    for (const BoundStep& step : bound.steps) {
      memory.first_moment.push_back(moment);
      moment += std::max<int>(1, static_cast<int>(step.num_launches));
    }
    if (bound.arena_bytes > found.use.arena) {
      found.use.arena = bound.arena_bytes;
      find_holders(code, memory, found);
    }
    found.segments.push_back(std::move(memory));
  }
  return found;
}

PredictedMemory predict_memory(const Executable& code, const ir::Bindings& bindings) {
  std::vector<std::vector<int64_t>> shapes;
  for (const ir::Fact& fact : ir::facts_at(*code.graph, bindings))
    shapes.push_back(ir::static_shape(fact.type.shape));
  return predict_memory(code, shapes);
}

}  // namespace thrice::exec
