// Writes ONNX files for tests, byte by byte from the public field numbers, so that a wrong number in our
// schema shows.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace thrice::tests {

inline std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  return out + static_cast<char>(value);
}
inline std::string number(int field, int64_t value) {
  return varint(static_cast<uint64_t>(field) << 3) + varint(static_cast<uint64_t>(value));
}
inline std::string text(int field, const std::string& value) {
  return varint((static_cast<uint64_t>(field) << 3) | 2) + varint(value.size()) + value;
}
template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// TensorProto body: type number, extents, raw data.
inline std::string tensor(const std::string& name, int type, const std::vector<int64_t>& dims,
                          const std::string& data) {
  std::string out;
  for (const int64_t d : dims) out += number(1, d);
  return out + number(2, type) + text(8, name) + text(9, data);
}
inline std::string floats(const std::string& name, const std::vector<int64_t>& dims,
                          const std::vector<float>& values) {
  return tensor(name, 1, dims, raw(values));
}
inline std::string int64s(const std::string& name, const std::vector<int64_t>& dims,
                          const std::vector<int64_t>& values) {
  return tensor(name, 7, dims, raw(values));
}
inline std::string external(const std::string& name, int type, const std::vector<int64_t>& dims,
                            const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string out;
  for (const int64_t d : dims) out += number(1, d);
  out += number(2, type) + text(8, name);
  for (const auto& [key, value] : entries) out += text(13, text(1, key) + text(2, value));
  return out + number(14, 1);
}

// ValueInfoProto: an extent that is a number is written as one, other texts as symbols, "?" as unknown.
inline std::string value(const std::string& name, int type, const std::vector<std::string>& dims) {
  std::string shape;
  for (const auto& d : dims) {
    std::string dim;
    if (d != "?")
      dim = d.find_first_not_of("-0123456789") == std::string::npos ? number(1, std::stoll(d)) : text(2, d);
    shape += text(1, dim);
  }
  return text(1, name) + text(2, text(1, number(1, type) + text(2, shape)));
}

inline std::string int_attr(const std::string& name, int64_t value) {
  return text(5, text(1, name) + number(3, value) + number(20, 2));
}
inline std::string ints_attr(const std::string& name, const std::vector<int64_t>& values) {
  std::string out = text(1, name);
  for (const int64_t v : values) out += number(8, v);
  return text(5, out + number(20, 7));
}
inline std::string tensor_attr(const std::string& name, const std::string& body) {
  return text(5, text(1, name) + text(5, body) + number(20, 4));
}
inline std::string graph_attr(const std::string& name, const std::string& body) {
  return text(5, text(1, name) + text(6, body) + number(20, 5));
}
inline std::string reference_attr(const std::string& name, const std::string& of, int kind) {
  return text(5, text(1, name) + number(20, kind) + text(21, of));
}

// NodeProto body; `attributes` are results of *_attr.
inline std::string node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, const std::string& attributes = "",
                        const std::string& domain = "", const std::string& name = "") {
  std::string out;
  for (const auto& i : inputs) out += text(1, i);
  for (const auto& o : outputs) out += text(2, o);
  if (!name.empty()) out += text(3, name);
  out += text(4, op) + attributes;
  if (!domain.empty()) out += text(7, domain);
  return out;
}

struct GraphParts {
  std::vector<std::string> nodes, initializers, inputs, outputs;
};
inline std::string graph(const GraphParts& parts) {
  std::string out = text(2, "g");
  for (const auto& n : parts.nodes) out += text(1, n);
  for (const auto& t : parts.initializers) out += text(5, t);
  for (const auto& v : parts.inputs) out += text(11, v);
  for (const auto& v : parts.outputs) out += text(12, v);
  return out;
}
inline std::string opset(const std::string& domain, int64_t version) {
  return (domain.empty() ? "" : text(1, domain)) + number(2, version);
}
// `functions` are FunctionProto bodies.
inline std::string model(const std::string& graph_body, int64_t version = 17,
                         const std::vector<std::string>& functions = {}) {
  std::string out =
      number(1, 9) + text(8, opset("", version)) + text(8, opset("local", 1)) + text(7, graph_body);
  for (const auto& f : functions) out += text(25, f);
  return out;
}
inline std::string model(const GraphParts& parts, int64_t version = 17) {
  return model(graph(parts), version);
}

}  // namespace thrice::tests
