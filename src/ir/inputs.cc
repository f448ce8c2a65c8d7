#include "ir/inputs.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/rng.h"
#include "ir/delta_rule.h"
#include "ir/evaluate_threads.h"
#include "ir/infer.h"
#include "ir/normals.h"

namespace thrice::ir {
namespace {

constexpr int64_t kBlock = 256;  // elements drawn at once

// Student's t with three degrees of freedom.
double heavy_tail(double x, double a, double b, double c) {
  return x / std::sqrt((a * a + b * b + c * c) / 3 + 1e-12);
}

double largest_finite(DType dtype) { return round_to(dtype, std::numeric_limits<double>::max(), true); }

double edge_value(DType dtype, Rng& random) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double largest = std::isfinite(largest_finite(dtype)) ? largest_finite(dtype) : 65504.0;
  switch (random.below(20)) {
    case 0:
      return 0.0;
    case 1:
      return -0.0;
    case 2:
      return dtype == DType::kF16 ? 0x1p-24 : 0x1p-140;  // denormal (zero where the type has none so small)
    case 3:
      return dtype == DType::kF16 ? -0x1p-15 : -0x1p-127;
    case 4:
      return largest;
    case 5:
      return -largest;
    case 6:
      return kInf;
    case 7:
      return -kInf;
    case 8:
      return std::numeric_limits<double>::quiet_NaN();
    case 9:
      return 1.0;
    case 10:
      return -1.0;
    case 11:
      return 0.5;  // ties of round
    case 12:
      return -1.5;
    default:
      return random.normal();
  }
}

// The next `n` floats (at most kBlock), each with as many numbers of the generator as draws_of says.
void draw_block(DType dtype, InputKind kind, Rng& random, int64_t low, int64_t high, int64_t n, double* to) {
  static thread_local double u[4 * kBlock], v[4 * kBlock], w[4 * kBlock];
  switch (kind) {
    case InputKind::kSmallIntegers:
      for (int64_t i = 0; i < n; ++i)
        to[i] = static_cast<double>(low) +
                static_cast<double>(random.below(static_cast<size_t>(std::max<int64_t>(high - low, 1))));
      return;
    case InputKind::kNormal:
      for (int64_t i = 0; i < n; ++i) u[i] = random.uniform(), v[i] = random.uniform();
      return normals(n, u, v, to);
    case InputKind::kUniform:
      for (int64_t i = 0; i < n; ++i) to[i] = random.uniform();
      return;
    case InputKind::kHeavyTail:
      for (int64_t i = 0; i < 4 * n; ++i) u[i] = random.uniform(), v[i] = random.uniform();
      normals(4 * n, u, v, w);
      for (int64_t i = 0; i < n; ++i) to[i] = heavy_tail(w[4 * i], w[4 * i + 1], w[4 * i + 2], w[4 * i + 3]);
      return;
    case InputKind::kWideRange:
      for (int64_t i = 0; i < n; ++i) {
        const double magnitude = std::exp2(24 * random.uniform() - 12);
        to[i] = random.next() & 1 ? -magnitude : magnitude;
      }
      return;
    case InputKind::kOutliers: {
      double factor[kBlock];
      for (int64_t i = 0; i < n; ++i) {
        u[i] = random.uniform(), v[i] = random.uniform();
        factor[i] = random.below(1024) == 0 ? 0x1p20 : 1.0;
      }
      normals(n, u, v, to);
      for (int64_t i = 0; i < n; ++i) to[i] *= factor[i];
      return;
    }
    case InputKind::kEdgeValues:
      for (int64_t i = 0; i < n; ++i) to[i] = edge_value(dtype, random);
      return;
    case InputKind::kPositive:
      for (int64_t i = 0; i < n; ++i) to[i] = 1 + random.uniform();
      return;
  }
}

// Numbers that one element takes of the generator; 0 = that depends on what it draws.
uint64_t draws_of(InputKind kind, int64_t low, int64_t high) {
  switch (kind) {
    case InputKind::kSmallIntegers:
      return high - low < 2 ? 0 : 1;
    case InputKind::kUniform:
    case InputKind::kPositive:
      return 1;
    case InputKind::kNormal:
    case InputKind::kWideRange:
      return 2;
    case InputKind::kOutliers:
      return 3;
    case InputKind::kHeavyTail:
      return 8;
    case InputKind::kEdgeValues:
      break;
  }
  return 0;
}

// What the uses of a graph input ask of its values.
struct Demands {
  bool index = false, shape = false, mask = false, positive = false;
  bool offsets = false;                                  // rising from 0 to `extent`
  bool window_begin = false, window_end = false;         // keys of a row's own sequence, below `extent`
  int64_t extent = std::numeric_limits<int64_t>::max();  // smallest axis that is indexed
};

class Demand {
 public:
  Demand(const Graph& graph, const Bindings& bindings)
      : graph_(graph), bindings_(bindings), users_(consumers(graph)) {}

