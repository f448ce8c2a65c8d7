#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/element_bound.h"
#include "measure/check.h"
#include "measure/ordinary.h"

namespace thrice::measure {
namespace {

using ir::Fact;

ir::Bindings bindings_of(const ir::Graph& graph, const std::vector<Fact>& facts) {
  ir::Bindings bindings;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const ir::Value& value = graph.value(graph.inputs[i]);
    for (size_t a = 0; a < value.type.shape.size(); ++a)
      if (!value.type.shape[a].is_const())
        bindings[value.type.shape[a].str()] = facts[i].type.shape[a].value();
    if (!value.known || !facts[i].known) continue;
    for (size_t k = 0; k < value.known->size(); ++k)
      if (!(*value.known)[k].is_const()) bindings[(*value.known)[k].str()] = (*facts[i].known)[k].value();
  }
  return bindings;
}

// The value of a shape operand comes with the facts: the launches were computed for it.
std::optional<ir::Tensor> fixed_value(const Fact& fact) {
  if (fact.constant) return *fact.constant;
  if (!fact.known) return {};
  std::vector<int64_t> values;
  for (const ir::Dim& d : *fact.known) values.push_back(d.value());
  return ir::Tensor::of(fact.type.dtype, ir::static_shape(fact.type.shape), values);
}

}  // namespace

struct Oracle::State {
  const ir::Workload* workload;
  std::vector<Fact> facts, all;  // of the inputs; of every value
  ir::Bindings bindings;
  struct Entry {
    Case values;
    bool answered = false, bounded = false;
    int64_t used = 0;  // when last asked for
  };
  int64_t asked = 0;
  std::map<std::pair<int, uint64_t>, Entry> entries;

  Entry& entry(ir::InputKind kind, uint64_t seed);
};

Oracle::State::Entry& Oracle::State::entry(ir::InputKind kind, uint64_t seed) {
  // Answers are large: more than a full gate looks at, with its positive inputs, are not kept. What is handed
  // out stays valid over that many others.
  constexpr size_t kKept = 14;
  const std::pair<int, uint64_t> key{static_cast<int>(kind), seed};
  if (!entries.count(key) && entries.size() >= kKept)
    entries.erase(std::min_element(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
      return a.second.used < b.second.used;
    }));
  Entry& entry = entries[key];
  entry.used = ++asked;
  if (!entry.values.inputs.empty() || workload->graph.inputs.empty()) return entry;
  entry.values.inputs = ir::make_inputs(workload->graph, bindings, kind, seed);
  for (size_t i = 0; i < facts.size(); ++i)
    if (ir::is_shape_input(*workload, i))
      if (const auto fixed = fixed_value(facts[i])) entry.values.inputs[i] = *fixed;
  return entry;
}

Oracle::Oracle(const ir::Workload& workload, std::vector<Fact> facts) : state_(std::make_unique<State>()) {
  state_->workload = &workload;
  state_->facts = std::move(facts);
  state_->all = ir::bind(workload.graph, state_->facts);
  state_->bindings = bindings_of(workload.graph, state_->facts);
}
Oracle::~Oracle() = default;

const std::vector<ir::Tensor>& Oracle::inputs(ir::InputKind kind, uint64_t seed) {
  return state_->entry(kind, seed).values.inputs;
}

const Oracle::Case& Oracle::answer(ir::InputKind kind, uint64_t seed, bool with_bounds) {
  State::Entry& entry = state_->entry(kind, seed);
  Case& c = entry.values;
  if (entry.answered && (entry.bounded || !with_bounds)) return c;
  const ir::Graph& graph = state_->workload->graph;
  std::vector<ir::ArrayPtr> inputs;
  for (const ir::Tensor& tensor : c.inputs) inputs.push_back(ir::to_array(tensor));
  if (with_bounds) {
    const auto bounds = ir::element_bounds(graph, inputs);
    c.bounds.assign(bounds.size(), {});
    for (size_t o = 0; o < bounds.size(); ++o)
      if (bounds[o]) c.bounds[o] = *bounds[o];
    entry.bounded = true;
  }
  if (entry.answered) return c;
  std::vector<ir::ArrayPtr> exact(graph.values.size());
  ir::EvaluateOptions options;
  options.observe = [&exact](const ir::Node& node, const std::vector<ir::ArrayPtr>& results) {
    for (size_t o = 0; o < node.outputs.size(); ++o)
      if (node.outputs[o] != ir::kNoValue) exact[static_cast<size_t>(node.outputs[o])] = results[o];
  };
  c.outputs = ir::evaluate_graph(graph, inputs, options);
  const std::vector<ir::ArrayPtr> ordinary = evaluate_ordinary(graph, inputs, state_->all, exact);
  if (!entry.bounded) c.bounds.assign(c.outputs.size(), {});
  for (size_t o = 0; o < c.outputs.size(); ++o) {
    const ir::Array& reference = *c.outputs[o];
    double limit = 0;
    if (is_float(reference.dtype)) {
      const double own =
          ir::compare(ir::to_tensor(*ordinary[o]), reference, std::numeric_limits<double>::infinity()).error;
      // Where the ordinary operator itself overflows between its nodes, no value can be asked for: only that
      // every element is written.
      limit = std::isfinite(own) ? ir::error_limit(reference.dtype, own)
                                 : std::numeric_limits<double>::infinity();
    }
    c.limits.push_back(limit);
  }
  entry.answered = true;
  return c;
}

const std::vector<Fact>& Oracle::facts() const { return state_->facts; }
const ir::Bindings& Oracle::bindings() const { return state_->bindings; }

}  // namespace thrice::measure
