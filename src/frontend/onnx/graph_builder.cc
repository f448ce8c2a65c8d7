#include "frontend/onnx/graph_builder.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include "frontend/onnx/import_state.h"
#include "ir/evaluate.h"

namespace thrice::frontend::onnx {
namespace {

// Folded while importing, so that shape arithmetic on constants and small tables is known to structural
// operands. Larger constants are the fold pass's business.
constexpr int64_t kMaxFoldedElements = 1024;

}  // namespace

GraphBuilder::GraphBuilder(GraphBuilder& outer)
    : state_(outer.state_), outer_(&outer), current_origin_(outer.current_origin_) {}

const ir::Type& GraphBuilder::type(ValueId value) const {
  if (value < 0) throw Error(Code::kInternal, "the type of an absent value was asked for");
  while (types_.size() <= static_cast<size_t>(value)) types_.push_back(graph_.values[types_.size()].type);
  return types_[static_cast<size_t>(value)];
}

const Tensor* GraphBuilder::constant_value(ValueId value) const {
  const auto& constant = graph_.value(value).constant;
  return constant ? &constants_.emplace(value, *constant).first->second : nullptr;
}

ValueId GraphBuilder::register_value(ValueId value) {
  const auto& shape = graph_.value(value).type.shape;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (!shape[axis].is_const()) extents_.emplace(shape[axis], std::pair(value, static_cast<int64_t>(axis)));
  }
  return value;
}

ValueId GraphBuilder::add_input(ir::Type type, const std::string& name) {
  const ValueId value = graph_.add_value(std::move(type), name);
  graph_.inputs.push_back(value);
  graph_.input_names.push_back(name);
  return register_value(value);
}

ValueId GraphBuilder::constant(Tensor tensor, const std::string& name) {
  return graph_.add_constant(std::move(tensor), name);
}

ValueId GraphBuilder::capture(ValueId outer) {
  if (outer_ == nullptr || outer == ir::kNoValue) return outer;
  const auto [at, added] = captured_as_.emplace(outer, ir::kNoValue);
  if (!added) return at->second;
  const ir::Value& value = outer_->graph_.value(outer);
  if (value.constant) return at->second = constant(*value.constant, value.name);
  const ValueId inner = graph_.add_value(value.type, value.name);
  graph_.value(inner).known = value.known;
  captured_.push_back(outer);
  captured_as_[outer] = inner;
  return register_value(inner);
}

Dim GraphBuilder::fresh_symbol(const std::string& hint) {
  std::string name = hint;
  while (!state_.symbols.insert(name).second) name = fmt::format("{}#{}", hint, ++state_.num_symbols);
  return Dim::symbol(name);
}

void GraphBuilder::set_origin(ir::Origin origin) {
  current_origin_ = std::move(origin);
  origin_added_ = false;
}

bool GraphBuilder::fold(const ir::Node& node, const std::vector<ir::Fact>& results,
                        std::vector<ValueId>& outputs) {
  if (node.inputs.empty() || node.op == Op::random || node.op == Op::host_function) return false;
  if (ir::op_class(node.op) == ir::OpClass::kControl) return false;
  for (const ValueId input : node.inputs) {
    if (input == ir::kNoValue) continue;
    const auto& constant = graph_.value(input).constant;
    if (!constant || constant->size() > kMaxFoldedElements) return false;
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const auto& result = results[i];
    if (!ir::is_static(result.type.shape)) return false;
    if (ir::num_elements(ir::static_shape(result.type.shape)) > kMaxFoldedElements) return false;
  }
  std::vector<ir::ArrayPtr> operands;
  for (const ValueId input : node.inputs) {
    operands.push_back(input == ir::kNoValue ? nullptr : ir::to_array(*graph_.value(input).constant));
  }
  const auto arrays = ir::evaluate_node(node, operands);
  for (size_t i = 0; i < node.outputs.size(); ++i) outputs.push_back(constant(ir::to_tensor(*arrays.at(i))));
  return true;
}

std::vector<ir::Fact> GraphBuilder::infer(const ir::Node& node) {
  std::vector<ir::Fact> facts(node.inputs.size());
  std::vector<const ir::Fact*> operands(node.inputs.size(), nullptr);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == ir::kNoValue) continue;
    const ir::Value& value = graph_.value(node.inputs[i]);
    facts[i] = {value.type, value.constant ? &*value.constant : nullptr, value.known};
    operands[i] = &facts[i];
  }
  return ir::infer_node(node, operands, [this](const std::string& hint) { return fresh_symbol(hint); });
}

std::vector<ValueId> GraphBuilder::emit(Op op, const std::vector<ValueId>& inputs, size_t num_outputs,
                                        Attributes attrs) {
  ir::Node node;
  node.op = op;
  node.inputs = inputs;
  node.attrs = std::move(attrs);
  return emit_node(std::move(node), num_outputs);
}

