// Values of small integer results as expressions: the arithmetic that models do on shapes. Whatever is not
// sure for every binding stays unknown.
#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "ir/infer_rules.h"

namespace thrice::ir {
namespace {

using Known = std::optional<std::vector<Dim>>;
using Element = std::optional<Dim>;

// One operand with all extents known.
struct Operand {
  std::vector<int64_t> shape;
  std::vector<Dim> elements;
};

// Row-major multi-index of element `flat`.
std::vector<int64_t> unravel(int64_t flat, const std::vector<int64_t>& shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    index[i] = flat % shape[i];
    flat /= shape[i];
  }
  return index;
}

int64_t ravel(const std::vector<int64_t>& index, const std::vector<int64_t>& shape) {
  int64_t flat = 0;
  for (size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + index[i];
  return flat;
}

// Element of `x` that lands at `index` of a result it is broadcast to.
const Dim& at_broadcast(const Operand& x, const std::vector<int64_t>& index) {
  int64_t flat = 0;
  const size_t skip = index.size() - x.shape.size();
  for (size_t i = 0; i < x.shape.size(); ++i)
    flat = flat * x.shape[i] + (x.shape[i] == 1 ? 0 : index[skip + i]);
  return x.elements[static_cast<size_t>(flat)];
}

// 1, 0, or unknown.
Element less(const Dim& a, const Dim& b) {
  if (is_nonnegative(b - a - 1)) return Dim(1);
  if (is_nonnegative(a - b)) return Dim(0);
  return std::nullopt;
}
Element equal(const Dim& a, const Dim& b) {
  if (a == b) return Dim(1);
  if (is_nonnegative(a - b - 1) || is_nonnegative(b - a - 1)) return Dim(0);
  return std::nullopt;
}
Element negate(const Element& e) { return e ? Element(Dim(1) - *e) : std::nullopt; }

Element power(const Dim& a, const Dim& b) {
  if (!b.is_const() || b.value() < 0 || b.value() > 8)
    return std::nullopt;  // shapes are squared, hardly more
  Dim result(1);
  for (int64_t i = 0; i < b.value(); ++i) result = result * a;
  return result;
}

Element unary(const Node& node, const Dim& a) {
  switch (node.op) {
    case Op::identity:
    case Op::cast:
      return a;
    case Op::neg:
      return Dim(0) - a;
    case Op::logical_not:
      return Dim(1) - a;
    case Op::abs:
      return is_nonnegative(a) ? a : is_nonnegative(Dim(0) - a) ? Element(Dim(0) - a) : std::nullopt;
    case Op::relu:
      return dim_max(a, 0);
    case Op::sign:
      if (a == Dim(0)) return Dim(0);
      return is_nonnegative(a - 1)         ? Element(Dim(1))
             : is_nonnegative(Dim(-1) - a) ? Element(Dim(-1))
                                           : std::nullopt;
    default:
      return std::nullopt;
  }
}

Element binary(Op op, const Dim& a, const Dim& b) {
  const bool numbers = a.is_const() && b.is_const();
  switch (op) {
    case Op::add:
      return a + b;
    case Op::sub:
      return a - b;
    case Op::mul:
    case Op::logical_and:
      return a * b;
    case Op::logical_or:
      return dim_max(a, b);
    case Op::logical_xor:
      return negate(equal(a, b));
    case Op::min:
      return dim_min(a, b);
    case Op::max:
      return dim_max(a, b);
    case Op::pow:
      return power(a, b);
    case Op::div:
      if (b == Dim(0)) return Dim(0);
      if (b == Dim(-1)) return Dim(0) - a;
      if (numbers) return Dim(a.value() / b.value());
      // Truncation is the floor only where nothing is negative; a divisor that may be 0 would throw when
      // bound.
      if (!b.is_const() && !is_nonnegative(b - 1)) {
        const Dim q = floor_div(a, b);
        return q * b == a ? Element(q) : std::nullopt;
      }
      if (is_nonnegative(a) && is_nonnegative(b)) return floor_div(a, b);
      // "(time - 3) / 4" of an exporter that knows time >= 3: one of the two terms is 0.
      if (b.is_const() && b.value() > 0)
        return floor_div(dim_max(a, 0), b) - floor_div(dim_max(Dim(0) - a, 0), b);
      return std::nullopt;
    case Op::mod:
      if (b == Dim(0)) return Dim(0);
      return b.is_const() || is_nonnegative(b - 1) ? Element(modulo(a, b)) : std::nullopt;
    case Op::fmod:
      if (b == Dim(0)) return Dim(0);
      if (numbers) return Dim(b.value() == -1 ? 0 : a.value() % b.value());
      return b.is_const() && b.value() > 0 && is_nonnegative(a) ? Element(modulo(a, b)) : std::nullopt;
    case Op::equal:
      return equal(a, b);
    case Op::less:
      return less(a, b);
    case Op::greater:
      return less(b, a);
    case Op::less_equal:
      return negate(less(b, a));
    case Op::greater_equal:
      return negate(less(a, b));
    default:
      return std::nullopt;
  }
}

Element where(const Dim& condition, const Dim& a, const Dim& b) {
  if (a == b) return a;
  if (!condition.is_const()) return std::nullopt;
  return condition.value() ? a : b;
}

Known elementwise(const Node& node, const std::vector<Operand>& x, const std::vector<int64_t>& shape,
                  int64_t count) {
  std::vector<Dim> result;
  for (int64_t i = 0; i < count; ++i) {
    const std::vector<int64_t> index = unravel(i, shape);
    Element e;
    if (x.size() == 1)
      e = unary(node, at_broadcast(x[0], index));
    else if (x.size() == 2)
      e = binary(node.op, at_broadcast(x[0], index), at_broadcast(x[1], index));
    else
      e = where(at_broadcast(x[0], index), at_broadcast(x[1], index), at_broadcast(x[2], index));
    if (!e) return std::nullopt;
    result.push_back(*e);
  }
  return result;
}

Known reduce(const Node& node, const Operand& x, const std::vector<int64_t>& shape, int64_t count) {
  const std::string kind = node.string_attr("kind", "sum");
  const bool keepdims = node.int_attr("keepdims", 1) != 0;
  const std::vector<int64_t>& axes = node.ints_attr("axes");
  std::vector<Element> result(static_cast<size_t>(count));
  for (size_t i = 0; i < x.elements.size(); ++i) {
    std::vector<int64_t> to;
    const std::vector<int64_t> from = unravel(static_cast<int64_t>(i), x.shape);
    for (size_t a = 0; a < from.size(); ++a) {
      const bool gone = std::find(axes.begin(), axes.end(), static_cast<int64_t>(a)) != axes.end();
      if (!gone || keepdims) to.push_back(gone ? 0 : from[a]);
    }
    Element& e = result[static_cast<size_t>(ravel(to, shape))];
    const Dim& v = x.elements[i];
    if (!e)
      e = v;
    else if (kind == "sum")
      e = *e + v;
    else if (kind == "prod" || kind == "all")
      e = *e * v;
    else if (kind == "max" || kind == "any")
      e = dim_max(*e, v);
    else if (kind == "min")
      e = dim_min(*e, v);
    else
      return std::nullopt;
  }
  std::vector<Dim> elements;
  for (const Element& e : result) {
    if (!e && kind != "sum" && kind != "prod") return std::nullopt;
    elements.push_back(e ? *e : Dim(kind == "prod" ? 1 : 0));
  }
  return elements;
}

// Source element of each result element: x's flat index by a function of the result's multi-index.
template <class F>
Known pick(const Operand& x, const std::vector<int64_t>& shape, int64_t count, const F& source) {
  std::vector<Dim> result;
  for (int64_t i = 0; i < count; ++i) {
    const Element flat = source(unravel(i, shape));
    if (!flat || !flat->is_const()) return std::nullopt;
    if (flat->value() < 0 || flat->value() >= static_cast<int64_t>(x.elements.size())) return std::nullopt;
    result.push_back(x.elements[static_cast<size_t>(flat->value())]);
  }
  return result;
}

std::optional<Operand> operand(const InferContext& c, size_t i) {
  auto elements = c.known(i);
  if (!elements || !is_static(c.shape(i))) return std::nullopt;
  Operand x{static_shape(c.shape(i)), std::move(*elements)};
  if (num_elements(x.shape) != static_cast<int64_t>(x.elements.size())) return std::nullopt;
  return x;
}

Known slice(const InferContext& c, const Operand& x, const std::vector<int64_t>& shape, int64_t count) {
  const auto starts = c.known(1), ends = c.known(2), steps = c.known(3);
  if (!starts || !ends || !steps) return std::nullopt;
  std::vector<int64_t> first(shape.size(), 0), step(shape.size(), 1);
  const std::vector<int64_t>& axes = c.node.ints_attr("axes");
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!(*starts)[i].is_const() || !(*ends)[i].is_const() || !(*steps)[i].is_const()) return std::nullopt;
    const auto a = static_cast<size_t>(axes[i]);
    const SliceRange r =
        resolve_slice(x.shape[a], (*starts)[i].value(), (*ends)[i].value(), (*steps)[i].value());
    first[a] = r.start;
    step[a] = r.step;
  }
  return pick(x, shape, count, [&](std::vector<int64_t> index) -> Element {
    for (size_t a = 0; a < index.size(); ++a) index[a] = first[a] + index[a] * step[a];
    return Dim(ravel(index, x.shape));
  });
}

