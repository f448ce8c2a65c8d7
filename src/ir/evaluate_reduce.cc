// Reductions: one pass over the input, the result addressed with stride 0 along reduced axes.
#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/evaluate_groups.h"
#include "ir/evaluate_strides.h"

namespace thrice::ir {
namespace {

struct Layout {
  std::vector<int64_t> kept;     // input shape with 1 at reduced axes
  std::vector<int64_t> strides;  // of the result, 0 at reduced axes
  std::vector<int64_t> shape;    // of the result
  int64_t count = 1;             // elements reduced into one
};

Layout layout_of(const Node& node, const Array& x, const std::vector<int64_t>& axes, bool keepdims) {
  Layout out;
  out.kept = x.shape;
  std::vector<bool> reduced(x.shape.size(), false);
  for (int64_t axis : axes) {
    if (axis < 0 || axis >= static_cast<int64_t>(x.shape.size())) bad_node(node, "axis out of range");
    const auto a = static_cast<size_t>(axis);
    if (!reduced[a]) out.count *= x.shape[a];
    reduced[a] = true;
    out.kept[a] = 1;
  }
  out.strides = row_major_strides(out.kept);
  for (size_t d = 0; d < reduced.size(); ++d) {
    if (reduced[d]) out.strides[d] = 0;
    if (!reduced[d] || keepdims) out.shape.push_back(out.kept[d]);
  }
  return out;
}

// acc = f(acc, element) over all elements of x, for each result in the order of the elements.
template <class T, class F>
void accumulate(const Array& x, const std::vector<T>& from, const Layout& layout, std::vector<T>& to, F f) {
  const auto run = [&](const auto& at, int64_t n, const auto& stride) {
    const T* in = from.data() + at[0];
    T* out = to.data() + at[1];
    if (stride[1] == 0) {
      T acc = *out;
      for (int64_t i = 0; i < n; ++i) acc = f(acc, in[i * stride[0]]);
      *out = acc;
    } else {
      for (int64_t i = 0; i < n; ++i) out[i * stride[1]] = f(out[i * stride[1]], in[i * stride[0]]);
    }
  };
  const std::array<std::vector<int64_t>, 2> strides{row_major_strides(x.shape), layout.strides};
  std::vector<int64_t> shape = x.shape;
  std::array<std::vector<int64_t>, 2> collapsed = strides;
  collapse(shape, collapsed);
  const bool splits = shape.size() > 1 && collapsed[1][0] != 0;  // no two parts share a result
  if (splits)
    for_each_run_in_parts<2>(
        x.shape, strides, 2,
        [&](int64_t, const auto& at, int64_t n, const auto& stride) { run(at, n, stride); });
  else
    for_each_run<2>(x.shape, strides, run);
}

ArrayPtr reduce_float(const Node& node, const Array& x, const Layout& layout, const std::string& kind) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  auto out = make_array(x.dtype, layout.shape);
  const auto run = [&](double start, auto f) {
    std::fill(out->f.begin(), out->f.end(), start);
    accumulate(x, x.f, layout, out->f, f);
  };
  if (kind == "sum" || kind == "mean") {
    run(0.0, [](double a, double v) { return a + v; });
    if (kind == "mean")
      for (double& v : out->f) v /= static_cast<double>(layout.count);
  } else if (kind == "prod") {
    run(1.0, [](double a, double v) { return a * v; });
  } else if (kind == "max") {
    run(-kInfinity, [](double a, double v) { return a > v || std::isnan(a) ? a : v; });
  } else if (kind == "min") {
    run(kInfinity, [](double a, double v) { return a < v || std::isnan(a) ? a : v; });
  } else {
    bad_node(node, fmt::format("kind '{}' is not defined on {}", kind, dtype_name(x.dtype)));
  }
  return out;
}

// T (int64_t or uint64_t) decides the order and the division.
template <class T>
ArrayPtr reduce_int(const Node& node, const Array& x, const Layout& layout, const std::string& kind) {
  auto out = make_array(x.dtype, layout.shape);
  const bool is_bool = x.dtype == DType::kBool;
  const int bits = dtype_bits(x.dtype);
  constexpr bool kSigned = std::is_signed_v<T>;
  const int64_t highest =
      is_bool      ? 1
      : kSigned    ? (bits == 64 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << (bits - 1)) - 1)
      : bits == 64 ? -1
                   : (int64_t{1} << bits) - 1;
  const int64_t lowest = kSigned ? -highest - 1 : 0;
  const auto run = [&](int64_t start, auto f) {
    std::fill(out->i.begin(), out->i.end(), start);
    accumulate(x, x.i, layout, out->i, [=](int64_t a, int64_t v) {
      return static_cast<int64_t>(f(static_cast<T>(a), static_cast<T>(v)));
    });
  };
  using U = uint64_t;
  if (kind == "sum" || kind == "mean")
    run(0, [](T a, T v) { return static_cast<T>(static_cast<U>(a) + static_cast<U>(v)); });
  else if (kind == "prod")
    run(1, [](T a, T v) { return static_cast<T>(static_cast<U>(a) * static_cast<U>(v)); });
  else if (kind == "max")
    run(lowest, [](T a, T v) { return a > v ? a : v; });
  else if (kind == "min")
    run(highest, [](T a, T v) { return a < v ? a : v; });
  else if (kind == "any")
    run(0, [](T a, T v) { return static_cast<T>(a != 0 || v != 0); });
  else if (kind == "all")
    run(1, [](T a, T v) { return static_cast<T>(a != 0 && v != 0); });
  else
    bad_node(node, fmt::format("unknown kind '{}'", kind));
  for (int64_t& v : out->i) {
    if (kind == "mean")
      v = layout.count == 0 ? 0 : static_cast<int64_t>(static_cast<T>(v) / static_cast<T>(layout.count));
    v = wrap_to(x.dtype, v);
  }
  return out;
}

