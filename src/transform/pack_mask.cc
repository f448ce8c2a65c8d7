#include "transform/pack_mask.h"

#include <thrice/status.h>

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "ir/evaluate.h"
#include "transform/rewrite.h"

namespace thrice::transform {

using ir::Graph;
using ir::Node;
using ir::Op;
using ir::ValueId;

namespace {

constexpr int kMasks = 3;  // random ones for each batch and length

// The part of the graph that makes `value`.
Graph part_behind(const Graph& graph, ValueId value) {
  Graph part;
  part.values = graph.values;
  part.inputs = graph.inputs;
  part.input_names = graph.input_names;
  part.nodes = graph.nodes;
  part.origins = graph.origins;
  part.outputs = {value};
  remove_dead(part);
  compact(part);  // weights that it does not read
  return part;
}

ir::ArrayPtr zeros(const Graph& graph, const PackSizes& sizes, ValueId value, size_t probe) {
  return ir::to_array(ir::Tensor(graph.value(value).type.dtype, sizes.of(value, probe)));
}

double element(const ir::Array& array, size_t i) {
  return array.f.empty() ? static_cast<double>(array.i[i]) : array.f[i];
}

// What is seen of one reading of the mask.
struct Reading {
  bool padding = false, causal = false, ok = true;
  double shown = std::nan(""), low = INFINITY, high = -INFINITY;
  void see(bool allowed, double v) {
    if (std::isnan(v)) ok = false;
    if (!allowed) {
      low = std::min(low, v);
      high = std::max(high, v);
    } else if (std::isnan(shown)) {
      shown = v;
    } else if (!(v == shown)) {
      ok = false;
    }
  }
  std::optional<PackMask> result() const {
    if (!ok || std::isnan(shown) || low > high) return std::nullopt;
    if (high < shown) return PackMask{shown, high, padding, causal};
    if (low > shown) return PackMask{shown, low, padding, causal};
    return std::nullopt;
  }
};

}  // namespace

std::vector<ValueId> inputs_behind(const Graph& graph, ValueId value) {
  std::vector<ValueId> found, waiting{value};
  std::vector<bool> seen(graph.values.size(), false);
  while (!waiting.empty()) {
    const ValueId v = waiting.back();
    waiting.pop_back();
    if (v == ir::kNoValue || seen[static_cast<size_t>(v)]) continue;
    seen[static_cast<size_t>(v)] = true;
    if (std::find(graph.inputs.begin(), graph.inputs.end(), v) != graph.inputs.end()) found.push_back(v);
    const ir::NodeId n = graph.value(v).producer;
    if (n < 0 || graph.nodes[static_cast<size_t>(n)].op == Op::shape) continue;
    const Node& node = graph.nodes[static_cast<size_t>(n)];
    waiting.insert(waiting.end(), node.inputs.begin(), node.inputs.end());
  }
  return found;
}

std::optional<PackMask> mask_meaning(const Graph& graph, const PackSizes& sizes, ValueId mask, ValueId value,
                                     const PackAxes& axes) {
  for (const ValueId input : inputs_behind(graph, value))
    if (input != mask) return std::nullopt;
  const DType dtype = graph.value(value).type.dtype;
  if (dtype == DType::kString) return std::nullopt;
  const Graph part = part_behind(graph, value);
  std::vector<Reading> readings{{true, false}, {true, true}, {false, true}};
  if (axes.keys < 0) readings.resize(1);
  Rng random(8);
  for (size_t p = 0; p < PackSizes::kProbes; ++p)
    for (int draw = 0; draw < kMasks; ++draw) {
      const int64_t length = sizes.length(p);
      ir::Tensor flags(graph.value(mask).type.dtype, {sizes.batch(p), length});
      flags.mutable_data();
      for (int64_t i = 0; i < flags.size(); ++i)
        flags.set(i, random.below(3) > 0 || i % length == draw % length ? 1 : 0);
      std::vector<ir::ArrayPtr> inputs;
      for (const ValueId input : graph.inputs)
        inputs.push_back(input == mask ? ir::to_array(flags) : zeros(graph, sizes, input, p));
      ir::ArrayPtr result;
      try {
        result = ir::evaluate_graph(part, inputs)[0];
      } catch (const Error&) {
        return std::nullopt;
      }
      const std::vector<int64_t>& shape = result->shape;
      std::vector<int64_t> at(shape.size(), 0);
      const auto index = [&](int axis, int64_t count) {  // -1: the value is the same there
        if (count == 1) return int64_t{0};
        return axis < 0 || shape[static_cast<size_t>(axis)] == 1 ? int64_t{-1}
                                                                 : at[static_cast<size_t>(axis)];
      };
      for (int64_t i = 0; i < result->size(); ++i) {
        int64_t rest = i;
        for (size_t a = shape.size(); a-- > 0; rest /= shape[a]) at[a] = rest % shape[a];
        const int64_t q = index(axes.tokens, length), k = index(axes.keys, length);
        int64_t b = index(axes.batch, sizes.batch(p) * axes.inner);
        if (b > 0) b /= axes.inner;
        const int64_t position = axes.keys < 0 ? q : k;
        // Values that do not change with the batch or the position are no padding mask.
        const bool shows = b >= 0 && position >= 0 && flags.as_int(b * length + position) != 0;
        if (axes.keys >= 0 && b >= 0 && q >= 0 && flags.as_int(b * length + q) == 0) continue;
        for (Reading& r : readings)
          r.see((!r.padding || shows) && (!r.causal || (q >= 0 && k <= q)),
                element(*result, static_cast<size_t>(i)));
      }
    }
  for (const Reading& r : readings)
    if (auto found = r.result()) return found;
  return std::nullopt;
}

}  // namespace thrice::transform