Known gather(const InferContext& c, const Operand& x, const std::vector<int64_t>& shape, int64_t count) {
  const auto indices = operand(c, 1);
  if (!indices) return std::nullopt;
  const auto axis = static_cast<size_t>(c.node.int_attr("axis"));
  const bool elements = c.node.op == Op::gather_elements;
  return pick(x, shape, count, [&](const std::vector<int64_t>& index) -> Element {
    const auto at = index.begin() + static_cast<int64_t>(axis);
    const size_t span = indices->shape.size();
    const std::vector<int64_t> where =
        elements ? index : std::vector<int64_t>(at, at + static_cast<int64_t>(span));
    const Dim& chosen = indices->elements[static_cast<size_t>(ravel(where, indices->shape))];
    if (!chosen.is_const()) return std::nullopt;
    const int64_t extent = x.shape[axis], i = chosen.value() < 0 ? chosen.value() + extent : chosen.value();
    if (i < 0 || i >= extent) return std::nullopt;
    std::vector<int64_t> from = index;
    if (!elements) {
      from.assign(index.begin(), at);
      from.push_back(0);
      from.insert(from.end(), at + static_cast<int64_t>(span), index.end());
    }
    from[axis] = i;
    return Dim(ravel(from, x.shape));
  });
}

Known concat(const InferContext& c, const std::vector<int64_t>& shape, int64_t count) {
  const auto axis = static_cast<size_t>(c.node.int_attr("axis"));
  std::vector<Operand> parts;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    auto x = operand(c, i);
    if (!x) return std::nullopt;
    parts.push_back(std::move(*x));
  }
  std::vector<Dim> result;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int64_t> index = unravel(i, shape);
    size_t part = 0;
    while (index[axis] >= parts[part].shape[axis]) index[axis] -= parts[part++].shape[axis];
    result.push_back(parts[part].elements[static_cast<size_t>(ravel(index, parts[part].shape))]);
  }
  return result;
}

