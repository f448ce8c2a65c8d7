#include "plan/region_signature.h"

#include <cstring>

#include "base/hash.h"
#include "ir/dim.h"

namespace thrice::plan {

using ir::Graph;
using ir::NodeId;
using ir::ValueId;

namespace {

uint64_t half(const Hasher& hasher) {
  const Digest digest = hasher.digest();
  uint64_t word = 0;
  std::memcpy(&word, digest.data(), sizeof word);
  return word;
}

uint64_t class_of(const ir::Node& node) {
  Hasher hasher;
  hasher.add(ir::op_name(node.op));
  hasher.add(static_cast<int64_t>(node.inputs.size()));
  hasher.add(static_cast<int64_t>(node.outputs.size()));
  for (const auto& [key, attribute] : node.attrs) {
    hasher.add(key);
    hasher.add(static_cast<int64_t>(attribute.index()));
    std::visit(
        [&](const auto& value) {
          using Value = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<Value, std::string>)
            hasher.add(std::string_view(value));
          else if constexpr (std::is_same_v<Value, int64_t> || std::is_same_v<Value, double>)
            hasher.add(std::as_bytes(std::span(&value, 1)));
          else {
            hasher.add(static_cast<int64_t>(value.size()));
            hasher.add(std::as_bytes(std::span(value)));
          }
        },
        attribute);
  }
  return half(hasher);
}

// Two words that grow along a sequence.
struct Mixer {
  uint64_t a = 0x243f6a8885a308d3ull, b = 0x13198a2e03707344ull;
  void add(uint64_t word) {
    a = (a ^ word) * 0xff51afd7ed558ccdull;
    a ^= a >> 29;
    b = (b + word) * 0xc4ceb9fe1a85ec53ull;
    b ^= (b >> 31) ^ a;
  }
};

}  // namespace

RegionSignatures::RegionSignatures(const Graph& graph)
    : graph_(graph),
      readers_(ir::consumers(graph)),
      is_output_(graph.values.size(), 0),
      node_place_(graph.nodes.size(), -1),
      value_place_(graph.values.size(), -1) {
  for (const ValueId v : graph.outputs) is_output_[static_cast<size_t>(v)] = 1;
  for (const ir::Node& node : graph.nodes) node_class_.push_back(class_of(node));
  for (size_t v = 0; v < graph.values.size(); ++v)
    value_class_.push_back(value_class(static_cast<ValueId>(v)));
}

uint64_t RegionSignatures::value_class(ValueId v) const {
  const ir::Value& value = graph_.value(v);
  Hasher hasher;
  hasher.add(static_cast<int64_t>(value.type.dtype));
  hasher.add(std::string_view(ir::shape_str(value.type.shape)));
  hasher.add(value.known ? static_cast<int64_t>(value.known->size()) : -1);
  if (value.known)
    for (const ir::Dim& dim : *value.known) hasher.add(std::string_view(dim.str()));
  hasher.add(static_cast<int64_t>(value.constant.has_value()));
  if (value.constant) {
    // What may enter a workload as a value, and not as a buffer: numbers, and shapes and indices.
    const bool is_float = thrice::is_float(value.type.dtype);
    const bool is_large = value.constant->bytes() > 4096;
    if (value.constant->size() == 1 || (!is_float && !is_large))
      hasher.add(std::span(value.constant->data(), value.constant->bytes()));
    else if (!is_float)
      hasher.add(static_cast<int64_t>(v));
  }
  return half(hasher);
}

Signature RegionSignatures::of(const std::vector<NodeId>& nodes) {
  Mixer mixer;
  std::vector<ValueId> seen;
  for (size_t i = 0; i < nodes.size(); ++i)
    node_place_[static_cast<size_t>(nodes[i])] = static_cast<int32_t>(i);
  for (const NodeId n : nodes) {
    const ir::Node& node = graph_.nodes[static_cast<size_t>(n)];
    mixer.add(node_class_[static_cast<size_t>(n)]);
    for (const ValueId v : node.inputs) {
      if (v == ir::kNoValue) {
        mixer.add(1);
        continue;
      }
      int32_t& place = value_place_[static_cast<size_t>(v)];
      if (place < 0) {  // from outside, first seen
        place = static_cast<int32_t>(seen.size());
        seen.push_back(v);
        mixer.add(value_class_[static_cast<size_t>(v)]);
      }
      mixer.add(static_cast<uint64_t>(place) + 2);
    }
    for (const ValueId v : node.outputs) {
      if (v == ir::kNoValue) {
        mixer.add(1);
        continue;
      }
      bool leaves = is_output_[static_cast<size_t>(v)];
      for (const NodeId reader : readers_[static_cast<size_t>(v)])
        leaves = leaves || node_place_[static_cast<size_t>(reader)] < 0;
      value_place_[static_cast<size_t>(v)] = static_cast<int32_t>(seen.size());
      seen.push_back(v);
      mixer.add(value_class_[static_cast<size_t>(v)] ^ (leaves ? 0x5bd1e995u : 0u));
    }
  }
  for (const NodeId n : nodes) node_place_[static_cast<size_t>(n)] = -1;
  for (const ValueId v : seen) value_place_[static_cast<size_t>(v)] = -1;
  return {mixer.a, mixer.b};
}

}  // namespace thrice::plan