std::vector<ValueId> GraphBuilder::emit_node(ir::Node node, size_t num_outputs, bool may_fold) {
  node.outputs.assign(num_outputs, 0);  // all are wanted as far as inference is concerned
  const auto results = infer(node);
  if (results.size() < num_outputs) {
    throw Error(Code::kInternal, fmt::format("{} has {} results, {} were asked for", ir::op_name(node.op),
                                             results.size(), num_outputs));
  }
  std::vector<ValueId> outputs;
  if (may_fold && fold(node, results, outputs)) return outputs;
  for (size_t i = 0; i < num_outputs; ++i) {
    const ValueId value = graph_.add_value(results[i].type);
    graph_.value(value).known = results[i].known;
    outputs.push_back(value);
  }
  if (!origin_added_) {
    graph_.origins.push_back(current_origin_);
    origin_added_ = true;
  }
  node.outputs = outputs;
  node.origin = static_cast<int32_t>(graph_.origins.size()) - 1;
  graph_.add_node(std::move(node));
  for (const ValueId output : outputs) register_value(output);
  return outputs;
}

std::optional<std::pair<ValueId, int64_t>> GraphBuilder::find_extent(const Dim& dim) {
  if (const auto found = extents_.find(dim); found != extents_.end()) return found->second;
  if (outer_ == nullptr) return std::nullopt;
  const auto outside = outer_->find_extent(dim);
  if (!outside) return std::nullopt;
  return std::pair(capture(outside->first), outside->second);
}

ValueId GraphBuilder::scalar_of_atom(const Dim::Atom& atom) {
  if (atom.kind == ir::AtomKind::kSymbol) {
    throw Error(Code::kInternal, fmt::format("no value has an extent that gives '{}'", atom.name));
  }
  const ValueId a = scalar_of(atom.a), b = scalar_of(atom.b);
  switch (atom.kind) {
    case ir::AtomKind::kMax:
      return emit(Op::max, {a, b}, 1)[0];
    case ir::AtomKind::kMin:
      return emit(Op::min, {a, b}, 1)[0];
    case ir::AtomKind::kBroadcast: {
      const ValueId is_one = emit(Op::equal, {b, constant(Tensor::ints({1}))}, 1)[0];
      return emit(Op::where, {is_one, a, b}, 1)[0];
    }
    default: {  // `div` truncates; taking the remainder off first makes the division exact
      const ValueId rest = emit(Op::mod, {a, b}, 1)[0];
      return emit(Op::div, {emit(Op::sub, {a, rest}, 1)[0], b}, 1)[0];
    }
  }
}

ValueId GraphBuilder::scalar_of(const Dim& dim) {
  if (dim.is_const()) return constant(Tensor::ints({dim.value()}));
  if (const auto found = find_extent(dim)) {
    return emit(Op::shape, {found->first}, 1, {{"start", found->second}, {"end", found->second + 1}})[0];
  }
  ValueId sum = ir::kNoValue;
  for (const auto& [monomial, factor] : dim.terms()) {
    ValueId product = ir::kNoValue;
    for (const auto& atom : monomial) {
      const auto found =
          atom->kind == ir::AtomKind::kSymbol ? find_extent(Dim::symbol(atom->name)) : std::nullopt;
      const ValueId part = found ? emit(Op::shape, {found->first}, 1,
                                        {{"start", found->second}, {"end", found->second + 1}})[0]
                                 : scalar_of_atom(*atom);
      product = product == ir::kNoValue ? part : emit(Op::mul, {product, part}, 1)[0];
    }
    if (product == ir::kNoValue) {
      product = constant(Tensor::ints({factor}));
    } else if (factor != 1) {
      product = emit(Op::mul, {product, constant(Tensor::ints({factor}))}, 1)[0];
    }
    sum = sum == ir::kNoValue ? product : emit(Op::add, {sum, product}, 1)[0];
  }
  return sum;
}

ValueId GraphBuilder::dims(const std::vector<Dim>& values) {
  std::vector<int64_t> numbers;
  for (const auto& value : values) {
    if (value.is_const()) numbers.push_back(value.value());
  }
  if (numbers.size() == values.size()) return constant(Tensor::ints(numbers));
  std::vector<ValueId> parts;
  for (size_t i = 0; i < values.size(); ++i) parts.push_back(scalar_of(values[i]));
  const ValueId result = parts.size() == 1 ? parts[0] : emit(Op::concat, parts, 1, {{"axis", int64_t{0}}})[0];
  graph_.value(result).known = values;  // exact, where inference of the pieces may have lost a simplification
  return result;
}

void GraphBuilder::push_scope(bool function) { scopes_.push_back({{}, function}); }
void GraphBuilder::pop_scope() { scopes_.pop_back(); }
void GraphBuilder::define(const std::string& name, ValueId value) {
  scopes_.back().names[name] = value;
  if (value >= 0 && graph_.value(value).name.empty()) graph_.value(value).name = name;
}

ValueId GraphBuilder::resolve(const std::string& name) {
  for (size_t i = scopes_.size(); i-- > 0;) {
    const auto& scope = scopes_[i];
    if (const auto found = scope.names.find(name); found != scope.names.end()) {
      if (found->second == kRefusedValue) throw RefusedOperand{};
      return found->second;
    }
    if (scope.hides_outer)
      throw Error(Code::kInvalidModel, fmt::format("'{}' is not defined in the function", name));
  }
  if (outer_ == nullptr) throw Error(Code::kInvalidModel, fmt::format("'{}' is not defined", name));
  return capture(outer_->resolve(name));
}

}  // namespace thrice::frontend::onnx