Known view(const InferContext& c, const std::vector<int64_t>& shape, int64_t count) {
  if (c.node.op == Op::concat) return concat(c, shape, count);
  if (c.node.op == Op::iota) {
    std::vector<Dim> result;
    for (int64_t i = 0; i < count; ++i)
      result.emplace_back(unravel(i, shape)[static_cast<size_t>(c.node.int_attr("axis"))]);
    return result;
  }
  const auto x = operand(c, 0);
  if (!x) return std::nullopt;
  switch (c.node.op) {
    case Op::reshape:
      return x->elements;
    case Op::expand: {
      std::vector<Dim> result;
      for (int64_t i = 0; i < count; ++i) result.push_back(at_broadcast(*x, unravel(i, shape)));
      return result;
    }
    case Op::transpose: {
      const std::vector<int64_t>& perm = c.node.ints_attr("perm");
      return pick(*x, shape, count, [&](const std::vector<int64_t>& index) -> Element {
        std::vector<int64_t> from(index.size());
        for (size_t a = 0; a < perm.size(); ++a) from[static_cast<size_t>(perm[a])] = index[a];
        return Dim(ravel(from, x->shape));
      });
    }
    case Op::tile:
      return pick(*x, shape, count, [&](std::vector<int64_t> index) -> Element {
        for (size_t a = 0; a < index.size(); ++a) index[a] %= x->shape[a];
        return Dim(ravel(index, x->shape));
      });
    case Op::slice:
      return slice(c, *x, shape, count);
    case Op::gather:
    case Op::gather_elements:
      return gather(c, *x, shape, count);
    default:
      return std::nullopt;
  }
}

Known by_class(const InferContext& c, const std::vector<int64_t>& shape, int64_t count) {
  if (is_elementwise(c.node.op)) {
    std::vector<Operand> x;
    for (size_t i = 0; i < c.operands.size(); ++i) {
      auto one = operand(c, i);
      if (!one) return std::nullopt;
      x.push_back(std::move(*one));
    }
    return elementwise(c.node, x, shape, count);
  }
  if (op_class(c.node.op) == OpClass::kView) return view(c, shape, count);
  if (c.node.op == Op::reduce) {
    const auto x = operand(c, 0);
    return x ? reduce(c.node, *x, shape, count) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

Known infer_known(const InferContext& c, const Type& result) {
  const bool integer = is_integer(result.dtype) || result.dtype == DType::kBool;
  if (!integer || !is_static(result.shape)) return std::nullopt;
  const std::vector<int64_t> shape = static_shape(result.shape);
  Known known;
  try {
    const int64_t count = num_elements(shape);
    if (count > kMaxKnown) return std::nullopt;
    known = by_class(c, shape, count);
  } catch (const Error&) {
    return std::nullopt;  // left 64 bits: data, no shape
  }
  if (known)
    for (Dim& d : *known)
      if (d.is_const()) d = wrap_to(result.dtype, d.value());
  return known;
}

}  // namespace thrice::ir