template <class T>
bool is_nan_of(const T& v) {
  if constexpr (std::is_same_v<T, double>)
    return std::isnan(v);
  else
    return false;
}

template <class T, class From>
void arg_extreme(const std::vector<From>& from, int64_t outer, int64_t extent, int64_t inner, bool max,
                 bool last, std::vector<int64_t>& to) {
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      const auto value = [&](int64_t k) {
        return static_cast<T>(from[static_cast<size_t>((o * extent + k) * inner + i)]);
      };
      int64_t best = 0;
      T top = value(0);
      for (int64_t k = 1; k < extent && !is_nan_of(top); ++k) {
        const T v = value(k);
        const bool better = is_nan_of(v) || (max ? v > top : v < top) || (last && v == top);
        if (better) best = k, top = v;
      }
      to[static_cast<size_t>(o * inner + i)] = best;
    }
}

ArrayPtr arg_reduce(const Node& node, const Array& x) {
  const int64_t axis = node.int_attr("axis");
  if (axis < 0 || axis >= static_cast<int64_t>(x.shape.size())) bad_node(node, "axis out of range");
  const auto a = static_cast<size_t>(axis);
  const bool max = node.string_attr("kind", "max") == "max", last = node.int_attr("select_last", 0) != 0;
  const Layout layout = layout_of(node, x, {axis}, node.int_attr("keepdims", 1) != 0);
  auto out = make_array(DType::kI64, layout.shape);
  int64_t outer = 1, inner = 1;
  for (size_t d = 0; d < a; ++d) outer *= x.shape[d];
  for (size_t d = a + 1; d < x.shape.size(); ++d) inner *= x.shape[d];
  if (out->size() > 0 && x.shape[a] == 0) bad_node(node, "the reduced axis is empty");
  if (lives_in_f(x.dtype))
    arg_extreme<double>(x.f, outer, x.shape[a], inner, max, last, out->i);
  else if (is_signed_integer(x.dtype))
    arg_extreme<int64_t>(x.i, outer, x.shape[a], inner, max, last, out->i);
  else
    arg_extreme<uint64_t>(x.i, outer, x.shape[a], inner, max, last, out->i);
  return out;
}

}  // namespace

Results evaluate_reduce(const Node& node, const Operands& operands) {
  const Array& x = operand(node, operands, 0);
  if (lives_in_s(x.dtype)) bad_node(node, "not defined on strings");
  if (node.op == Op::arg_reduce) return {arg_reduce(node, x)};
  const std::vector<int64_t>& axes = node.ints_attr("axes");
  if (axes.empty()) return {operands[0]};
  const std::string kind = node.string_attr("kind", "sum");
  const Layout layout = layout_of(node, x, axes, node.int_attr("keepdims", 1) != 0);
  if (lives_in_f(x.dtype)) return {reduce_float(node, x, layout, kind)};
  return {is_signed_integer(x.dtype) ? reduce_int<int64_t>(node, x, layout, kind)
                                     : reduce_int<uint64_t>(node, x, layout, kind)};
}

}  // namespace thrice::ir