  Demands of(ValueId input) {
    Demands d;
    std::vector<bool> seen(graph_.values.size(), false);
    follow(input, d, seen, 0);
    return d;
  }

 private:
  // Extent of an axis at the bindings; 1 where it depends on data, so that only index 0 is drawn.
  int64_t extent_of(ValueId v, size_t axis) const {
    const Shape& shape = graph_.value(v).type.shape;
    if (axis >= shape.size()) return 1;
    for (const std::string& name : shape[axis].symbols())
      if (bindings_.count(name) == 0) return 1;
    return shape[axis].evaluate(bindings_);
  }

  void indexes(const Node& node, Demands& d) const {
    d.index = true;
    const ValueId x = node.inputs[0];
    if (node.op == Op::gather_nd || node.op == Op::scatter_nd) {
      const auto batch = static_cast<size_t>(node.op == Op::gather_nd ? node.int_attr("batch_dims", 0) : 0);
      const Shape& indices = graph_.value(node.inputs[1]).type.shape;
      const int64_t depth = indices.empty() ? 0 : extent_of(node.inputs[1], indices.size() - 1);
      for (int64_t k = 0; k < depth; ++k)
        d.extent = std::min(d.extent, extent_of(x, batch + static_cast<size_t>(k)));
      return;
    }
    d.extent = std::min(d.extent, extent_of(x, static_cast<size_t>(node.int_attr("axis", 0))));
  }

  void follow(ValueId v, Demands& d, std::vector<bool>& seen, int depth) {
    if (v == kNoValue || seen[static_cast<size_t>(v)] || depth > 200) return;
    seen[static_cast<size_t>(v)] = true;
    for (NodeId n : users_[static_cast<size_t>(v)]) {
      const Node& node = graph_.nodes[static_cast<size_t>(n)];
      for (size_t i = 0; i < node.inputs.size(); ++i)
        if (node.inputs[i] == v) use(node, i, d, seen, depth);
    }
  }

  void use(const Node& node, size_t i, Demands& d, std::vector<bool>& seen, int depth) {
    const DType dtype = graph_.value(node.inputs[i]).type.dtype;
    if (is_shape_operand(node, i)) d.shape = true;
    switch (node.op) {
      case Op::gather:
      case Op::gather_elements:
      case Op::gather_nd:
      case Op::scatter_elements:
      case Op::scatter_nd:
        if (i == 1) return indexes(node, d);
        if (node.op == Op::gather || node.op == Op::gather_elements || node.op == Op::gather_nd) break;
        return;
      case Op::loop:
        if (i == 0) d.shape = true;
        return;
      case Op::roi_align:
        if (i == 2) {
          d.index = true;
          d.extent = std::min(d.extent, extent_of(node.inputs[0], 0));
        }
        return;
      case Op::scan_sum:
        if (is_delta_rule(node) && i == kDeltaRuleOffsets) {
          d.offsets = true;
          d.extent = extent_of(node.inputs[0], 1);
        }
        return;
      case Op::greater_equal:
      case Op::less: {
        const NodeId counts = graph_.value(node.inputs[0]).producer;
        if (i != 1 || counts < 0 || graph_.nodes[static_cast<size_t>(counts)].op != Op::iota) return;
        const auto axis = static_cast<size_t>(graph_.nodes[static_cast<size_t>(counts)].int_attr("axis", 0));
        (node.op == Op::less ? d.window_end : d.window_begin) = true;
        d.extent = extent_of(node.inputs[0], axis);
        return;
      }
      case Op::sqrt:
      case Op::rsqrt:
      case Op::log:
        d.positive = true;
        return;
      case Op::cast: {
        const auto to = static_cast<DType>(node.int_attr("to"));
        if ((dtype == DType::kI32 || dtype == DType::kI64) && (is_float(to) || to == DType::kBool))
          d.mask = true;
        if (is_float(dtype) != is_float(to)) return;
        break;
      }
      case Op::add:
      case Op::where:
      case Op::identity:
        break;
      default:
        if (op_class(node.op) != OpClass::kView || node.op == Op::iota) return;
    }
    for (ValueId out : node.outputs) follow(out, d, seen, depth + 1);
  }

