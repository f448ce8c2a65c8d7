#include "frontend/onnx/node_context.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include "frontend/onnx/graph_builder.h"
#include "frontend/onnx/model.h"

namespace thrice::frontend::onnx {
namespace {

const char* kind_name(ModelAttribute::Kind kind) {
  constexpr const char* kNames[] = {
      "nothing", "float",   "int",    "string",        "tensor",         "graph", "floats", "ints",
      "strings", "tensors", "graphs", "sparse tensor", "sparse tensors", "type",  "types"};
  return kNames[kind];
}

std::string title(const NodeContext& ctx) {
  const auto& node = ctx.node();
  return fmt::format("{}{}{} (opset {}, node '{}')", node.domain, node.domain.empty() ? "" : ".",
                     node.op_type, ctx.opset(), node.label());
}

const ModelAttribute* find_attr(const NodeContext& ctx, const std::string& name, ModelAttribute::Kind kind) {
  const ModelAttribute* attribute = ctx.node().find(name);
  if (attribute != nullptr && attribute->kind != kind) {
    ctx.invalid(
        fmt::format("attribute '{}' is {}, not {}", name, kind_name(attribute->kind), kind_name(kind)));
  }
  return attribute;
}

const ModelAttribute& get_attr(const NodeContext& ctx, const std::string& name, ModelAttribute::Kind kind) {
  const ModelAttribute* attribute = find_attr(ctx, name, kind);
  if (attribute == nullptr) ctx.invalid(fmt::format("attribute '{}' is missing", name));
  return *attribute;
}

}  // namespace

NodeContext::NodeContext(GraphBuilder& builder, const ModelNode& node, int64_t opset)
    : builder_(builder), node_(node), opset_(opset) {}

const std::string& NodeContext::op_type() const { return node_.op_type; }
size_t NodeContext::num_inputs() const { return node_.inputs.size(); }
size_t NodeContext::num_outputs() const { return node_.outputs.size(); }
bool NodeContext::has_input(size_t i) const { return optional_input(i) != ir::kNoValue; }

ValueId NodeContext::input(size_t i) const {
  const ValueId value = optional_input(i);
  if (value == ir::kNoValue) invalid(fmt::format("input {} is missing", i));
  return value;
}

ValueId NodeContext::optional_input(size_t i) const {
  if (i >= node_.inputs.size() || node_.inputs[i].empty()) return ir::kNoValue;
  return builder_.resolve(node_.inputs[i]);
}

bool NodeContext::wants_output(size_t i) const {
  return i < node_.outputs.size() && !node_.outputs[i].empty();
}

void NodeContext::set_output(size_t i, ValueId value) {
  if (wants_output(i)) builder_.define(node_.outputs[i], value);
}

bool NodeContext::has_attr(const std::string& name) const { return node_.find(name) != nullptr; }
int64_t NodeContext::int_attr(const std::string& name) const {
  return get_attr(*this, name, ModelAttribute::kInt).i;
}
int64_t NodeContext::int_attr(const std::string& name, int64_t otherwise) const {
  const auto* attribute = find_attr(*this, name, ModelAttribute::kInt);
  return attribute != nullptr ? attribute->i : otherwise;
}
double NodeContext::float_attr(const std::string& name, double otherwise) const {
  const auto* attribute = find_attr(*this, name, ModelAttribute::kFloat);
  return attribute != nullptr ? attribute->f : otherwise;
}
std::string NodeContext::string_attr(const std::string& name, const std::string& otherwise) const {
  const auto* attribute = find_attr(*this, name, ModelAttribute::kString);
  return attribute != nullptr ? attribute->s : otherwise;
}
std::vector<int64_t> NodeContext::ints_attr(const std::string& name,
                                            const std::vector<int64_t>& otherwise) const {
  const auto* attribute = find_attr(*this, name, ModelAttribute::kInts);
  return attribute != nullptr ? attribute->ints : otherwise;
}
std::vector<double> NodeContext::floats_attr(const std::string& name) const {
  return get_attr(*this, name, ModelAttribute::kFloats).floats;
}
std::vector<std::string> NodeContext::strings_attr(const std::string& name) const {
  return get_attr(*this, name, ModelAttribute::kStrings).strings;
}
Tensor NodeContext::tensor_attr(const std::string& name) const {
  const ModelAttribute* attribute = node_.find(name);
  if (attribute == nullptr) invalid(fmt::format("attribute '{}' is missing", name));
  if (attribute->kind != ModelAttribute::kTensor && attribute->kind != ModelAttribute::kSparseTensor) {
    invalid(fmt::format("attribute '{}' is {}, not a tensor", name, kind_name(attribute->kind)));
  }
  if (attribute->tensor.stripped)
    invalid(fmt::format("attribute '{}' was stripped; give --random-weights SEED", name));
  return attribute->tensor.tensor;
}

ValueId NodeContext::emit(Op op, const std::vector<ValueId>& inputs, Attributes attrs) {
  return builder_.emit(op, inputs, 1, std::move(attrs))[0];
}
std::vector<ValueId> NodeContext::emit_many(Op op, const std::vector<ValueId>& inputs, size_t num_outputs,
                                            Attributes attrs) {
  return builder_.emit(op, inputs, num_outputs, std::move(attrs));
}
ValueId NodeContext::constant(Tensor tensor) { return builder_.constant(std::move(tensor)); }
ValueId NodeContext::scalar(DType dtype, double value) { return constant(Tensor::scalar(dtype, value)); }
ValueId NodeContext::ints(const std::vector<int64_t>& values) { return constant(Tensor::ints(values)); }
ValueId NodeContext::dims(const std::vector<Dim>& values) { return builder_.dims(values); }

const ir::Type& NodeContext::type(ValueId value) const { return builder_.type(value); }
Dim NodeContext::dim(ValueId value, int64_t at) const {
  return type(value).shape[static_cast<size_t>(axis(value, at))];
}
int64_t NodeContext::axis(ValueId value, int64_t at) const {
  const int64_t all = rank(value);
  if (at < -all || at >= all) invalid(fmt::format("axis {} is outside a value of rank {}", at, all));
  return at < 0 ? at + all : at;
}
const Tensor* NodeContext::constant_value(ValueId value) const { return builder_.constant_value(value); }
std::optional<std::vector<Dim>> NodeContext::known(ValueId value) const {
  return builder_.graph().value(value).known;
}
std::optional<std::vector<int64_t>> NodeContext::known_ints(ValueId value) const {
  const auto& held = builder_.graph().value(value);
  std::vector<int64_t> numbers;
  if (held.constant && (is_integer(held.constant->dtype()) || held.constant->dtype() == DType::kBool)) {
    for (int64_t i = 0; i < held.constant->size(); ++i) numbers.push_back(held.constant->as_int(i));
    return numbers;
  }
  if (!held.known) return std::nullopt;
  for (const auto& element : *held.known) {
    if (!element.is_const()) return std::nullopt;
    numbers.push_back(element.value());
  }
  return numbers;
}
std::vector<int64_t> NodeContext::structural_ints(size_t input_index) const {
  const ValueId value = input(input_index);
  if (auto numbers = known_ints(value)) return *numbers;
  const std::string& name = node_.inputs[input_index];
  refuse(fmt::format(
      "input {} ('{}') decides the graph's structure and must be constant; give it with --const {}=VALUES "
      "where it is an input of the model, or export the model with a constant there",
      input_index, name, name));
}

void NodeContext::refuse(const std::string& reason) const {
  throw Error(Code::kUnsupported, fmt::format("{}: {}", title(*this), reason));
}
void NodeContext::invalid(const std::string& reason) const {
  throw Error(Code::kInvalidModel, fmt::format("{}: {}", title(*this), reason));
}

}  // namespace thrice::frontend::onnx
