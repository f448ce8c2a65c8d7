// Element-wise operators, broadcasting by strides. Integers live in 64 bits and wrap to their width at the
// end.
#include <fmt/format.h>
#include <thrice/status.h>

#include <cmath>
#include <limits>

#include "ir/evaluate_groups.h"
#include "ir/evaluate_strides.h"
#include "ir/evaluate_threads.h"

namespace thrice::ir {
namespace {

constexpr int64_t kCheap = 1, kCostly = 20;  // scalar operations of one element, for the choice of threads

template <class F>
ArrayPtr map_float(const Array& x, int64_t cost, F f) {
  auto out = make_array(x.dtype, x.shape);
  parallel_for(x.size(), cost, [&](int64_t begin, int64_t end) {
    const double* in = x.f.data();
    double* o = out->f.data();
    for (int64_t i = begin; i < end; ++i) o[i] = f(in[i]);
  });
  return out;
}

template <class F>
ArrayPtr map_int(const Array& x, F f) {
  auto out = make_array(x.dtype, x.shape);
  for (size_t i = 0; i < x.i.size(); ++i) out->i[i] = wrap_to(x.dtype, f(x.i[i]));
  return out;
}

template <class F>
ArrayPtr test_float(const Array& x, F f) {
  auto out = make_array(DType::kBool, x.shape);
  parallel_for(x.size(), kCheap, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      out->i[i] = f(x.f[i]) ? 1 : 0;
  });
  return out;
}

ArrayPtr unary_float(const Node& node, const Array& x) {
  switch (node.op) {
    case Op::neg:
      return map_float(x, kCheap, [](double v) { return -v; });
    case Op::abs:
      return map_float(x, kCheap, [](double v) { return std::fabs(v); });
    case Op::sign:
      return map_float(x, kCheap, [](double v) { return v > 0 ? 1.0 : v < 0 ? -1.0 : v == 0 ? 0.0 : v; });
    case Op::floor:
      return map_float(x, kCheap, [](double v) { return std::floor(v); });
    case Op::ceil:
      return map_float(x, kCheap, [](double v) { return std::ceil(v); });
    case Op::round:
      return map_float(x, kCheap, [](double v) { return std::nearbyint(v); });
    case Op::sqrt:
      return map_float(x, kCheap, [](double v) { return std::sqrt(v); });
    case Op::rsqrt:
      return map_float(x, kCheap, [](double v) { return 1.0 / std::sqrt(v); });
    case Op::reciprocal:
      return map_float(x, kCheap, [](double v) { return 1.0 / v; });
    case Op::exp:
      return map_float(x, kCostly, [](double v) { return std::exp(v); });
    case Op::expm1:
      return map_float(x, kCostly, [](double v) { return std::expm1(v); });
    case Op::log:
      return map_float(x, kCostly, [](double v) { return std::log(v); });
    case Op::log1p:
      return map_float(x, kCostly, [](double v) { return std::log1p(v); });
    case Op::sin:
      return map_float(x, kCostly, [](double v) { return std::sin(v); });
    case Op::cos:
      return map_float(x, kCostly, [](double v) { return std::cos(v); });
    case Op::tan:
      return map_float(x, kCostly, [](double v) { return std::tan(v); });
    case Op::asin:
      return map_float(x, kCostly, [](double v) { return std::asin(v); });
    case Op::acos:
      return map_float(x, kCostly, [](double v) { return std::acos(v); });
    case Op::atan:
      return map_float(x, kCostly, [](double v) { return std::atan(v); });
    case Op::sinh:
      return map_float(x, kCostly, [](double v) { return std::sinh(v); });
    case Op::cosh:
      return map_float(x, kCostly, [](double v) { return std::cosh(v); });
    case Op::tanh:
      return map_float(x, kCostly, [](double v) { return std::tanh(v); });
    case Op::asinh:
      return map_float(x, kCostly, [](double v) { return std::asinh(v); });
    case Op::acosh:
      return map_float(x, kCostly, [](double v) { return std::acosh(v); });
    case Op::atanh:
      return map_float(x, kCostly, [](double v) { return std::atanh(v); });
    case Op::erf:
      return map_float(x, kCostly, [](double v) { return std::erf(v); });
    case Op::sigmoid:
      return map_float(x, kCostly, [](double v) { return 1.0 / (1.0 + std::exp(-v)); });
    case Op::relu:
      return map_float(x, kCheap, [](double v) { return v < 0 ? 0.0 : v; });
    case Op::is_nan:
      return test_float(x, [](double v) { return std::isnan(v); });
    case Op::is_inf: {
      const bool positive = node.int_attr("positive", 1) != 0, negative = node.int_attr("negative", 1) != 0;
      return test_float(x, [=](double v) { return std::isinf(v) && (v > 0 ? positive : negative); });
    }
    default:
      bad_node(node, fmt::format("not defined on {}", dtype_name(x.dtype)));
  }
}

ArrayPtr unary_int(const Node& node, const Array& x) {
  const bool is_unsigned = !is_signed_integer(x.dtype);
  const auto negated = [](int64_t v) { return static_cast<int64_t>(-static_cast<uint64_t>(v)); };
  switch (node.op) {
    case Op::neg:
      return map_int(x, negated);
    case Op::abs:
      return map_int(x, [=](int64_t v) { return is_unsigned || v >= 0 ? v : negated(v); });
    case Op::sign:
      return map_int(x, [=](int64_t v) { return v == 0 ? int64_t{0} : is_unsigned || v > 0 ? 1 : -1; });
    case Op::relu:
      return map_int(x, [=](int64_t v) { return is_unsigned || v > 0 ? v : int64_t{0}; });
    case Op::bitwise_not:
      return map_int(x, [](int64_t v) { return ~v; });
    case Op::logical_not:
      return map_int(x, [](int64_t v) { return int64_t{v == 0}; });
    case Op::floor:
    case Op::ceil:
    case Op::round:
      return map_int(x, [](int64_t v) { return v; });
    default:
      bad_node(node, fmt::format("not defined on {}", dtype_name(x.dtype)));
  }
}

// out = f(a, b) with broadcasting. The three usual inner strides have loops of their own, which the compiler
// vectorizes.
template <class In, class Out, class F>
void zip(const std::vector<In>& a, const std::vector<int64_t>& a_shape, const std::vector<In>& b,
         const std::vector<int64_t>& b_shape, std::vector<Out>& out, const std::vector<int64_t>& shape, F f) {
  const auto run = [&](const In* x, int64_t sx, const In* y, int64_t sy, Out* o, int64_t n) {
    if (sx == 1 && sy == 1)
      for (int64_t i = 0; i < n; ++i) o[i] = f(x[i], y[i]);
    else if (sx == 1 && sy == 0)
      for (int64_t i = 0; i < n; ++i) o[i] = f(x[i], y[0]);
    else if (sx == 0 && sy == 1)
      for (int64_t i = 0; i < n; ++i) o[i] = f(x[0], y[i]);
    else
      for (int64_t i = 0; i < n; ++i) o[i] = f(x[i * sx], y[i * sy]);
  };
  for_each_run_in_parts<2>(shape, {broadcast_strides(a_shape, shape), broadcast_strides(b_shape, shape)},
                           kCheap, [&](int64_t first, const auto& at, int64_t n, const auto& stride) {
                             run(a.data() + at[0], stride[0], b.data() + at[1], stride[1], out.data() + first,
                                 n);
                           });
}

template <class F>
ArrayPtr zip_float(const Array& a, const Array& b, F f) {
  auto out = make_array(a.dtype, broadcast_shapes(a.shape, b.shape));
  zip(a.f, a.shape, b.f, b.shape, out->f, out->shape, f);
  return out;
}

template <class F>
ArrayPtr zip_int(const Array& a, const Array& b, F f) {
  auto out = make_array(a.dtype, broadcast_shapes(a.shape, b.shape));
  const DType dtype = a.dtype;
  zip(a.i, a.shape, b.i, b.shape, out->i, out->shape,
      [=](int64_t x, int64_t y) { return wrap_to(dtype, f(x, y)); });
  return out;
}

double python_mod(double x, double y) {
  const double r = std::fmod(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

ArrayPtr binary_float(const Node& node, const Array& a, const Array& b) {
  switch (node.op) {
    case Op::add:
      return zip_float(a, b, [](double x, double y) { return x + y; });
    case Op::sub:
      return zip_float(a, b, [](double x, double y) { return x - y; });
    case Op::mul:
      return zip_float(a, b, [](double x, double y) { return x * y; });
    case Op::div:
      return zip_float(a, b, [](double x, double y) { return x / y; });
    case Op::min:
      return zip_float(a, b, [](double x, double y) { return x < y || std::isnan(x) ? x : y; });
    case Op::max:
      return zip_float(a, b, [](double x, double y) { return x > y || std::isnan(x) ? x : y; });
    case Op::pow:
      return zip_float(a, b, [](double x, double y) { return y == 2 ? x * x : std::pow(x, y); });
    case Op::fmod:
      return zip_float(a, b, [](double x, double y) { return std::fmod(x, y); });
    case Op::mod:
      return zip_float(a, b, python_mod);
    default:
      bad_node(node, fmt::format("not defined on {}", dtype_name(a.dtype)));
  }
}

int64_t integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (; exponent > 0; exponent >>= 1, factor *= factor)
    if (exponent & 1) result *= factor;
  return static_cast<int64_t>(result);
}

// Division and order depend on the sign of the type: T is int64_t or uint64_t.
template <class T>
ArrayPtr binary_ordered(const Node& node, const Array& a, const Array& b) {
  const auto zip_as = [&](auto f) {
    return zip_int(a, b, [=](int64_t x, int64_t y) {
      return static_cast<int64_t>(f(static_cast<T>(x), static_cast<T>(y)));
    });
  };
  constexpr T kMinusOne = static_cast<T>(-1);
  constexpr bool kSigned = std::is_signed_v<T>;
  switch (node.op) {
    case Op::min:
      return zip_as([](T x, T y) { return x < y ? x : y; });
    case Op::max:
      return zip_as([](T x, T y) { return x > y ? x : y; });
    case Op::div:
      return zip_as([](T x, T y) -> T {
        if (y == 0) return 0;
        if (kSigned && y == kMinusOne) return static_cast<T>(-static_cast<uint64_t>(x));
        return x / y;
      });
    case Op::fmod:
      return zip_as([](T x, T y) -> T { return y == 0 || (kSigned && y == kMinusOne) ? T{0} : x % y; });
    case Op::mod:
      return zip_as([](T x, T y) -> T {
        if (y == 0 || (kSigned && y == kMinusOne)) return 0;
        const T r = x % y;
        return kSigned && r != 0 && (r < 0) != (y < 0) ? r + y : r;
      });
    default:
      bad_node(node, fmt::format("not defined on {}", dtype_name(a.dtype)));
  }
}

ArrayPtr binary_int(const Node& node, const Array& a, const Array& b) {
  const auto u = [](int64_t v) { return static_cast<uint64_t>(v); };
  const int bits = dtype_bits(a.dtype);
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  const auto wrapping = [&](auto f) {
    return zip_int(a, b, [=](int64_t x, int64_t y) { return static_cast<int64_t>(f(u(x), u(y))); });
  };
  const auto width = static_cast<uint64_t>(bits);
  switch (node.op) {
    case Op::add:
      return wrapping([](uint64_t x, uint64_t y) { return x + y; });
    case Op::sub:
      return wrapping([](uint64_t x, uint64_t y) { return x - y; });
    case Op::mul:
      return wrapping([](uint64_t x, uint64_t y) { return x * y; });
    case Op::pow:
      return zip_int(a, b, integer_power);
    case Op::logical_and:
      return zip_int(a, b, [](int64_t x, int64_t y) { return int64_t{x && y}; });
    case Op::logical_or:
      return zip_int(a, b, [](int64_t x, int64_t y) { return int64_t{x || y}; });
    case Op::logical_xor:
      return zip_int(a, b, [](int64_t x, int64_t y) { return int64_t{!x != !y}; });
    case Op::bitwise_and:
      return wrapping([](uint64_t x, uint64_t y) { return x & y; });
    case Op::bitwise_or:
      return wrapping([](uint64_t x, uint64_t y) { return x | y; });
    case Op::bitwise_xor:
      return wrapping([](uint64_t x, uint64_t y) { return x ^ y; });
    case Op::shift_left:
      return wrapping([=](uint64_t x, uint64_t y) { return y >= width ? 0 : (x & mask) << y; });
    case Op::shift_right:
      return wrapping([=](uint64_t x, uint64_t y) { return y >= width ? 0 : (x & mask) >> y; });
    default:
      return is_signed_integer(a.dtype) ? binary_ordered<int64_t>(node, a, b)
                                        : binary_ordered<uint64_t>(node, a, b);
  }
}

template <class Compare>
ArrayPtr compare_with(const Array& a, const Array& b, Compare c) {
  auto out = make_array(DType::kBool, broadcast_shapes(a.shape, b.shape));
  const auto as_int = [=](const auto& x, const auto& y) { return int64_t{c(x, y)}; };
  if (lives_in_f(a.dtype))
    zip(a.f, a.shape, b.f, b.shape, out->i, out->shape, as_int);
  else if (lives_in_s(a.dtype))
    zip(a.s, a.shape, b.s, b.shape, out->i, out->shape, as_int);
  else if (is_signed_integer(a.dtype))
    zip(a.i, a.shape, b.i, b.shape, out->i, out->shape, as_int);
  else
    zip(a.i, a.shape, b.i, b.shape, out->i, out->shape,
        [=](int64_t x, int64_t y) { return int64_t{c(static_cast<uint64_t>(x), static_cast<uint64_t>(y))}; });
  return out;
}

ArrayPtr where(const Node& node, const Array& condition, const Array& x, const Array& y) {
  if (x.dtype != y.dtype) bad_node(node, "branches differ in dtype");
  auto out = make_array(x.dtype, broadcast_shapes(condition.shape, broadcast_shapes(x.shape, y.shape)));
  const auto select = [&](auto& to, const auto& from_x, const auto& from_y) {
    for_each_run_in_parts<3>(out->shape,
                             {broadcast_strides(condition.shape, out->shape),
                              broadcast_strides(x.shape, out->shape), broadcast_strides(y.shape, out->shape)},
                             kCheap, [&](int64_t first, const auto& at, int64_t n, const auto& stride) {
                               for (int64_t i = 0; i < n; ++i)
                                 to[static_cast<size_t>(first + i)] =
                                     condition.i[static_cast<size_t>(at[0] + i * stride[0])]
                                         ? from_x[static_cast<size_t>(at[1] + i * stride[1])]
                                         : from_y[static_cast<size_t>(at[2] + i * stride[2])];
                             });
  };
  if (lives_in_f(x.dtype))
    select(out->f, x.f, y.f);
  else if (lives_in_s(x.dtype))
    select(out->s, x.s, y.s);
  else
    select(out->i, x.i, y.i);
  return out;
}

// x ** y where y has another numeric dtype than x: the result has x's.
ArrayPtr mixed_power(const Array& x, const Array& y) {
  Array exponent{x.dtype, y.shape, {}, {}, {}};
  if (lives_in_f(x.dtype)) {
    for (int64_t v : y.i) exponent.f.push_back(static_cast<double>(v));
    return zip_float(x, exponent, [](double a, double b) { return std::pow(a, b); });
  }
  if (!lives_in_f(y.dtype)) return zip_int(x, y, integer_power);
  auto out = make_array(x.dtype, broadcast_shapes(x.shape, y.shape));
  std::vector<double> base(x.i.begin(), x.i.end());
  std::vector<double> result(static_cast<size_t>(out->size()));
  zip(base, x.shape, y.f, y.shape, result, out->shape, [](double a, double b) { return std::pow(a, b); });
  for (size_t i = 0; i < result.size(); ++i) {
    const double v = result[i];
    out->i[i] = std::fabs(v) < 9.2e18 ? wrap_to(x.dtype, static_cast<int64_t>(v)) : 0;
  }
  return out;
}

}  // namespace

Results evaluate_elementwise(const Node& node, const Operands& operands) {
  const Array& x = operand(node, operands, 0);
  if (node.op == Op::identity) return {operands[0]};
  if (op_class(node.op) == OpClass::kUnary)
    return {lives_in_f(x.dtype) ? unary_float(node, x) : unary_int(node, x)};
  const Array& y = operand(node, operands, 1);
  if (node.op == Op::where) return {where(node, x, y, operand(node, operands, 2))};
  if (node.op == Op::pow && lives_in_f(x.dtype) && x.dtype != y.dtype && lives_in_f(y.dtype))
    return {zip_float(x, y, [](double a, double b) { return std::pow(a, b); })};
  if (node.op == Op::pow && x.dtype != y.dtype) return {mixed_power(x, y)};
  if (x.dtype != y.dtype)
    bad_node(node,
             fmt::format("operands differ in dtype: {} and {}", dtype_name(x.dtype), dtype_name(y.dtype)));
  switch (node.op) {
    case Op::equal:
      return {compare_with(x, y, [](const auto& a, const auto& b) { return a == b; })};
    case Op::less:
      return {compare_with(x, y, [](const auto& a, const auto& b) { return a < b; })};
    case Op::less_equal:
      return {compare_with(x, y, [](const auto& a, const auto& b) { return a <= b; })};
    case Op::greater:
      return {compare_with(x, y, [](const auto& a, const auto& b) { return a > b; })};
    case Op::greater_equal:
      return {compare_with(x, y, [](const auto& a, const auto& b) { return a >= b; })};
    default:
      break;
  }
  return {lives_in_f(x.dtype) ? binary_float(node, x, y) : binary_int(node, x, y)};
}

}  // namespace thrice::ir