  const Graph& graph_;
  const Bindings& bindings_;
  const std::vector<std::vector<NodeId>> users_;
};

// Cumulative lengths from any integers in [0, end]; sequences without a token among them.
void make_offsets(Tensor& tensor, int64_t end) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < tensor.size(); ++i) values.push_back(tensor.as_int(i));
  std::sort(values.begin(), values.end());
  if (!values.empty()) values.front() = 0, values.back() = end;
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set_int(i, values[static_cast<size_t>(i)]);
}

// First key of each row's sequence, or the one behind its last: the same sequences for the same seed.
void make_window(Tensor& tensor, int64_t extent, bool ends, uint64_t seed) {
  constexpr size_t kLongest = 256;
  Rng random(seed);
  tensor.mutable_data();
  for (int64_t begin = 0; begin < tensor.size();) {
    const auto longest = std::clamp<size_t>(static_cast<size_t>(extent / 2), 1, kLongest);
    const int64_t end = std::min(begin + 1 + static_cast<int64_t>(random.below(longest)), tensor.size());
    for (int64_t i = begin; i < end; ++i) tensor.set_int(i, std::min(ends ? end : begin, extent));
    begin = end;
  }
}

}  // namespace

Tensor padding_mask(DType dtype, const std::vector<int64_t>& shape, const std::vector<int64_t>& lengths) {
  Tensor mask(dtype, shape);
  mask.mutable_data();
  for (int64_t i = 0; i < mask.size(); ++i)
    mask.set(i, i % shape[1] < lengths[static_cast<size_t>(i / shape[1])] ? 1 : 0);
  return mask;
}

Tensor padding_mask(DType dtype, const std::vector<int64_t>& shape, uint64_t seed) {
  Rng random(seed);
  std::vector<int64_t> lengths;
  for (int64_t b = 0; b < shape[0]; ++b)
    lengths.push_back(
        1 + static_cast<int64_t>(random.below(static_cast<size_t>(std::max<int64_t>(shape[1], 1)))));
  return padding_mask(dtype, shape, lengths);
}

const char* input_kind_name(InputKind kind) {
  switch (kind) {
    case InputKind::kSmallIntegers:
      return "small_integers";
    case InputKind::kNormal:
      return "normal";
    case InputKind::kUniform:
      return "uniform";
    case InputKind::kHeavyTail:
      return "heavy_tail";
    case InputKind::kWideRange:
      return "wide_range";
    case InputKind::kOutliers:
      return "outliers";
    case InputKind::kEdgeValues:
      return "edge_values";
    case InputKind::kPositive:
      return "positive";
  }
  return "?";
}

