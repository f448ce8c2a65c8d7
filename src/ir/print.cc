// ir/check.h: print.
#include <fmt/format.h>

#include "ir/check.h"

namespace thrice::ir {
namespace {

std::string type_str(const Type& type) {
  return fmt::format("{}{}", dtype_name(type.dtype), shape_str(type.shape));
}

std::string value_str(ValueId id) { return id == kNoValue ? "_" : fmt::format("%{}", id); }

std::string list_str(const std::vector<ValueId>& ids) {
  std::string text;
  for (size_t i = 0; i < ids.size(); ++i) text += (i ? ", " : "") + value_str(ids[i]);
  return text;
}

template <class T>
std::string numbers_str(const std::vector<T>& values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) text += fmt::format("{}{}", i ? "," : "", values[i]);
  return text + "]";
}

std::string attr_str(const Attribute& attr) {
  if (const auto* i = std::get_if<int64_t>(&attr)) return fmt::format("{}", *i);
  if (const auto* d = std::get_if<double>(&attr)) return fmt::format("{}", *d);
  if (const auto* s = std::get_if<std::string>(&attr)) return fmt::format("\"{}\"", *s);
  if (const auto* v = std::get_if<std::vector<int64_t>>(&attr)) return numbers_str(*v);
  return numbers_str(std::get<std::vector<double>>(attr));
}

// Contents of a constant where they fit a line.
std::string content_str(const Tensor& t) {
  constexpr int64_t kShown = 8;
  if (t.size() > kShown || t.dtype() == DType::kString) return "";
  std::string text = " {";
  for (int64_t i = 0; i < t.size(); ++i) {
    if (i) text += ", ";
    text += is_float(t.dtype()) ? fmt::format("{}", t.as_double(i)) : fmt::format("{}", t.as_int(i));
  }
  return text + "}";
}

void print_graph(const Graph& graph, const std::string& indent, std::string& out) {
  out += fmt::format("{}graph(", indent);
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    out +=
        fmt::format("{}%{}: {}", i ? ", " : "", graph.inputs[i], type_str(graph.value(graph.inputs[i]).type));
  out += ")\n";
  for (size_t i = 0; i < graph.values.size(); ++i)
    if (const auto& constant = graph.values[i].constant)
      out += fmt::format("{}  %{} = constant{} : {}\n", indent, i, content_str(*constant),
                         type_str(graph.values[i].type));
  for (const Node& node : graph.nodes) {
    out += fmt::format("{}  {} = {}({})", indent, list_str(node.outputs), op_name(node.op),
                       list_str(node.inputs));
    if (!node.attrs.empty()) {
      out += " {";
      bool first = true;
      for (const auto& [key, attr] : node.attrs) {
        out += fmt::format("{}{}={}", first ? "" : ", ", key, attr_str(attr));
        first = false;
      }
      out += "}";
    }
    out += " : ";
    for (size_t o = 0; o < node.outputs.size(); ++o)
      out +=
          (o ? ", " : "") + (node.outputs[o] == kNoValue ? "_" : type_str(graph.value(node.outputs[o]).type));
    out += "\n";
    for (const auto& body : node.bodies) print_graph(*body, indent + "    ", out);
  }
  out += fmt::format("{}  return {}\n", indent, list_str(graph.outputs));
}

}  // namespace

std::string print(const Graph& graph) {
  std::string out;
  print_graph(graph, "", out);
  return out;
}

}  // namespace thrice::ir
