// Inference over whole graphs and through control nodes.
#include "ir/infer_rules.h"

namespace thrice::ir {
namespace {

Fact fact_of(const Value& value) {
  return {value.type, value.constant ? &*value.constant : nullptr, value.known};
}

// Names a fresh symbol after the node: hint "nonzero.0.1" in node 3 gives "nonzero_3.0.1".
std::string symbol_name(const std::string& prefix, const Node& node, size_t index, const std::string& hint) {
  const size_t op = op_name(node.op).size();
  return fmt::format("{}{}_{}{}", prefix, hint.substr(0, op), index, hint.substr(op));
}

[[noreturn]] void rethrow_with_origin(const Error& error, const Graph& graph, const Node& node) {
  if (node.origin < 0 || node.origin >= static_cast<int32_t>(graph.origins.size())) throw error;
  const Origin& origin = graph.origins[static_cast<size_t>(node.origin)];
  throw Error(error.code(), fmt::format("{} (in {} '{}')", error.what(), origin.op_type, origin.name));
}

bool uses_only(const Dim& d, const std::set<std::string>& outer) {
  for (const std::string& name : d.symbols())
    if (!outer.count(name)) return false;
  return true;
}

// One body of a control node during inference.
struct Body {
  Graph graph;
  std::vector<Fact> inputs;