Tensor make_input(DType dtype, const std::vector<int64_t>& shape, InputKind kind, uint64_t seed, int64_t low,
                  int64_t high) {
  constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;  // of the generator's state, a number
  const uint64_t start = seed * kStep + static_cast<uint64_t>(kind);
  Rng random(start);
  if (dtype == DType::kString) {
    std::vector<std::string> words(static_cast<size_t>(num_elements(shape)));
    for (std::string& word : words)
      for (size_t k = random.below(8); k > 0; --k) word += static_cast<char>('a' + random.below(26));
    return Tensor::strings(shape, std::move(words));
  }
  Tensor out(dtype, shape);
  out.mutable_data();
  if (is_float(dtype)) {
    // Finite kinds stay finite in narrow types: out of range becomes the largest value.
    const bool saturate = kind != InputKind::kEdgeValues;
    const auto draw = [&](Rng& from, int64_t begin, int64_t end) {
      double block[kBlock];
      for (int64_t at = begin; at < end; at += kBlock) {
        const int64_t n = std::min(kBlock, end - at);
        draw_block(dtype, kind, from, low, high, n, block);
        if (dtype == DType::kF32) {  // of these kinds none leaves its range
          float* to = reinterpret_cast<float*>(out.mutable_data()) + at;
          for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(block[i]);
          continue;
        }
        for (int64_t i = 0; i < n; ++i) {
          double v = round_to(dtype, block[i], saturate);
          if (saturate && !std::isfinite(v)) v = std::copysign(dtype == DType::kF16 ? 65504.0 : 1.0, v);
          out.set(at + i, v);
        }
      }
    };
    // Parts begin where the sequence would have been: the numbers do not depend on the cores.
    if (const uint64_t draws = draws_of(kind, low, high))
      parallel_for(out.size(), 8 * static_cast<int64_t>(draws), [&](int64_t begin, int64_t end) {
        Rng from(start + kStep * draws * static_cast<uint64_t>(begin));
        draw(from, begin, end);
      });
    else
      draw(random, 0, out.size());
    return out;
  }
  if (dtype == DType::kBool) low = 0, high = 2;
  if (is_unsigned_integer(dtype)) low = std::max<int64_t>(low, 0);
  const auto range = static_cast<size_t>(std::max<int64_t>(high - low, 1));
  for (int64_t i = 0; i < out.size(); ++i) out.set_int(i, low + static_cast<int64_t>(random.below(range)));
  return out;
}

std::vector<Tensor> make_inputs(const Graph& graph, const Bindings& bindings, InputKind kind, uint64_t seed) {
  Demand demand(graph, bindings);
  std::vector<Tensor> inputs;
  for (size_t k = 0; k < graph.inputs.size(); ++k) {
    const Value& value = graph.value(graph.inputs[k]);
    const DType dtype = value.type.dtype;
    std::vector<int64_t> shape;
    for (const Dim& extent : value.type.shape) shape.push_back(extent.evaluate(bindings));
    if (value.known && is_integer(dtype)) {
      std::vector<int64_t> numbers;
      for (const Dim& d : *value.known) numbers.push_back(d.evaluate(bindings));
      inputs.push_back(Tensor::of(dtype, shape, numbers));
      continue;
    }
    const uint64_t own_seed = seed * 1000003 + k;
    if (const auto packed = graph.metadata.find(kPackedMask);
        packed != graph.metadata.end() && shape.size() == 2 && packed->second == graph.input_names[k]) {
      inputs.push_back(padding_mask(dtype, shape, seed));
      continue;
    }
    const Demands d = demand.of(graph.inputs[k]);
    if (is_integer(dtype)) {
      int64_t low = -4, high = 5;
      if (d.mask) low = 0, high = 2;
      if (d.shape) low = 1, high = 5;
      if (d.index) low = d.shape ? 1 : 0, high = std::max<int64_t>(d.extent, low + 1);
      if (d.offsets) low = 0, high = d.extent + 1;
      inputs.push_back(make_input(dtype, shape, kind, own_seed, low, high));
      if (d.offsets) make_offsets(inputs.back(), d.extent);
      if (d.window_begin || d.window_end) make_window(inputs.back(), d.extent, d.window_end, seed);
      continue;
    }
    Tensor x = make_input(dtype, shape, kind, own_seed);
    if (is_float(dtype) && d.positive && kind != InputKind::kEdgeValues) {
      x.mutable_data();
      parallel_for(x.size(), 8, [&x](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) x.set(i, std::fabs(x.as_double(i)));
      });
    }
    inputs.push_back(std::move(x));
  }
  return inputs;
}

}  // namespace thrice::ir
