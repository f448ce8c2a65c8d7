// ir/region.h: extract, bind, facts_at.
#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <map>

#include "ir/check.h"
#include "ir/region.h"

namespace thrice::ir {
namespace {

class Extractor {
 public:
  Extractor(const Graph& graph, const Region& region) : graph_(graph), region_(region) {}

  Workload run() {
    for (ValueId id : region_.inputs) input(id);
    for (NodeId n : region_.nodes) node(graph_.nodes[static_cast<size_t>(n)]);
    for (ValueId id : region_.outputs) {
      out_.outputs.push_back(id);
      out_.graph.outputs.push_back(inner_.at(id));
      out_.graph.output_names.push_back(fmt::format("o{}", out_.graph.output_names.size()));
    }
    infer_graph(out_.graph);
    out_.hash = structural_hash(out_.graph);
    return std::move(out_);
  }

 private:
  bool decides_shape(ValueId id) const {
    for (NodeId n : region_.nodes) {
      const Node& node = graph_.nodes[static_cast<size_t>(n)];
      for (size_t i = 0; i < node.inputs.size(); ++i)
        if (node.inputs[i] == id && is_shape_operand(node, i)) return true;
    }
    return false;
  }

  Dim rename(const Dim& d) {
    if (d.is_const()) return d;
    const auto [it, added] = symbols_.emplace(d, fmt::format("s{}", symbols_.size()));
    return Dim::symbol(it->second);
  }

  void input(ValueId id) {
    const Value& value = graph_.value(id);
    const bool shape = decides_shape(id);
    if (value.constant && (value.constant->size() == 1 || shape)) {
      inner_[id] = out_.graph.add_constant(*value.constant);
      return;
    }
    Type type = value.type;
    for (Dim& d : type.shape) d = rename(d);
    const ValueId inner = out_.graph.add_value(std::move(type));
    out_.graph.value(inner).is_weight = value.constant.has_value();
    if (shape && value.known) {
      std::vector<Dim> known;
      for (const Dim& d : *value.known) known.push_back(rename(d));
      out_.graph.value(inner).known = std::move(known);
    }
    inner_[id] = inner;
    out_.inputs.push_back(id);
    out_.graph.inputs.push_back(inner);
    out_.graph.input_names.push_back(fmt::format("i{}", out_.graph.input_names.size()));
  }

  int32_t origin(int32_t outer) {
    if (outer < 0) return -1;
    const auto it = std::find(out_.origins.begin(), out_.origins.end(), outer);
    const auto index = static_cast<int32_t>(it - out_.origins.begin());
    if (it == out_.origins.end()) {
      out_.origins.push_back(outer);
      out_.graph.origins.push_back(graph_.origins[static_cast<size_t>(outer)]);
    }
    return index;
  }

  void node(const Node& outer) {
    Node node = outer;
    node.origin = origin(outer.origin);
    for (ValueId& id : node.inputs)
      if (id != kNoValue) id = inner_.at(id);
    for (ValueId& id : node.outputs) {
      if (id == kNoValue) continue;
      const ValueId inner = out_.graph.add_value(graph_.value(id).type);
      inner_[id] = inner;
      id = inner;
    }
    out_.graph.add_node(std::move(node));
  }

