#include <cmath>

#include "transform/canonicalize.h"
#include "transform/rewrite.h"

namespace thrice::transform {
namespace {

using ir::Graph;
using ir::kNoValue;
using ir::Node;
using ir::NodeId;
using ir::Op;
using ir::ValueId;

// A constant as one number per channel, where it is a scalar or varies along axis 1 only.
std::vector<double> per_channel(const ir::Tensor& tensor, size_t rank, int64_t channels) {
  const auto& shape = tensor.shape();
  if (shape.size() > rank) return {};
  for (size_t i = 0; i < shape.size(); ++i) {
    const size_t axis = rank - shape.size() + i;
    if (shape[i] != 1 && (axis != 1 || shape[i] != channels)) return {};
  }
  std::vector<double> values(static_cast<size_t>(channels));
  for (int64_t c = 0; c < channels; ++c)
    values[static_cast<size_t>(c)] = tensor.as_double(tensor.size() == 1 ? 0 : c);
  return values;
}

// y = conv * scale + shift so far.
struct Affine {
  std::vector<double> scale, shift;

  bool absorb(const Node& node, const std::vector<double>& c, bool constant_first) {
    for (size_t i = 0; i < scale.size(); ++i) {
      switch (node.op) {
        case Op::mul:
          scale[i] *= c[i], shift[i] *= c[i];
          break;
        case Op::div:
          if (constant_first) return false;
          scale[i] /= c[i], shift[i] /= c[i];
          break;
        case Op::add:
          shift[i] += c[i];
          break;
        case Op::sub:
          if (constant_first) scale[i] = -scale[i], shift[i] = -shift[i];
          shift[i] += constant_first ? c[i] : -c[i];
          break;
        default:
          return false;
      }
      // A zero would hide Inf and NaN of the convolution; weights that overflow would invent them.
      if (!std::isfinite(scale[i]) || !std::isfinite(shift[i]) || scale[i] == 0) return false;
    }
    return true;
  }
};

struct Chain {
  Affine affine;
  ValueId result = kNoValue;  // last value of the chain
  int64_t length = 0;
};

Chain follow(const Graph& graph, const Node& conv, int64_t channels,
             const std::vector<std::vector<NodeId>>& readers) {
  Chain chain;
  chain.affine.scale.assign(static_cast<size_t>(channels), 1);
  chain.affine.shift.assign(static_cast<size_t>(channels), 0);
  ValueId at = conv.outputs[0];
  const ir::Type& type = graph.value(at).type;
  while (!is_output(graph, at) && readers[static_cast<size_t>(at)].size() == 1) {
    const Node& next = graph.nodes[static_cast<size_t>(readers[static_cast<size_t>(at)][0])];
    if (next.inputs.size() != 2 || next.outputs.size() != 1 || next.inputs[0] == next.inputs[1]) break;
    const bool constant_first = next.inputs[1] == at;
    const ir::Tensor* constant = constant_of(graph, next.inputs[constant_first ? 0 : 1]);
    if (constant == nullptr || !(graph.value(next.outputs[0]).type == type)) break;
    const auto values = per_channel(*constant, type.shape.size(), channels);
    if (values.empty()) break;
    Affine tried = chain.affine;
    if (!tried.absorb(next, values, constant_first)) break;
    chain.affine = std::move(tried);
    at = next.outputs[0];
    ++chain.length;
  }
  chain.result = at;
  return chain;
}

}  // namespace

int64_t fold_conv_scale(Graph& graph) {
  const auto readers = ir::consumers(graph);
  int64_t changes = 0;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].op != Op::conv) continue;
    Node conv = graph.nodes[n];
    const ir::Tensor* weight = constant_of(graph, conv.inputs[1]);
    const bool has_bias = conv.inputs.size() > 2 && conv.inputs[2] != kNoValue;
    const ir::Tensor* bias = has_bias ? constant_of(graph, conv.inputs[2]) : nullptr;
    if (weight == nullptr || (has_bias && bias == nullptr)) continue;
    if (weight->dtype() != DType::kF32 && weight->dtype() != DType::kF64)
      continue;  // narrower types would round twice
    const int64_t channels = weight->shape()[0];
    if (channels == 0) continue;
    const Chain chain = follow(graph, conv, channels, readers);
    if (chain.length == 0) continue;
    ir::Tensor new_weight(weight->dtype(), weight->shape()), new_bias(weight->dtype(), {channels});
    new_weight.mutable_data();
    new_bias.mutable_data();
    const int64_t each = weight->size() / channels;
    for (int64_t c = 0; c < channels; ++c) {
      const double scale = chain.affine.scale[static_cast<size_t>(c)];
      for (int64_t i = c * each; i < (c + 1) * each; ++i) new_weight.set(i, weight->as_double(i) * scale);
      new_bias.set(
          c, (bias != nullptr ? bias->as_double(c) * scale : 0) + chain.affine.shift[static_cast<size_t>(c)]);
    }
    // The convolution moves to the place of the chain's last node, whose result it now gives; operands stand
    // before it.
    const NodeId last = graph.value(chain.result).producer;
    conv.inputs.resize(3, kNoValue);
    conv.inputs[1] = graph.add_constant(std::move(new_weight), graph.value(conv.inputs[1]).name);
    conv.inputs[2] = graph.add_constant(std::move(new_bias));
    conv.outputs = {chain.result};
    graph.nodes[static_cast<size_t>(last)] = std::move(conv);
    changes += chain.length;
  }
  return changes;
}

}  // namespace thrice::transform
