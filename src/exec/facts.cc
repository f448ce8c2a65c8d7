#include "exec/facts.h"

#include <fmt/format.h>
#include <thrice/status.h>

namespace thrice::exec {

using ir::Dim;
using ir::Fact;
using ir::ValueId;

namespace {
std::string shape_text(const std::vector<int64_t>& shape) { return ir::shape_str(ir::to_shape(shape)); }

bool is_bound(const Dim& dim, const ir::Bindings& bindings) {
  if (dim.is_const()) return true;
  for (const std::string& symbol : dim.symbols())
    if (!bindings.count(symbol)) return false;
  return true;
}
bool all_bound(const std::vector<Dim>& dims, const ir::Bindings& bindings) {
  for (const Dim& dim : dims)
    if (!is_bound(dim, bindings)) return false;
  return true;
}
std::vector<Dim> evaluated(const std::vector<Dim>& dims, const ir::Bindings& bindings) {
  std::vector<Dim> result;
  result.reserve(dims.size());
  for (const Dim& dim : dims) result.push_back(dim.is_const() ? dim : Dim(dim.evaluate(bindings)));
  return result;
}
// Small integer vectors and scalars may be shapes, so their values are worth following; other values are
// data.
bool may_be_shape(const ir::Value& value) {
  return is_integer(value.type.dtype) && value.type.shape.size() <= 1;
}
}  // namespace

RunFacts::RunFacts(const ir::Graph& graph)
    : graph_(graph), facts_(graph.values.size()), hosts_(graph.values.size(), nullptr) {}

void RunFacts::unify(ValueId v, const std::vector<int64_t>& shape, const std::string& what) {
  const ir::Shape& declared = graph_.value(v).type.shape;
  if (declared.size() != shape.size())
    throw Error(Code::kInvalidArgument,
                fmt::format("{} has shape {}, but the model declares rank {}: {}", what, shape_text(shape),
                            declared.size(), ir::shape_str(declared)));
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const Dim& dim = declared[axis];
    if (!is_bound(dim, bindings_)) {
      // A lone symbol is bound here; a compound with unbound parts cannot be solved and is left to the values
      // that bind its parts.
      if (dim == Dim::symbol(dim.str()))
        bindings_[dim.str()] = shape[axis];
      else
        has_unsolved_ = true;
      continue;
    }
    const int64_t expected = dim.evaluate(bindings_);
    if (expected != shape[axis])
      throw Error(Code::kInvalidArgument,
                  fmt::format("{} has shape {}, but axis {} must be {} (the model declares {})", what,
                              shape_text(shape), axis, expected, ir::shape_str(declared)));
  }
}

void RunFacts::set_input(size_t i, DType dtype, const std::vector<int64_t>& shape) {
  const ValueId v = graph_.inputs[i];
  const std::string name = i < graph_.input_names.size() ? graph_.input_names[i] : std::to_string(i);
  if (dtype != graph_.value(v).type.dtype)
    throw Error(Code::kInvalidArgument,
                fmt::format("input '{}' is {}, but the model declares {}", name, dtype_name(dtype),
                            dtype_name(graph_.value(v).type.dtype)));
  unify(v, shape, fmt::format("input '{}'", name));
  facts_[static_cast<size_t>(v)] = Fact{{dtype, ir::to_shape(shape)}, hosts_[static_cast<size_t>(v)], {}};
}

void RunFacts::check_inputs() {
  if (!has_unsolved_) return;
  for (size_t i = 0; i < graph_.inputs.size(); ++i) {
    const std::string name = i < graph_.input_names.size() ? graph_.input_names[i] : std::to_string(i);
    unify(graph_.inputs[i], ir::static_shape(fact(graph_.inputs[i]).type.shape),
          fmt::format("input '{}'", name));
  }
}

void RunFacts::set_value(ValueId v, DType dtype, const std::vector<int64_t>& shape, const ir::Tensor* host) {
  unify(v, shape, fmt::format("value {}", v));
  hosts_[static_cast<size_t>(v)] = host;
  facts_[static_cast<size_t>(v)] = Fact{{dtype, ir::to_shape(shape)}, host, {}};
}

void RunFacts::set_host(ValueId v, const ir::Tensor* host) {
  hosts_[static_cast<size_t>(v)] = host;
  if (facts_[static_cast<size_t>(v)]) facts_[static_cast<size_t>(v)]->constant = host;
}

const Fact& RunFacts::fact(ValueId v) {
  std::optional<Fact>& slot = facts_[static_cast<size_t>(v)];
  if (!slot) slot = infer(v);
  return *slot;
}

Fact RunFacts::infer(ValueId v) {
  const ir::Value& value = graph_.value(v);
  Fact fact;
  fact.type.dtype = value.type.dtype;
  if (value.constant) fact.constant = &*value.constant;
  if (value.constant || all_bound(value.type.shape, bindings_)) {
    fact.type.shape = evaluated(value.type.shape, bindings_);
    if (!value.known || all_bound(*value.known, bindings_)) {
      if (value.known) fact.known = evaluated(*value.known, bindings_);
      if (value.known || value.producer < 0 || !may_be_shape(value)) return fact;
    }
  }
  const bool has_shape =
      fact.type.shape.size() == value.type.shape.size() && all_bound(value.type.shape, bindings_);
  if (value.producer < 0) throw Error(Code::kInternal, fmt::format("value {} has no known shape", v));
  const ir::Node& node = graph_.nodes[static_cast<size_t>(value.producer)];
  if (ir::op_class(node.op) == ir::OpClass::kControl) {
    if (fact.type.shape.size() == value.type.shape.size()) return fact;
    throw Error(Code::kInternal, "shape of a control operator's result is asked before it ran");
  }
  std::vector<const Fact*> operands;
  for (ValueId operand : node.inputs)
    operands.push_back(operand == ir::kNoValue ? nullptr : &this->fact(operand));
  std::vector<Fact> results;
  try {
    results = ir::infer_node(node, operands, [&](const std::string& hint) -> Dim {
      throw Error(Code::kInternal,
                  fmt::format("extent '{}' is decided by data that the host does not have yet", hint));
    });
  } catch (const Error&) {
    if (has_shape) return fact;  // only the value was asked for, and it is data
    throw;
  }
  for (size_t o = 0; o < node.outputs.size(); ++o) {
    if (node.outputs[o] == ir::kNoValue) continue;
    unify(node.outputs[o], ir::static_shape(results[o].type.shape), fmt::format("value {}", node.outputs[o]));
    if (node.outputs[o] == v) fact = results[o];
  }
  return fact;
}

std::vector<int64_t> RunFacts::shape(ValueId v) { return ir::static_shape(fact(v).type.shape); }

std::optional<std::vector<int64_t>> RunFacts::ints(ValueId v) {
  const Fact& f = fact(v);
  if (f.known) return ir::static_shape(*f.known);
  const ir::Tensor* tensor = f.constant ? f.constant : hosts_[static_cast<size_t>(v)];
  if (!tensor || !(is_integer(tensor->dtype()) || tensor->dtype() == DType::kBool)) return std::nullopt;
  std::vector<int64_t> values;
  for (int64_t i = 0; i < tensor->size(); ++i) values.push_back(tensor->as_int(i));
  return values;
}

}  // namespace thrice::exec
