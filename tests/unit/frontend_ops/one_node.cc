// One-node models for the tests of this folder; no test of its own.
#include "unit/frontend_ops/one_node.h"

#include <algorithm>

#include "frontend/onnx/tensor_decode.h"

namespace thrice::test {
namespace {

template <class List>
bool holds(const List& list, size_t i) {
  return std::find(list.begin(), list.end(), i) != list.end();
}

void set_attribute(onnx_format::NodeProto& node, const std::string& name, const ir::Attribute& value) {
  auto& attribute = *node.add_attribute();
  attribute.set_name(name);
  if (const auto* i = std::get_if<int64_t>(&value)) {
    attribute.set_i(*i);
    attribute.set_type(2);
  } else if (const auto* f = std::get_if<double>(&value)) {
    attribute.set_f(static_cast<float>(*f));
    attribute.set_type(1);
  } else if (const auto* s = std::get_if<std::string>(&value)) {
    attribute.set_s(*s);
    attribute.set_type(3);
  } else if (const auto* ints = std::get_if<std::vector<int64_t>>(&value)) {
    for (int64_t i : *ints) attribute.add_ints(i);
    attribute.set_type(7);
  } else {
    for (double f : std::get<std::vector<double>>(value)) attribute.add_floats(static_cast<float>(f));
    attribute.set_type(6);
  }
}

}  // namespace

ir::Graph OneNode::import() const {
  onnx_format::ModelProto model;
  model.set_ir_version(8);
  auto& version = *model.add_opset_import();
  version.set_version(domain.empty() ? opset : 17);
  if (!domain.empty()) {
    auto& own = *model.add_opset_import();
    own.set_domain(domain);
    own.set_version(opset);
  }
  auto& graph = *model.mutable_graph();
  graph.set_name("one");
  auto& node = *graph.add_node();
  node.set_op_type(op_type);
  node.set_domain(domain);
  for (const auto& [name, value] : attributes) set_attribute(node, name, value);
  for (const auto& [name, list] : string_lists) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(8);
    for (const std::string& text : list) attribute.add_strings(text);
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::string name = "x" + std::to_string(i);
    node.add_input(holds(absent, i) ? "" : name);
    if (holds(absent, i)) continue;
    const ir::Tensor& tensor = operands[i];
    if (holds(constants, i)) {
      auto& initializer = *graph.add_initializer();
      initializer.set_name(name);
      initializer.set_data_type(frontend::onnx::onnx_dtype(tensor.dtype()));
      for (int64_t extent : tensor.shape()) initializer.add_dims(extent);
      initializer.set_raw_data(tensor.data(), tensor.bytes());
      continue;
    }
    auto& input = *graph.add_input();
    input.set_name(name);
    auto& type = *input.mutable_type()->mutable_tensor_type();
    type.set_elem_type(frontend::onnx::onnx_dtype(tensor.dtype()));
    auto& shape = *type.mutable_shape();
    for (size_t axis = 0; axis < tensor.shape().size(); ++axis) {
      auto& extent = *shape.add_dim();
      const auto found = symbols.find(i);
      if (found != symbols.end() && !found->second.at(axis).empty())
        extent.set_dim_param(found->second.at(axis));
      else
        extent.set_dim_value(tensor.shape()[axis]);
    }
  }
  for (size_t i = 0; i < results; ++i) {
    node.add_output("y" + std::to_string(i));
    graph.add_output()->set_name("y" + std::to_string(i));
  }
  const std::string bytes = model.SerializeAsString();
  return frontend::import_model_bytes(std::as_bytes(std::span(bytes.data(), bytes.size())), "");
}

std::vector<ir::Tensor> OneNode::run() const {
  const ir::Graph graph = import();
  std::vector<ir::ArrayPtr> arrays;
  for (const std::string& name : graph.input_names)
    arrays.push_back(ir::to_array(operands.at(std::stoul(name.substr(1)))));
  std::vector<ir::Tensor> tensors;
  for (const ir::ArrayPtr& result : ir::evaluate_graph(graph, arrays))
    tensors.push_back(ir::to_tensor(*result));
  return tensors;
}

std::vector<double> OneNode::values(size_t result) const {
  const ir::Tensor tensor = run().at(result);
  std::vector<double> numbers;
  for (int64_t i = 0; i < tensor.size(); ++i) numbers.push_back(tensor.as_double(i));
  return numbers;
}

ir::Tensor floats(std::vector<int64_t> shape, const std::vector<double>& values) {
  return ir::Tensor::of(DType::kF32, std::move(shape), values);
}

ir::Tensor f64s(std::vector<int64_t> shape, const std::vector<double>& values) {
  return ir::Tensor::of(DType::kF64, std::move(shape), values);
}

ir::Tensor random_f64(std::vector<int64_t> shape, uint64_t seed) {
  std::vector<double> values(static_cast<size_t>(ir::num_elements(shape)));
  uint64_t state = seed * 2654435761u + 1;
  for (double& value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = static_cast<double>(state >> 33) / 1073741824.0 - 1.0;
  }
  return f64s(std::move(shape), values);
}

}  // namespace thrice::test
