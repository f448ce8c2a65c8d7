// scan_sum, top_k, scatter_elements, scatter_nd.
#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/evaluate_groups.h"
#include "ir/evaluate_strides.h"

namespace thrice::ir {
namespace {

struct Split {  // x seen as [outer, extent, inner] around one axis
  int64_t outer = 1, extent = 1, inner = 1;
};

Split split_at(const Node& node, const Array& x, int64_t axis) {
  if (axis < 0 || axis >= static_cast<int64_t>(x.shape.size())) bad_node(node, "axis out of range");
  Split s;
  for (size_t d = 0; d < x.shape.size(); ++d) {
    int64_t& part = static_cast<int64_t>(d) < axis    ? s.outer
                    : static_cast<int64_t>(d) == axis ? s.extent
                                                      : s.inner;
    part *= x.shape[d];
  }
  return s;
}

template <class T, class F>
void scan(const Split& s, const std::vector<T>& in, std::vector<T>& out, T start, bool exclusive,
          bool reverse, F f) {
  for (int64_t o = 0; o < s.outer; ++o)
    for (int64_t i = 0; i < s.inner; ++i) {
      T acc = start;
      for (int64_t k = 0; k < s.extent; ++k) {
        const auto at = static_cast<size_t>((o * s.extent + (reverse ? s.extent - 1 - k : k)) * s.inner + i);
        const T next = f(acc, in[at]);
        out[at] = exclusive ? acc : next;
        acc = next;
      }
    }
}

ArrayPtr scan_sum(const Node& node, const Array& x) {
  const Split s = split_at(node, x, node.int_attr("axis"));
  const bool exclusive = node.int_attr("exclusive", 0) != 0, reverse = node.int_attr("reverse", 0) != 0;
  const bool product = node.string_attr("kind", "sum") == "prod";
  auto out = make_array(x.dtype, x.shape);
  if (lives_in_f(x.dtype)) {
    if (product)
      scan(s, x.f, out->f, 1.0, exclusive, reverse, [](double a, double v) { return a * v; });
    else
      scan(s, x.f, out->f, 0.0, exclusive, reverse, [](double a, double v) { return a + v; });
    return out;
  }
  const auto wrapped = [&](uint64_t v) { return wrap_to(x.dtype, static_cast<int64_t>(v)); };
  const auto u = [](int64_t v) { return static_cast<uint64_t>(v); };
  if (product)
    scan(s, x.i, out->i, int64_t{1}, exclusive, reverse,
         [&](int64_t a, int64_t v) { return wrapped(u(a) * u(v)); });
  else
    scan(s, x.i, out->i, int64_t{0}, exclusive, reverse,
         [&](int64_t a, int64_t v) { return wrapped(u(a) + u(v)); });
  return out;
}

// Ties: lower index first. NaN counts as the largest.
template <class T, class Stored>
void select_top(const Split& s, int64_t k, bool largest, const std::vector<Stored>& in,
                std::vector<Stored>& values, std::vector<int64_t>& indices) {
  std::vector<int64_t> order(static_cast<size_t>(s.extent));
  for (int64_t o = 0; o < s.outer; ++o)
    for (int64_t i = 0; i < s.inner; ++i) {
      const auto value = [&](int64_t e) {
        return static_cast<T>(in[static_cast<size_t>((o * s.extent + e) * s.inner + i)]);
      };
      const auto above = [](T a, T b) {
        if constexpr (std::is_same_v<T, double>)
          if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
        return a > b;
      };
      std::iota(order.begin(), order.end(), int64_t{0});
      std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int64_t a, int64_t b) {
        const T x = value(a), y = value(b);
        if (largest ? above(x, y) : above(y, x)) return true;
        if (largest ? above(y, x) : above(x, y)) return false;
        return a < b;
      });
      for (int64_t r = 0; r < k; ++r) {
        const auto at = static_cast<size_t>((o * k + r) * s.inner + i);
        const int64_t e = order[static_cast<size_t>(r)];
        indices[at] = e;
        values[at] = in[static_cast<size_t>((o * s.extent + e) * s.inner + i)];
      }
    }
}

Results top_k(const Node& node, const Array& x, const std::vector<int64_t>& k) {
  const int64_t axis = node.int_attr("axis");
  const Split s = split_at(node, x, axis);
  if (k.size() != 1 || k[0] < 0 || k[0] > s.extent)
    bad_node(node, fmt::format("k must be one number between 0 and {}", s.extent));
  if (lives_in_s(x.dtype)) bad_node(node, "not defined on strings");
  const bool largest = node.int_attr("largest", 1) != 0;
  std::vector<int64_t> shape = x.shape;
  shape[static_cast<size_t>(axis)] = k[0];
  auto values = make_array(x.dtype, shape), indices = make_array(DType::kI64, shape);
  if (lives_in_f(x.dtype))
    select_top<double>(s, k[0], largest, x.f, values->f, indices->i);
  else if (is_signed_integer(x.dtype))
    select_top<int64_t>(s, k[0], largest, x.i, values->i, indices->i);
  else
    select_top<uint64_t>(s, k[0], largest, x.i, values->i, indices->i);
  return {values, indices};
}

enum class Reduction { kNone, kAdd, kMul, kMin, kMax };

Reduction reduction_of(const Node& node) {
  const std::string name = node.string_attr("reduction", "none");
  if (name == "none") return Reduction::kNone;
  if (name == "add") return Reduction::kAdd;
  if (name == "mul") return Reduction::kMul;
  if (name == "min") return Reduction::kMin;
  if (name == "max") return Reduction::kMax;
  bad_node(node, fmt::format("unknown reduction '{}'", name));
}

