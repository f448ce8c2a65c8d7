#include "transform/pack_mask.h"

#include <thrice/status.h>

#include <algorithm>
#include <cmath>
#include <set>

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
    if (high < shown) return PackMask{shown, high, padding, causal, low == high};
    if (low > shown) return PackMask{shown, low, padding, causal, low == high};
    return std::nullopt;
  }
};

// What a mask is looked at with: a part of a graph, and how positions lie in its result.
struct Look {
  const Graph& graph;
  const Graph& part;
  ValueId mask;
  const PackAxes& axes;
};

// Adds one drawn mask of sizes.batch(p) sequences to what is seen. Throws what the evaluation does.
void see(const Look& look, const PackSizes& sizes, size_t p, int draw, Rng& random,
         std::vector<Reading>& readings) {
  const PackAxes& axes = look.axes;
  const int64_t length = sizes.length(p);
  ir::Tensor flags(look.graph.value(look.mask).type.dtype, {sizes.batch(p), length});
  flags.mutable_data();
  for (int64_t i = 0; i < flags.size(); ++i)
    flags.set(i, random.below(3) > 0 || i % length == draw % length ? 1 : 0);
  std::vector<ir::ArrayPtr> inputs;
  for (const ValueId input : look.graph.inputs)
    inputs.push_back(input == look.mask ? ir::to_array(flags) : zeros(look.graph, sizes, input, p));
  const ir::ArrayPtr result = ir::evaluate_graph(look.part, inputs)[0];
  const std::vector<int64_t>& shape = result->shape;
  std::vector<int64_t> at(shape.size(), 0);
  const auto index = [&](int axis, int64_t count) {  // -1: the value is the same there
    if (count == 1) return int64_t{0};
    return axis < 0 || shape[static_cast<size_t>(axis)] == 1 ? int64_t{-1} : at[static_cast<size_t>(axis)];
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

// Lengths at which what the part's numbers say would show: a window of W positions beyond W, a table of so
// many positions at its end. Ascending; nullopt where one is too long to look at.
std::optional<std::set<int64_t>> telling_lengths(const Graph& part) {
  constexpr int64_t kMost = 2048, kNoPosition = 1 << 20;  // ends of slices and the like are no positions
  std::set<int64_t> lengths;
  for (const ir::Value& value : part.values) {
    if (!value.constant || value.constant->dtype() == DType::kString) continue;
    const ir::Tensor& tensor = *value.constant;
    if (tensor.size() > 16) {
      for (const int64_t extent : tensor.shape())
        if (extent > 16 && extent <= kMost) lengths.insert(extent);
      continue;
    }
    for (int64_t i = 0; i < tensor.size(); ++i) {
      const double v = std::abs(tensor.as_double(i));
      // What hides is a float far from zero; a number of positions may be a float too.
      const bool hides = is_float(tensor.dtype()) && v > kMost;
      if (!(v > 3 && v < kNoPosition) || hides) continue;
      if (v > kMost) return std::nullopt;
      lengths.insert(static_cast<int64_t>(v) + 3);
    }
  }
  return lengths;
}

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
  const Look look{graph, part, mask, axes};
  std::vector<Reading> readings{{true, false}, {true, true}, {false, true}};
  if (axes.keys < 0) readings.resize(1);
  const auto is_none = [&] {
    return std::none_of(readings.begin(), readings.end(), [](const Reading& r) { return r.result(); });
  };
  Rng random(8);
  try {
    for (size_t p = 0; p < PackSizes::kProbes; ++p)
      for (int draw = 0; draw < kMasks; ++draw) see(look, sizes, p, draw, random, readings);
  } catch (const Error&) {
    return std::nullopt;
  }
  if (is_none()) return std::nullopt;
  const auto lengths = telling_lengths(part);
  if (!lengths) return std::nullopt;
  for (const int64_t length : *lengths) try {
      see(look, PackSizes(graph, mask, 1, length), 0, 0, random, readings);
    } catch (const Error&) {
      // longer than the model takes
    }
  for (const Reading& r : readings)
    if (auto found = r.result()) return found;
  return std::nullopt;
}

}  // namespace thrice::transform
