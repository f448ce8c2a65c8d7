#include "ir/element_bound.h"

#include <thrice/status.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/evaluate_groups.h"
#include "ir/evaluate_threads.h"
#include "ir/infer.h"

namespace thrice::ir {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kProduct = 1e-5;                      // of |A||B|
constexpr double kRounding = 4, kTranscendental = 16;  // units of roundoff of arithmetic, of exp and its like

struct Precision {
  double unit;   // relative error of one rounding
  double floor;  // absolute error near zero: denormals may be flushed
};

Precision precision_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return {0x1p-53, 0x1p-1022};
    case DType::kF32:
      return {0x1p-24, 0x1p-126};
    case DType::kF16:
      return {0x1p-11, 0x1p-24};
    case DType::kBF16:
      return {0x1p-8, 0x1p-126};
    default:
      return {kInfinity, kInfinity};
  }
}

constexpr int64_t kCheap = 2, kCostly = 20;  // scalar operations of one element, for the choice of threads

// f(i) for each element.
template <class F>
void for_elements(const std::vector<double>& of, int64_t cost, F f) {
  parallel_for(static_cast<int64_t>(of.size()), cost, [&f](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) f(i);
  });
}

// Bound of one value. Exact: no error at all. None: nothing is known.
struct Bound {
  enum class Kind { kExact, kElements, kNone } kind = Kind::kExact;
  ArrayPtr e;  // kElements: an array of the value's shape and dtype
};

Bound none() { return {Bound::Kind::kNone, nullptr}; }

class Analysis {
 public:
  Analysis(const Node& node, const Operands& operands, const Results& results,
           const std::vector<const Bound*>& bounds)
      : node_(node), x_(operands), y_(*results[0]), bounds_(bounds), p_(precision_of(results[0]->dtype)) {}

  Bound run() {
    if (node_.op == Op::shape) return {};  // extents do not depend on elements
    for (size_t i = 0; i < x_.size(); ++i) {
      if (bounds_[i] == nullptr || bounds_[i]->kind == Bound::Kind::kExact) continue;
      // Attention blocks ask is_nan of their scores: where every error is finite, so is the answer known.
      if (node_.op == Op::is_nan && all_finite(bounds_[i])) return {};
      // A data operand that only selects (condition, indices, shapes) must be exact.
      if (bounds_[i]->kind == Bound::Kind::kNone || !lives_in_f(x_[i]->dtype)) return none();
      exact_ = false;
    }
    if (!lives_in_f(y_.dtype)) return exact_ ? Bound{} : none();
    switch (node_.op) {
      case Op::matmul:
      case Op::conv:
      case Op::conv_transpose:
        return product();
      case Op::reduce:
        return reduction();
      case Op::pool:
        return node_.string_attr("kind", "max") == "max" ? same_on_errors() : linear();
      case Op::scan_sum:
        return node_.string_attr("kind", "sum") == "sum" ? linear() : none();
      case Op::resize:
        return node_.string_attr("mode", "nearest") == "cubic"     ? none()
               : node_.string_attr("mode", "nearest") == "nearest" ? same_on_errors()
                                                                   : linear();
      case Op::scatter_elements:
      case Op::scatter_nd:
        return node_.string_attr("reduction", "none") == "none" ? same_on_errors() : none();
      default:
        break;
    }
    if (op_class(node_.op) == OpClass::kView || node_.op == Op::identity || node_.op == Op::where)
      return exact_ ? Bound{} : same_on_errors();
    if (op_class(node_.op) == OpClass::kUnary) return unary();
    if (op_class(node_.op) == OpClass::kBinary) return binary();
    return exact_ && op_class(node_.op) == OpClass::kHost ? Bound{} : none();
  }