double combine(Reduction r, double a, double v, DType) {
  switch (r) {
    case Reduction::kAdd:
      return a + v;
    case Reduction::kMul:
      return a * v;
    case Reduction::kMin:
      return a < v || std::isnan(a) ? a : v;
    case Reduction::kMax:
      return a > v || std::isnan(a) ? a : v;
    case Reduction::kNone:
      break;
  }
  return v;
}

int64_t combine(Reduction r, int64_t a, int64_t v, DType dtype) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(v);
  const bool below = is_signed_integer(dtype) ? a < v : x < y;
  switch (r) {
    case Reduction::kAdd:
      return wrap_to(dtype, static_cast<int64_t>(x + y));
    case Reduction::kMul:
      return wrap_to(dtype, static_cast<int64_t>(x * y));
    case Reduction::kMin:
      return below ? a : v;
    case Reduction::kMax:
      return below ? v : a;
    case Reduction::kNone:
      break;
  }
  return v;
}

const std::string& combine(Reduction, const std::string&, const std::string& v, DType) { return v; }

int64_t checked_index(const Node& node, int64_t index, int64_t extent) {
  const int64_t at = index < 0 ? index + extent : index;
  if (at < 0 || at >= extent) bad_node(node, fmt::format("index {} is outside an axis of {}", index, extent));
  return at;
}

ArrayPtr scatter_elements(const Node& node, const Array& x, const Array& indices, const Array& updates) {
  const auto axis = static_cast<size_t>(node.int_attr("axis", 0));
  if (axis >= x.shape.size() || indices.shape.size() != x.shape.size() || updates.shape != indices.shape ||
      updates.dtype != x.dtype)
    bad_node(node, "x, indices and updates do not fit");
  for (size_t d = 0; d < x.shape.size(); ++d)
    if (d != axis && indices.shape[d] > x.shape[d]) bad_node(node, "indices are larger than the data");
  const Reduction reduction = reduction_of(node);
  auto out = std::make_shared<Array>(x);
  std::vector<int64_t> strides = row_major_strides(x.shape);
  const int64_t along = strides[axis], extent = x.shape[axis];
  strides[axis] = 0;
  on_storage(*out, updates, [&](auto& to, const auto& from) {
    size_t u = 0;
    for_each_run<1>(indices.shape, {strides}, [&](const auto& at, int64_t n, const auto& stride) {
      for (int64_t i = 0; i < n; ++i, ++u) {
        const auto place =
            static_cast<size_t>(at[0] + i * stride[0] + checked_index(node, indices.i[u], extent) * along);
        to[place] = combine(reduction, to[place], from[u], x.dtype);
      }
    });
  });
  return out;
}

ArrayPtr scatter_nd(const Node& node, const Array& x, const Array& indices, const Array& updates) {
  if (indices.shape.empty()) bad_node(node, "indices need a last axis of tuples");
  const auto depth = static_cast<size_t>(indices.shape.back());
  if (depth > x.shape.size() || updates.dtype != x.dtype) bad_node(node, "x, indices and updates do not fit");
  std::vector<int64_t> expected(indices.shape.begin(), indices.shape.end() - 1);
  expected.insert(expected.end(), x.shape.begin() + static_cast<std::ptrdiff_t>(depth), x.shape.end());
  if (updates.shape != expected) bad_node(node, "updates have the wrong shape");
  const Reduction reduction = reduction_of(node);
  const std::vector<int64_t> strides = row_major_strides(x.shape);
  int64_t block = 1, tuples = 1;
  for (size_t d = depth; d < x.shape.size(); ++d) block *= x.shape[d];
  for (size_t d = 0; d + 1 < indices.shape.size(); ++d) tuples *= indices.shape[d];
  auto out = std::make_shared<Array>(x);
  on_storage(*out, updates, [&](auto& to, const auto& from) {
    for (int64_t t = 0; t < tuples; ++t) {
      int64_t at = 0;
      for (size_t d = 0; d < depth; ++d)
        at += checked_index(node, indices.i[static_cast<size_t>(t) * depth + d], x.shape[d]) * strides[d];
      for (int64_t i = 0; i < block; ++i) {
        auto& element = to[static_cast<size_t>(at + i)];
        element = combine(reduction, element, from[static_cast<size_t>(t * block + i)], x.dtype);
      }
    }
  });
  return out;
}

}  // namespace

Results evaluate_select(const Node& node, const Operands& operands) {
  const Array& x = operand(node, operands, 0);
  switch (node.op) {
    case Op::scan_sum:
      if (lives_in_s(x.dtype)) bad_node(node, "not defined on strings");
      return {scan_sum(node, x)};
    case Op::top_k:
      return top_k(node, x, ints_of(node, operands, 1));
    case Op::scatter_elements:
    case Op::scatter_nd: {
      ints_of(node, operands, 1);  // refuses other dtypes
      const Array& indices = operand(node, operands, 1);
      const Array& updates = operand(node, operands, 2);
      return {node.op == Op::scatter_nd ? scatter_nd(node, x, indices, updates)
                                        : scatter_elements(node, x, indices, updates)};
    }
    default:
      throw Error(Code::kUnsupported, fmt::format("{} has no evaluation", op_name(node.op)));
  }
}

}  // namespace thrice::ir