  void infer(const std::string& prefix) {
    std::vector<const Fact*> pointers;
    for (const Fact& f : inputs) pointers.push_back(&f);
    infer_graph_with(graph, pointers, prefix);
  }
  const Value& output(size_t i) const { return graph.value(graph.outputs[i]); }
};

Body make_body(const InferContext& c, size_t index, size_t num_inputs) {
  if (index >= c.node.bodies.size() || !c.node.bodies[index]) c.fail("a body is missing");
  Body body{*c.node.bodies[index], {}};
  if (body.graph.inputs.size() != num_inputs)
    c.fail(
        fmt::format("body {} has {} inputs, the node gives {}", index, body.graph.inputs.size(), num_inputs));
  return body;
}

void collect_symbols(const Fact& fact, std::set<std::string>& names) {
  for (const Dim& d : fact.type.shape) names.merge(d.symbols());
  if (fact.known)
    for (const Dim& d : *fact.known) names.merge(d.symbols());
}

// Symbols that mean the same outside the body: those of the operands.
std::set<std::string> outer_symbols(const InferContext& c) {
  std::set<std::string> names;
  for (const Fact* f : c.operands)
    if (f) collect_symbols(*f, names);
  return names;
}

// A body's result as seen outside: extents that only the body knows become fresh.
Fact outside(const InferContext& c, const Type& type, size_t output, const std::set<std::string>& outer,
             size_t first_axis = 0) {
  Fact result{type, nullptr, std::nullopt};
  for (size_t a = first_axis; a < type.shape.size(); ++a)
    if (!uses_only(type.shape[a], outer)) result.type.shape[a] = c.fresh(output, a);
  return result;
}

// The value of a bool scalar that is a number; nullopt when it is not known or absent.
std::optional<bool> truth(const InferContext& c, size_t operand) {
  const auto known = c.known(operand);
  if (!known || known->size() != 1 || !(*known)[0].is_const()) return std::nullopt;
  return (*known)[0].value() != 0;
}

void keep(std::vector<std::shared_ptr<const Graph>>* bodies, Graph graph) {
  if (bodies) bodies->push_back(std::make_shared<const Graph>(std::move(graph)));
}

std::vector<Fact> infer_if(const InferContext& c, const std::string& prefix,
                           std::vector<std::shared_ptr<const Graph>>* bodies) {
  c.require(c.dtype(0) == DType::kBool, "the condition is not bool");
  const std::set<std::string> outer = outer_symbols(c);
  std::vector<Body> both;
  for (size_t b = 0; b < 2; ++b) {
    Body body = make_body(c, b, c.operands.size() - 1);
    for (size_t i = 1; i < c.operands.size(); ++i) body.inputs.push_back(c.in(i));
    body.infer(fmt::format("{}{}.", prefix, b == 0 ? "then" : "else"));
    both.push_back(std::move(body));
  }
  c.require(both[0].graph.outputs.size() == both[1].graph.outputs.size(), "the branches differ in results");
  const std::optional<bool> taken = truth(c, 0);
  std::vector<Fact> results;
  for (size_t o = 0; o < both[0].graph.outputs.size(); ++o) {
    if (taken) {
      const Value& v = both[*taken ? 0 : 1].output(o);
      results.push_back(outside(c, v.type, o, outer));
      bool portable = v.known.has_value();
      if (portable)
        for (const Dim& d : *v.known) portable = portable && uses_only(d, outer);
      if (portable) results.back().known = v.known;
      continue;
    }
    const Type &x = both[0].output(o).type, &y = both[1].output(o).type;
    c.require(x.dtype == y.dtype, "the branches differ in the type of a result");
    if (x.shape.size() != y.shape.size())
      throw Error(Code::kUnsupported,
                  fmt::format("if: result {} has rank {} in one branch and {} in the other", o,
                              x.shape.size(), y.shape.size()));
    Fact result = outside(c, x, o, outer);
    for (size_t a = 0; a < x.shape.size(); ++a)
      if (x.shape[a] != y.shape[a]) result.type.shape[a] = c.fresh(o, a);
    results.push_back(std::move(result));
  }
  for (Body& body : both) keep(bodies, std::move(body.graph));
  return results;
}

// Infers a body whose carried values may change their extents: such an extent becomes a symbol of its own,
// until no more change. Each round frees one extent at least, so it ends.
void infer_carried(const InferContext& c, Body& body, size_t first_input, size_t first_output, size_t count,
                   const std::string& prefix) {
  for (;;) {
    body.infer(prefix);
    bool changed = false;
    for (size_t i = 0; i < count; ++i) {
      Fact& in = body.inputs[first_input + i];
      const Value& out = body.output(first_output + i);
      c.require(in.type.dtype == out.type.dtype, "a carried value changes its type");
      if (in.type.shape.size() != out.type.shape.size())
        throw Error(Code::kUnsupported,
                    fmt::format("{}: carried value {} changes its rank", op_name(c.node.op), i));
      for (size_t a = 0; a < in.type.shape.size(); ++a) {
        const std::string name = fmt::format("{}carried{}.{}", prefix, i, a);
        if (in.type.shape[a] == out.type.shape[a] || in.type.shape[a] == Dim::symbol(name)) continue;
        in.type.shape[a] = Dim::symbol(name);
        changed = true;
      }
    }
    if (!changed) return;
  }
}

Fact without_value(Fact fact) {
  fact.constant = nullptr;
  fact.known.reset();
  return fact;
}

// Iterations, where they do not depend on data: the condition never turns false.
std::optional<Dim> trip_count(const InferContext& c, const Body& body) {
  const auto limit = c.known(0);
  if (!limit || limit->size() != 1) return std::nullopt;
  if (c.has(1) && truth(c, 1) != true) return std::nullopt;
  const Value& next = body.output(0);
  const bool passed_through = body.graph.outputs[0] == body.graph.inputs[1];
  const bool always = next.known && next.known->size() == 1 && (*next.known)[0] == Dim(1);
  if (!passed_through && !always) return std::nullopt;
  return dim_max((*limit)[0], 0);
}

std::vector<Fact> infer_loop(const InferContext& c, const std::string& prefix,
                             std::vector<std::shared_ptr<const Graph>>* bodies) {
  const auto carried = static_cast<size_t>(c.node.int_attr("num_carried"));
  c.require(c.operands.size() >= 2 + carried, "has fewer operands than carried values");
  Body body = make_body(c, 0, c.operands.size());
  c.require(body.graph.outputs.size() >= 1 + carried, "the body has fewer results than carried values");
  body.inputs.push_back({{DType::kI64, {}}, nullptr, std::nullopt});
  body.inputs.push_back({{DType::kBool, {}}, nullptr, std::nullopt});
  for (size_t i = 2; i < c.operands.size(); ++i)
    body.inputs.push_back(i < 2 + carried ? without_value(c.in(i)) : c.in(i));
  infer_carried(c, body, 2, 1, carried, prefix);
  const std::set<std::string> outer = outer_symbols(c);
  std::vector<Fact> results;
  for (size_t o = 0; o < carried; ++o) {
    // Zero iterations give the initial value, so the type is that of the body's INPUT.
    results.push_back(outside(c, body.inputs[2 + o].type, o, outer));
  }
  const std::optional<Dim> trips = trip_count(c, body);
  for (size_t o = carried; o + 1 < body.graph.outputs.size(); ++o) {
    Type type = body.output(o + 1).type;
    type.shape.insert(type.shape.begin(), trips ? *trips : c.fresh(o, 0));
    results.push_back(outside(c, type, o, outer, 1));
  }
  keep(bodies, std::move(body.graph));
  return results;
}

std::vector<Fact> infer_scan(const InferContext& c, const std::string& prefix,
                             std::vector<std::shared_ptr<const Graph>>* bodies) {
  const auto carried = static_cast<size_t>(c.node.int_attr("num_carried"));
  const auto scanned = static_cast<size_t>(c.node.int_attr("num_scanned"));
  c.require(c.operands.size() >= carried + scanned && scanned >= 1,
            "has fewer operands than carried and scanned values");
  Body body = make_body(c, 0, c.operands.size());
  c.require(body.graph.outputs.size() >= carried, "the body has fewer results than carried values");
  const std::vector<int64_t> in_axes = c.ints("scan_input_axes", scanned, 0);
  const std::vector<int64_t> out_axes = c.ints("scan_output_axes", body.graph.outputs.size() - carried, 0);
  std::optional<Dim> length;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    Fact f = i < carried + scanned ? without_value(c.in(i)) : c.in(i);
    if (i >= carried && i < carried + scanned) {
      const auto rank = static_cast<int64_t>(f.type.shape.size());
      const int64_t axis = in_axes[i - carried] < 0 ? in_axes[i - carried] + rank : in_axes[i - carried];
      c.require(axis >= 0 && axis < rank, "a scan axis is outside the rank");
      const Dim& extent = f.type.shape[static_cast<size_t>(axis)];
      length = length ? unify(c, *length, extent) : extent;
      f.type.shape.erase(f.type.shape.begin() + axis);
    }
    body.inputs.push_back(std::move(f));
  }
  infer_carried(c, body, 0, 0, carried, prefix);
  const std::set<std::string> outer = outer_symbols(c);
  std::vector<Fact> results;
  for (size_t o = 0; o < body.graph.outputs.size(); ++o) {
    if (o < carried) {
      results.push_back(outside(c, body.inputs[o].type, o, outer));
      continue;
    }
    Type type = outside(c, body.output(o).type, o, outer).type;
    const auto rank = static_cast<int64_t>(type.shape.size()) + 1;
    const int64_t axis = out_axes[o - carried] < 0 ? out_axes[o - carried] + rank : out_axes[o - carried];
    c.require(axis >= 0 && axis < rank, "a scan axis is outside the rank");
    type.shape.insert(type.shape.begin() + axis, *length);
    results.push_back({std::move(type), nullptr, std::nullopt});
  }
  keep(bodies, std::move(body.graph));
  return results;
}

}  // namespace