 private:
  static bool all_finite(const Bound* b) {
    return b->kind == Bound::Kind::kElements &&
           std::all_of(b->e->f.begin(), b->e->f.end(), [](double v) { return std::isfinite(v); });
  }
  ArrayPtr error_of(size_t i) const {
    if (bounds_[i] != nullptr && bounds_[i]->kind == Bound::Kind::kElements) return bounds_[i]->e;
    return make_array(x_[i]->dtype, x_[i]->shape);
  }
  bool has_error(size_t i) const {
    return bounds_[i] != nullptr && bounds_[i]->kind == Bound::Kind::kElements;
  }
  // |x|: itself where nothing in it is negative.
  static ArrayPtr magnitude(const ArrayPtr& x) {
    const bool is_it = std::all_of(x->f.begin(), x->f.end(), [](double v) { return v >= 0; });
    return is_it ? x : magnitude(*x);
  }
  static ArrayPtr magnitude(const Array& x) {
    auto out = make_array(x.dtype, x.shape);
    for_elements(out->f, kCheap, [&](size_t i) { out->f[i] = std::fabs(x.f[i]); });
    return out;
  }
  ArrayPtr evaluated(const Operands& operands) const { return evaluate_node(node_, operands)[0]; }

  // A maximum over nothing is -Inf: such a result is exact.
  static Bound not_negative(const ArrayPtr& e) {
    auto out = make_array(e->dtype, e->shape);
    for_elements(out->f, kCheap, [&](size_t i) {
      const double v = e->f[i];
      out->f[i] = v > 0 ? v : v == v ? 0 : kInfinity;
    });
    return {Bound::Kind::kElements, out};
  }

  // Adds rounding of the result and the floor; unknown becomes "no bound".
  template <class F>
  Bound finish_each(F error, double units, int64_t cost = kCheap) const {
    auto out = make_array(y_.dtype, y_.shape);
    for_elements(out->f, cost, [&](size_t i) {
      const double v = error(i) + units * p_.unit * std::fabs(y_.f[i]) + p_.floor;
      out->f[i] = std::isnan(v) ? kInfinity : v;
    });
    return {Bound::Kind::kElements, out};
  }
  Bound finish(const std::vector<double>& e, double units) const {
    return finish_each([&e](size_t i) { return e[i]; }, units);
  }

  // |a||b| kProduct + |a| eb + ea |b| + ea eb; a bias adds its size and its error.
  Bound product() const {
    const double units = p_.unit > 1e-6 ? 1 : 0;  // kProduct covers the rounding of f32
    const ArrayPtr a = magnitude(x_[0]), b = magnitude(x_[1]);
    const bool has_bias = has_operand(x_, 2);
    Operands sizes{a, b};
    if (has_bias) sizes.push_back(magnitude(x_[2]));
    // Where nothing is negative the result itself is |a||b|.
    const bool is_size = a == x_[0] && b == x_[1] && (!has_bias || sizes[2] == x_[2]);
    if (!has_error(1) && !(has_bias && has_error(2))) {
      const ArrayPtr size = is_size ? nullptr : evaluated(sizes);
      const std::vector<double>& all = is_size ? y_.f : size->f;
      if (!has_error(0)) return finish_each([&](size_t i) { return kProduct * all[i]; }, units);
      const ArrayPtr more = evaluated({error_of(0), b});
      return finish_each([&](size_t i) { return kProduct * all[i] + more->f[i]; }, units);
    }
    const ArrayPtr ea = error_of(0), eb = error_of(1);
    auto wide = make_array(b->dtype, b->shape), b_and_error = make_array(b->dtype, b->shape);
    for_elements(wide->f, kCheap, [&](size_t i) {
      wide->f[i] = kProduct * b->f[i] + eb->f[i];
      b_and_error->f[i] = b->f[i] + eb->f[i];
    });
    Operands first{a, wide};
    if (has_bias) {
      const ArrayPtr e = error_of(2);
      auto bias = make_array(e->dtype, e->shape);
      for (size_t i = 0; i < bias->f.size(); ++i) bias->f[i] = kProduct * sizes[2]->f[i] + e->f[i];
      first.push_back(bias);
    }
    const ArrayPtr size = evaluated(first);
    if (!has_error(0)) return finish(size->f, units);
    const ArrayPtr more = evaluated({ea, b_and_error});
    return finish_each([&](size_t i) { return size->f[i] + more->f[i]; }, units);
  }

  // Sums with non-negative weights: the operator on errors, and kProduct of the operator on magnitudes.
  Bound linear() const {
    const double units = p_.unit > 1e-6 ? 1 : 0;
    Operands on_size = x_, on_error = x_;
    on_size[0] = magnitude(x_[0]);
    const ArrayPtr size = on_size[0] == x_[0] ? nullptr : evaluated(on_size);
    const std::vector<double>& all = size ? size->f : y_.f;
    if (!has_error(0)) return finish_each([&](size_t i) { return kProduct * all[i]; }, units);
    on_error[0] = error_of(0);
    const ArrayPtr more = evaluated(on_error);
    return finish_each([&](size_t i) { return kProduct * all[i] + more->f[i]; }, units);
  }