  const Graph& graph_;
  const Region& region_;
  Workload out_;
  std::map<ValueId, ValueId> inner_;
  std::map<Dim, std::string> symbols_;
};

// Checks one input's concrete extents against what the graph declares, and binds the symbols met.
void check_input(const Graph& graph, size_t i, const Type& given, Bindings& bindings) {
  const Type& declared = graph.value(graph.inputs[i]).type;
  const auto fail = [&](const std::string& what) {
    throw Error(Code::kInvalidModel,
                fmt::format("input {}: {} (given {}{}, declared {}{})", i, what, dtype_name(given.dtype),
                            shape_str(given.shape), dtype_name(declared.dtype), shape_str(declared.shape)));
  };
  if (given.dtype != declared.dtype) fail("the element type differs");
  if (given.shape.size() != declared.shape.size()) fail("the rank differs");
  for (size_t a = 0; a < given.shape.size(); ++a) {
    const Dim& d = declared.shape[a];
    const int64_t extent = given.shape[a].value();
    if (d.is_const()) {
      if (d.value() != extent) fail(fmt::format("axis {} has {} elements", a, extent));
      continue;
    }
    const std::set<std::string> symbols = d.symbols();
    if (symbols.size() != 1 || d != Dim::symbol(*symbols.begin())) continue;
    const auto [it, added] = bindings.emplace(*symbols.begin(), extent);
    if (it->second != extent) fail(fmt::format("axis {}: {} is {} elsewhere", a, it->first, it->second));
  }
}

// Nullopt where a symbol is not bound.
std::optional<std::vector<Dim>> evaluated(const std::vector<Dim>& dims, const Bindings& bindings) {
  std::vector<Dim> result;
  for (const Dim& d : dims) {
    for (const std::string& name : d.symbols())
      if (!bindings.count(name)) return std::nullopt;
    result.emplace_back(d.evaluate(bindings));
  }
  return result;
}

}  // namespace

Workload extract(const Graph& graph, const Region& region) { return Extractor(graph, region).run(); }

bool is_shape_input(const Workload& workload, size_t i) {
  const ValueId id = workload.graph.inputs[i];
  bool used = false;
  for (const Node& node : workload.graph.nodes) {
    for (size_t operand = 0; operand < node.inputs.size(); ++operand) {
      if (node.inputs[operand] != id) continue;
      if (!is_shape_operand(node, operand)) return false;
      used = true;
    }
  }
  const auto& outputs = workload.graph.outputs;
  return used && std::find(outputs.begin(), outputs.end(), id) == outputs.end();
}

std::vector<Fact> bind(const Graph& graph, const std::vector<Fact>& inputs) {
  if (inputs.size() != graph.inputs.size())
    throw Error(Code::kInternal,
                fmt::format("bind: {} facts for {} inputs", inputs.size(), graph.inputs.size()));
  std::vector<Fact> facts(graph.values.size());
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (value.constant) facts[v] = {value.type, &*value.constant, value.known};
  }
  Bindings bindings;
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_input(graph, i, inputs[i].type, bindings);
    facts[static_cast<size_t>(graph.inputs[i])] = inputs[i];
  }
  for (ValueId id : graph.inputs) {
    Fact& fact = facts[static_cast<size_t>(id)];
    if (!fact.known && !fact.constant && graph.value(id).known)
      fact.known = evaluated(*graph.value(id).known, bindings);
  }
  const auto no_symbol = [](const std::string& hint) -> Dim {
    throw Error(Code::kUnsupported,
                fmt::format("the extent {} depends on data that the host does not have", hint));
  };
  for (const Node& node : graph.nodes) {
    std::vector<const Fact*> operands;
    for (ValueId id : node.inputs)
      operands.push_back(id == kNoValue ? nullptr : &facts[static_cast<size_t>(id)]);
    std::vector<Fact> results = infer_node(node, operands, no_symbol);
    for (size_t o = 0; o < node.outputs.size(); ++o)
      if (node.outputs[o] != kNoValue) facts[static_cast<size_t>(node.outputs[o])] = std::move(results[o]);
  }
  return facts;
}

std::vector<Fact> facts_at(const Graph& graph, const Bindings& bindings) {
  std::vector<Fact> facts;
  const auto at = [&](const std::vector<Dim>& dims) {
    std::vector<Dim> result;
    for (const Dim& d : dims) result.emplace_back(d.evaluate(bindings));
    return result;
  };
  for (ValueId id : graph.inputs) {
    const Value& value = graph.value(id);
    Fact fact{{value.type.dtype, at(value.type.shape)}, nullptr, std::nullopt};
    if (value.known) fact.known = at(*value.known);
    facts.push_back(std::move(fact));
  }
  return facts;
}

}  // namespace thrice::ir