std::vector<Fact> infer_control(const InferContext& c, const std::string& prefix,
                                std::vector<std::shared_ptr<const Graph>>* bodies) {
  switch (c.node.op) {
    case Op::if_:
      return infer_if(c, prefix, bodies);
    case Op::loop:
      return infer_loop(c, prefix, bodies);
    case Op::scan:
      return infer_scan(c, prefix, bodies);
    default:
      throw Error(Code::kInternal, fmt::format("{} is no control operator", op_name(c.node.op)));
  }
}

void infer_graph_with(Graph& graph, const std::vector<const Fact*>& inputs, const std::string& prefix) {
  std::vector<Fact> facts;
  facts.reserve(graph.values.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    Value& value = graph.value(graph.inputs[i]);
    value.type = inputs[i]->type;
    value.known = inputs[i]->known;
  }
  for (const Value& value : graph.values) facts.push_back(fact_of(value));
  for (size_t i = 0; i < inputs.size(); ++i)
    facts[static_cast<size_t>(graph.inputs[i])].constant = inputs[i]->constant;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    std::vector<const Fact*> operands;
    for (ValueId id : node.inputs)
      operands.push_back(id == kNoValue ? nullptr : &facts[static_cast<size_t>(id)]);
    const FreshSymbol fresh = [&](const std::string& hint) {
      return Dim::symbol(symbol_name(prefix, node, n, hint));
    };
    std::vector<Fact> results;
    try {
      if (op_class(node.op) == OpClass::kControl) {
        std::vector<std::shared_ptr<const Graph>> bodies;
        const InferContext c{node, operands, fresh};
        results = infer_control(c, fmt::format("{}{}_{}.", prefix, op_name(node.op), n), &bodies);
        c.require(results.size() >= node.outputs.size(), "the node names more results than the body has");
        node.bodies = std::move(bodies);
      } else {
        results = infer_node(node, operands, fresh);
      }
    } catch (const Error& error) {
      rethrow_with_origin(error, graph, node);
    }
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      const ValueId id = node.outputs[o];
      if (id == kNoValue) continue;
      graph.value(id).type = results[o].type;
      graph.value(id).known = results[o].known;
      facts[static_cast<size_t>(id)] = std::move(results[o]);
    }
  }
}

void infer_graph(Graph& graph) { infer_graph_with(graph, {}, ""); }

}  // namespace thrice::ir