  // Operators that copy elements, or take a maximum over some: the same operator on the errors.
  Bound same_on_errors() const {
    if (exact_ && node_.op != Op::resize) return {};
    Operands on_errors = x_;
    for (size_t i = 0; i < x_.size(); ++i)
      if (x_[i] != nullptr && lives_in_f(x_[i]->dtype) && !is_shape_operand(node_, i))
        on_errors[i] = error_of(i);
    return not_negative(evaluated(on_errors));
  }

  Bound reduction() const {
    const std::string kind = node_.string_attr("kind", "sum");
    if (kind == "sum" || kind == "mean") return linear();
    if (kind != "max" && kind != "min") return none();
    if (exact_) return {};
    Node as_max = node_;
    as_max.attrs["kind"] = std::string("max");
    return not_negative(evaluate_node(as_max, {error_of(0)})[0]);
  }

  template <class F>
  Bound each(F f, double units) const {
    if (!has_error(0))
      return finish_each([&](size_t i) { return f(x_[0]->f[i], 0.0, y_.f[i]); }, units, kCostly);
    const ArrayPtr error = error_of(0);
    return finish_each([&](size_t i) { return f(x_[0]->f[i], error->f[i], y_.f[i]); }, units, kCostly);
  }

  Bound unary() const {
    if (!lives_in_f(x_[0]->dtype))
      return Bound{};  // a cast from integers rounds at most once, as evaluate does
    const auto through = [](double, double e, double) { return e; };
    switch (node_.op) {
      case Op::neg:
      case Op::abs:
      case Op::relu:
        return exact_ ? Bound{} : each(through, 0);
      case Op::cast:
        return exact_ && p_.unit <= precision_of(x_[0]->dtype).unit ? Bound{} : each(through, 1);
      case Op::sign:
      case Op::floor:
      case Op::ceil:
      case Op::round:
        return exact_ ? Bound{} : none();
      case Op::sin:
      case Op::cos:
      case Op::tanh:
      case Op::atan:
      case Op::asinh:
        return each(through, kTranscendental);
      case Op::erf:
        return each([](double, double e, double) { return 1.13 * e; }, kTranscendental);
      case Op::sigmoid:
        return each([](double, double e, double) { return e / 4; }, kTranscendental);
      case Op::exp:
      case Op::expm1:
        return each([](double x, double e, double) { return std::exp(x) * std::expm1(e); }, kTranscendental);
      case Op::sqrt:
        return each(
            [](double x, double e, double y) { return x > e ? y - std::sqrt(x - e) : std::sqrt(x + e); },
            kRounding);
      case Op::rsqrt:
        return each([](double x, double e, double y) { return x > e ? 1 / std::sqrt(x - e) - y : kInfinity; },
                    kTranscendental);
      case Op::reciprocal:
        return each(
            [](double x, double e, double) {
              const double a = std::fabs(x);
              return a > e ? e / (a * (a - e)) : kInfinity;
            },
            kRounding);
      case Op::log:
        // Near 1 the result is small while the argument's own rounding is not: the unit counts absolutely
        // too.
        return each(
            [u = p_.unit](double x, double e, double y) {
              return (x > e ? y - std::log(x - e) : kInfinity) + kRounding * u;
            },
            kTranscendental);
      default:
        return none();
    }
  }

