// ir/check.h: verify.
#include <fmt/format.h>
#include <thrice/status.h>

#include "ir/check.h"
#include "ir/infer.h"

namespace thrice::ir {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph), ready_(graph.values.size(), 0) {}

  void run() {
    if (graph_.input_names.size() != graph_.inputs.size() ||
        graph_.output_names.size() != graph_.outputs.size())
      fail("the graph has another number of names than of inputs or outputs");
    values();
    for (size_t n = 0; n < graph_.nodes.size(); ++n) node(n);
    for (ValueId id : graph_.outputs) {
      in_range(id, "a graph output");
      if (!ready(id)) fail(fmt::format("graph output %{} is made by nobody", id));
    }
  }

 private:
  [[noreturn]] static void fail(const std::string& what) {
    throw Error(Code::kInternal, "graph check: " + what);
  }
  void in_range(ValueId id, const std::string& what) const {
    if (id < 0 || id >= static_cast<ValueId>(graph_.values.size()))
      fail(fmt::format("{} is value {} of {}", what, id, graph_.values.size()));
  }
  uint8_t& ready(ValueId id) { return ready_[static_cast<size_t>(id)]; }

  void values() {
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      const Value& value = graph_.values[i];
      if (value.producer < -1 || value.producer >= static_cast<NodeId>(graph_.nodes.size()))
        fail(fmt::format("value %{} names node {} as its producer", i, value.producer));
      if (value.known && num_elements(value.type.shape) != Dim(static_cast<int64_t>(value.known->size())))
        fail(fmt::format("value %{} of shape {} has {} known elements", i, shape_str(value.type.shape),
                         value.known->size()));
      if (!value.constant) continue;
      if (value.producer != -1) fail(fmt::format("constant %{} has a producer", i));
      if (value.type.dtype != value.constant->dtype() ||
          value.type.shape != to_shape(value.constant->shape()))
        fail(fmt::format("constant %{} differs from its type", i));
      ready_[i] = 1;
    }
    for (ValueId id : graph_.inputs) {
      in_range(id, "a graph input");
      if (graph_.value(id).producer != -1) fail(fmt::format("graph input %{} has a producer", id));
      if (ready(id)) fail(fmt::format("graph input %{} is a constant, or an input twice", id));
      ready(id) = 1;
    }
  }

  void node(size_t n) {
    const Node& node = graph_.nodes[n];
    const std::string where = fmt::format("node {} ({})", n, op_name(node.op));
    for (ValueId id : node.inputs) {
      if (id == kNoValue) continue;
      in_range(id, where + ": an operand");
      if (!ready(id)) fail(fmt::format("{}: operand %{} is not made before it", where, id));
    }
    for (ValueId id : node.outputs) {
      if (id == kNoValue) continue;
      in_range(id, where + ": a result");
      if (ready(id)) fail(fmt::format("{}: result %{} is made twice", where, id));
      if (graph_.value(id).producer != static_cast<NodeId>(n))
        fail(fmt::format("{}: result %{} names node {} as its producer", where, id,
                         graph_.value(id).producer));
      ready(id) = 1;
    }
    if (node.origin < -1 || node.origin >= static_cast<int32_t>(graph_.origins.size()))
      fail(fmt::format("{}: origin {} of {}", where, node.origin, graph_.origins.size()));
    bodies(node, where);
    types(node, where);
  }

  static void bodies(const Node& node, const std::string& where) {
    const size_t expected = node.op == Op::if_ ? 2 : op_class(node.op) == OpClass::kControl ? 1 : 0;
    if (node.bodies.size() != expected)
      fail(fmt::format("{}: {} bodies, expected {}", where, node.bodies.size(), expected));
    for (const auto& body : node.bodies) {
      if (!body) fail(where + ": a body is missing");
      verify(*body);
    }
  }

  // Element types and ranks; extents may be known better or worse than inference from the operands alone
  // says.
  void types(const Node& node, const std::string& where) const {
    if (op_class(node.op) == OpClass::kControl) return;
    std::vector<Fact> facts;
    std::vector<const Fact*> operands;
    facts.reserve(node.inputs.size());
    for (ValueId id : node.inputs) {
      operands.push_back(nullptr);
      if (id == kNoValue) continue;
      const Value& v = graph_.value(id);
      facts.push_back({v.type, v.constant ? &*v.constant : nullptr, v.known});
      operands.back() = &facts.back();
    }
    std::vector<Fact> results;
    try {
      results = infer_node(node, operands, [](const std::string& hint) { return Dim::symbol(hint); });
    } catch (const Error& error) {
      fail(fmt::format("{}: {}", where, error.what()));
    }
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      if (node.outputs[o] == kNoValue) continue;
      const Type& has = graph_.value(node.outputs[o]).type;
      if (has.dtype != results[o].type.dtype || has.shape.size() != results[o].type.shape.size())
        fail(fmt::format("{}: result {} is {}{}, inference says {}{}", where, o, dtype_name(has.dtype),
                         shape_str(has.shape), dtype_name(results[o].type.dtype),
                         shape_str(results[o].type.shape)));
    }
  }

  const Graph& graph_;
  std::vector<uint8_t> ready_;
};

}  // namespace

void verify(const Graph& graph) { Verifier(graph).run(); }

}  // namespace thrice::ir
