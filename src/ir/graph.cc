#include "ir/graph.h"

#include <fmt/format.h>
#include <thrice/status.h>

namespace thrice::ir {
namespace {

template <class T>
const T* find_attr(const Node& node, const std::string& key) {
  const auto it = node.attrs.find(key);
  if (it == node.attrs.end()) return nullptr;
  const T* value = std::get_if<T>(&it->second);
  if (!value)
    throw Error(Code::kInternal, fmt::format("{}: attribute '{}' has another kind", op_name(node.op), key));
  return value;
}

template <class T>
const T& get_attr(const Node& node, const std::string& key) {
  const T* value = find_attr<T>(node, key);
  if (!value)
    throw Error(Code::kInternal, fmt::format("{}: attribute '{}' is absent", op_name(node.op), key));
  return *value;
}

}  // namespace

int64_t Node::int_attr(const std::string& key) const { return get_attr<int64_t>(*this, key); }

int64_t Node::int_attr(const std::string& key, int64_t otherwise) const {
  const int64_t* value = find_attr<int64_t>(*this, key);
  return value ? *value : otherwise;
}

double Node::float_attr(const std::string& key, double otherwise) const {
  const double* value = find_attr<double>(*this, key);
  return value ? *value : otherwise;
}

std::string Node::string_attr(const std::string& key, const std::string& otherwise) const {
  const std::string* value = find_attr<std::string>(*this, key);
  return value ? *value : otherwise;
}

const std::vector<int64_t>& Node::ints_attr(const std::string& key) const {
  return get_attr<std::vector<int64_t>>(*this, key);
}

ValueId Graph::add_value(Type type, std::string name) {
  Value value;
  value.type = std::move(type);
  value.name = std::move(name);
  values.push_back(std::move(value));
  return static_cast<ValueId>(values.size() - 1);
}

ValueId Graph::add_constant(Tensor tensor, std::string name) {
  const ValueId id = add_value({tensor.dtype(), to_shape(tensor.shape())}, std::move(name));
  const bool integer = is_integer(tensor.dtype()) || tensor.dtype() == DType::kBool;
  if (integer && tensor.size() <= kMaxKnown) {
    std::vector<Dim> known;
    for (int64_t i = 0; i < tensor.size(); ++i) known.emplace_back(tensor.as_int(i));
    value(id).known = std::move(known);
  }
  value(id).constant = std::move(tensor);
  return id;
}

NodeId Graph::add_node(Node node) {
  const auto id = static_cast<NodeId>(nodes.size());
  for (ValueId output : node.outputs)
    if (output != kNoValue) value(output).producer = id;
  nodes.push_back(std::move(node));
  return id;
}

std::vector<std::vector<NodeId>> consumers(const Graph& graph) {
  std::vector<std::vector<NodeId>> result(graph.values.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (ValueId input : graph.nodes[n].inputs) {
      if (input == kNoValue) continue;
      auto& list = result[static_cast<size_t>(input)];
      if (list.empty() || list.back() != static_cast<NodeId>(n)) list.push_back(static_cast<NodeId>(n));
    }
  }
  return result;
}

}  // namespace thrice::ir