  Bound binary() const {
    if (!lives_in_f(x_[0]->dtype) || !lives_in_f(x_[1]->dtype)) return none();
    if (exact_) {
      const bool once =
          node_.op == Op::add || node_.op == Op::sub || node_.op == Op::mul || node_.op == Op::div;
      if (once) return finish_each([](size_t) { return 0.0; }, kRounding);
      if (node_.op == Op::min || node_.op == Op::max) return Bound{};
    }
    const ArrayPtr ea = error_of(0), eb = error_of(1), a = magnitude(x_[0]), b = magnitude(x_[1]);
    const auto op = [](Op o, const ArrayPtr& p, const ArrayPtr& q) {
      Node node;
      node.op = o;
      return evaluate_node(node, {p, q})[0];
    };
    const auto plus = [&](const ArrayPtr& p, const ArrayPtr& q) { return op(Op::add, p, q); };
    switch (node_.op) {
      case Op::add:
      case Op::sub:
        return finish(plus(ea, eb)->f, kRounding);
      case Op::min:
      case Op::max:
        return finish(op(Op::max, ea, eb)->f, 0);
      case Op::mul:
        return finish(plus(op(Op::mul, a, eb), op(Op::mul, ea, plus(b, eb)))->f, kRounding);
      case Op::div: {
        // (ea + |a/b| eb) / (|b| - eb)
        const ArrayPtr room = op(Op::sub, b, eb);
        const ArrayPtr e = plus(ea, op(Op::mul, magnitude(y_), eb));
        const ArrayPtr denominator = plus(room, make_array(y_.dtype, y_.shape));
        return finish_each(
            [&](size_t i) { return denominator->f[i] > 0 ? e->f[i] / denominator->f[i] : kInfinity; },
            kRounding);
      }
      case Op::pow: {
        const Array& exponent = *x_[1];
        if (exponent.f.empty() ||
            !std::all_of(exponent.f.begin(), exponent.f.end(), [](double v) { return v == 2; }) ||
            bounds_[1]->kind != Bound::Kind::kExact || a->shape != y_.shape)
          return none();
        return each([](double x, double e, double) { return e * (2 * std::fabs(x) + e); }, kTranscendental);
      }
      default:
        return none();
    }
  }

  const Node& node_;
  const Operands& x_;
  const Array& y_;
  const std::vector<const Bound*>& bounds_;
  const Precision p_;
  bool exact_ = true;
};

}  // namespace

std::vector<std::optional<std::vector<double>>> element_bounds(const Graph& graph,
                                                               const std::vector<ArrayPtr>& inputs,
                                                               std::vector<ArrayPtr>* known) {
  if (inputs.size() != graph.inputs.size())
    throw Error(Code::kInvalidArgument, "element_bounds: one array an input is needed");
  std::vector<ArrayPtr> own;
  std::vector<ArrayPtr>& values = known ? *known : own;
  values.resize(graph.values.size());
  std::vector<Bound> bounds(graph.values.size());
  for (size_t i = 0; i < inputs.size(); ++i) values[static_cast<size_t>(graph.inputs[i])] = inputs[i];
  for (size_t v = 0; v < graph.values.size(); ++v)
    if (graph.values[v].constant && !values[v]) values[v] = to_array(*graph.values[v].constant);
  for (const Node& node : graph.nodes) {
    if (op_class(node.op) == OpClass::kControl)
      return std::vector<std::optional<std::vector<double>>>(graph.outputs.size());
    Operands operands;
    std::vector<const Bound*> operand_bounds;
    for (ValueId v : node.inputs) {
      operands.push_back(v == kNoValue ? nullptr : values[static_cast<size_t>(v)]);
      operand_bounds.push_back(v == kNoValue ? nullptr : &bounds[static_cast<size_t>(v)]);
    }
    Results results;
    for (const ValueId v : node.outputs)
      results.push_back(v == kNoValue ? nullptr : values[static_cast<size_t>(v)]);
    if (results.empty() || !results[0]) results = evaluate_node(node, operands);
    for (size_t k = 0; k < node.outputs.size() && k < results.size(); ++k) {
      if (node.outputs[k] == kNoValue) continue;
      const auto at = static_cast<size_t>(node.outputs[k]);
      values[at] = results[k];
      bounds[at] = k == 0 && node.outputs.size() == 1 && results[0] != nullptr
                       ? Analysis(node, operands, results, operand_bounds).run()
                       : none();
    }
  }
  std::vector<std::optional<std::vector<double>>> out;
  for (ValueId v : graph.outputs) {
    const Bound& bound = bounds[static_cast<size_t>(v)];
    const Array& value = *values[static_cast<size_t>(v)];
    if (bound.kind == Bound::Kind::kNone || !lives_in_f(value.dtype))
      out.emplace_back(std::nullopt);
    else if (bound.kind == Bound::Kind::kElements)
      out.emplace_back(bound.e->f);
    else
      out.emplace_back(std::vector<double>(value.f.size(), 0.0));
  }
  return out;
}

}  // namespace thrice::ir
