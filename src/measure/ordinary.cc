#include "measure/ordinary.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "ir/delta_rule.h"
#include "ir/evaluate_threads.h"

namespace thrice::measure {
namespace {

constexpr double kEps32 = 0x1p-23;
// Half an ulp a step, growing as the root of the number of steps: sequential float32 sums of uniform numbers
// measured 0.2 to 0.5 of eps * sqrt(terms) in norm and at the worst element.
constexpr double kErrorPerRoot = 0.5;
constexpr double kMostError = 5e-6;
// A delta rule on 16-bit operands: published kernels multiply by a state that is rounded to bf16, which costs
// 4.4e-3 of the last state (docs/kernels/delta_rule.md). Limits are about twice this number.
constexpr double kDeltaRuleError = 1.5e-3;

bool narrow_delta_rule(const ir::Node& node, const std::vector<ir::Fact>& facts) {
  return ir::is_delta_rule(node) && dtype_bytes(facts[static_cast<size_t>(node.inputs[0])].type.dtype) == 2;
}

int64_t elements(const ir::Fact& fact) {
  int64_t n = 1;
  for (const ir::Dim& d : fact.type.shape) n *= d.value();
  return n;
}

int64_t extent(const ir::Fact& fact, int64_t axis) {
  const auto rank = static_cast<int64_t>(fact.type.shape.size());
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank ? fact.type.shape[static_cast<size_t>(axis)].value() : 1;
}

bool sums(const ir::Node& node) {
  if (node.op != ir::Op::reduce && node.op != ir::Op::pool) return true;
  const std::string kind = node.string_attr("kind", "sum");
  return kind == "sum" || kind == "mean" || kind == "prod" || kind == "avg";
}

// Each element moved by `relative` of its size (or of the root mean square, where that is more: cancellation)
// with a random sign, then rounded.
ir::ArrayPtr with_error(const ir::Array& exact, double relative, uint64_t seed) {
  constexpr int64_t kPart = 16384, kWork = 16;  // each part has a sequence of signs of its own
  auto array = std::make_shared<ir::Array>(exact);
  const auto n = static_cast<int64_t>(array->f.size());
  const int64_t parts = (n + kPart - 1) / kPart;
  const auto each_part = [&](const auto& body) {
    ir::parallel_for(parts, kPart * kWork, [&](int64_t first, int64_t last) {
      for (int64_t p = first; p < last; ++p) body(p, p * kPart, std::min(n, (p + 1) * kPart));
    });
  };
  std::vector<double> squares(static_cast<size_t>(parts));
  each_part([&](int64_t p, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double x = array->f[static_cast<size_t>(i)];
      squares[static_cast<size_t>(p)] += std::isfinite(x) ? x * x : 0;
    }
  });
  double sum = 0;  // in the order of the parts, whatever thread took them
  for (const double part : squares) sum += part;
  const double size = n == 0 ? 0 : std::sqrt(sum / static_cast<double>(n));
  each_part([&](int64_t p, int64_t begin, int64_t end) {
    Rng sign(seed + 0x632be59bd9b4e019u * static_cast<uint64_t>(p));
    for (int64_t i = begin; i < end; ++i) {
      double& x = array->f[static_cast<size_t>(i)];
      if (relative > 0 && std::isfinite(x))
        x += (sign.next() & 1 ? relative : -relative) * std::max(size, std::fabs(x));
      x = round_to(array->dtype, x);
    }
  });
  return array;
}

}  // namespace

int64_t accumulated_terms(const ir::Node& node, const std::vector<ir::Fact>& facts) {
  const auto fact = [&](size_t i) -> const ir::Fact& { return facts[static_cast<size_t>(node.inputs[i])]; };
  switch (node.op) {
    case ir::Op::matmul:
      return extent(fact(0), node.int_attr("trans_a", 0) ? -2 : -1);
    case ir::Op::conv: {
      const int64_t outputs = extent(fact(1), 0);
      return outputs > 0 ? elements(fact(1)) / outputs : 1;
    }
    case ir::Op::conv_transpose: {
      const int64_t per_group = extent(fact(1), 1);
      return per_group > 0 ? elements(fact(1)) / per_group : 1;
    }
    case ir::Op::reduce:
    case ir::Op::pool: {
      if (!sums(node)) return 1;
      if (node.op == ir::Op::pool) {
        int64_t window = 1;
        for (int64_t k : node.ints_attr("kernel")) window *= k;
        return window;
      }
      int64_t terms = 1;
      for (int64_t axis : node.ints_attr("axes")) terms *= extent(fact(0), axis);
      return terms;
    }
    case ir::Op::scan_sum:
      // A sum over the depth a token, into a state that lives on.
      if (ir::is_delta_rule(node)) return extent(fact(0), 3) + extent(fact(0), 1);
      return extent(fact(0), node.int_attr("axis", 0));
    case ir::Op::scatter_elements:
    case ir::Op::scatter_nd: {
      if (node.string_attr("reduction", "none") == "none") return 1;
      return std::max<int64_t>(1, elements(fact(2)));
    }
    default:
      return 1;
  }
}

std::vector<ir::ArrayPtr> evaluate_ordinary(const ir::Graph& graph, const std::vector<ir::ArrayPtr>& inputs,
                                            const std::vector<ir::Fact>& facts,
                                            const std::vector<ir::ArrayPtr>& exact) {
  std::vector<ir::ArrayPtr> values(graph.values.size());
  std::vector<uint8_t> is_exact(graph.values.size(), 0);  // the same as in float64
  const auto set = [&](ir::ValueId id, ir::ArrayPtr array, bool same) {
    values[static_cast<size_t>(id)] = std::move(array);
    is_exact[static_cast<size_t>(id)] = same;
  };
  for (size_t v = 0; v < graph.values.size(); ++v)
    if (graph.values[v].constant)
      set(static_cast<ir::ValueId>(v), ir::to_array(*graph.values[v].constant), true);
  for (size_t i = 0; i < graph.inputs.size(); ++i) set(graph.inputs[i], inputs[i], true);
  uint64_t seed = 1;
  for (const ir::Node& node : graph.nodes) {
    bool same = true;
    std::vector<ir::ArrayPtr> operands;
    for (ir::ValueId id : node.inputs) {
      operands.push_back(id == ir::kNoValue ? nullptr : values[static_cast<size_t>(id)]);
      same = same && (id == ir::kNoValue || is_exact[static_cast<size_t>(id)]);
    }
    bool known = same && !exact.empty();
    for (ir::ValueId id : node.outputs)
      known = known && (id == ir::kNoValue || exact[static_cast<size_t>(id)]);
    const std::vector<ir::ArrayPtr> results =
        known ? std::vector<ir::ArrayPtr>() : ir::evaluate_node(node, operands);
    const double terms = static_cast<double>(accumulated_terms(node, facts));
    double relative = terms > 1 ? std::min(kErrorPerRoot * kEps32 * std::sqrt(terms), kMostError) : 0;
    if (narrow_delta_rule(node, facts)) relative = kDeltaRuleError;
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      const ir::ValueId id = node.outputs[o];
      if (id == ir::kNoValue) continue;
      const ir::ArrayPtr& result = known ? exact[static_cast<size_t>(id)] : results[o];
      if (!is_float(result->dtype) || result->dtype == DType::kF64)
        set(id, result, same);
      else
        set(id, with_error(*result, relative, seed++), false);
    }
  }
  std::vector<ir::ArrayPtr> outputs;
  for (ir::ValueId id : graph.outputs) outputs.push_back(values[static_cast<size_t>(id)]);
  return outputs;
}

}  // namespace thrice::measure
