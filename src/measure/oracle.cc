#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>

#include "ir/element_bound.h"
#include "ir/evaluate_threads.h"
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

namespace {

// The float64 answer, its limits, and where asked for its bounds: what the former evaluated serves the
// latter.
void compute(const ir::Graph& graph, const std::vector<Fact>& all, bool with_bounds, Oracle::Case& c) {
  std::vector<ir::ArrayPtr> inputs;
  for (const ir::Tensor& tensor : c.inputs) inputs.push_back(ir::to_array(tensor));
  std::vector<ir::ArrayPtr> exact(graph.values.size());
  ir::EvaluateOptions options;
  options.observe = [&exact](const ir::Node& node, const std::vector<ir::ArrayPtr>& results) {
    for (size_t o = 0; o < node.outputs.size() && o < results.size(); ++o)
      if (node.outputs[o] != ir::kNoValue) exact[static_cast<size_t>(node.outputs[o])] = results[o];
  };
  c.outputs = ir::evaluate_graph(graph, inputs, options);
  c.limits.clear();
  {
    const std::vector<ir::ArrayPtr> ordinary = evaluate_ordinary(graph, inputs, all, exact);
    for (size_t o = 0; o < c.outputs.size(); ++o) {
      const ir::Array& reference = *c.outputs[o];
      double limit = 0;
      if (is_float(reference.dtype)) {
        const double own =
            ir::compare(ir::to_tensor(*ordinary[o]), reference, std::numeric_limits<double>::infinity())
                .error;
        // Where the ordinary operator itself overflows between its nodes, no value can be asked for: only
        // that every element is written.
        limit = std::isfinite(own) ? ir::error_limit(reference.dtype, own)
                                   : std::numeric_limits<double>::infinity();
      }
      c.limits.push_back(limit);
    }
  }
  c.bounds.assign(c.outputs.size(), {});
  if (!with_bounds) return;
  auto bounds = ir::element_bounds(graph, inputs, &exact);
  for (size_t o = 0; o < bounds.size(); ++o)
    if (bounds[o]) c.bounds[o] = std::move(*bounds[o]);
}

}  // namespace

const Oracle::Case& Oracle::answer(ir::InputKind kind, uint64_t seed, bool with_bounds) {
  State::Entry& entry = state_->entry(kind, seed);
  if (entry.answered && (entry.bounded || !with_bounds)) return entry.values;
  compute(state_->workload->graph, state_->all, with_bounds, entry.values);
  entry.answered = true;
  entry.bounded = with_bounds;
  return entry.values;
}

void Oracle::answer_all(const std::vector<std::pair<ir::InputKind, uint64_t>>& cases, bool with_bounds) {
  // Large regions keep all cores busy by themselves; side by side they would only need more memory.
  constexpr double kSmall = 4e6;  // elements of all values
  double elements = 0;
  for (const Fact& fact : state_->all) {
    double size = 1;
    for (const ir::Dim& d : fact.type.shape) size *= d.is_const() ? static_cast<double>(d.value()) : 1;
    elements += size;
  }
  std::vector<State::Entry*> open;
  for (const auto& [kind, seed] : cases) {
    State::Entry& entry = state_->entry(kind, seed);
    if (!entry.answered || (with_bounds && !entry.bounded)) open.push_back(&entry);
  }
  if (!(elements <= kSmall)) return;  // one by one, when they are asked for
  std::vector<std::exception_ptr> failures(open.size());
  ir::run_parts(static_cast<int64_t>(open.size()), [&](int64_t i) {
    State::Entry& entry = *open[static_cast<size_t>(i)];
    try {
      compute(state_->workload->graph, state_->all, with_bounds, entry.values);
      entry.answered = true;
      entry.bounded = with_bounds;
    } catch (...) {
      failures[static_cast<size_t>(i)] = std::current_exception();
    }
  });
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

void Oracle::forget_answers() { state_->entries.clear(); }

const std::vector<Fact>& Oracle::facts() const { return state_->facts; }
const ir::Bindings& Oracle::bindings() const { return state_->bindings; }

}  // namespace thrice::measure
