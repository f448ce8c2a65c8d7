#include "family/index.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>

namespace thrice::family {

using ir::Dim;

Index IndexTable::intern(const std::string& key, Node node) {
  const auto [it, fresh] = ids_.emplace(key, static_cast<int>(nodes_.size()));
  if (fresh) nodes_.push_back(std::move(node));
  return {it->second};
}

Index IndexTable::constant(int64_t value) {
  Node n;
  n.value = value;
  return intern(fmt::format("c{}", value), std::move(n));
}

Index IndexTable::var(const std::string& name) {
  Node n;
  n.kind = Kind::kVar;
  n.name = name;
  return intern("v" + name, std::move(n));
}

Index IndexTable::var(const std::string& name, const Dim& bound) {
  Node n;
  n.kind = Kind::kVar;
  n.name = name;
  n.bound = bound;
  n.has_bound = true;
  return intern("v" + name, std::move(n));
}

Index IndexTable::extent(const Dim& dim, const Source& source) {
  if (dim.is_const()) return constant(dim.value());
  Node n;
  n.kind = Kind::kExtent;
  n.name = "dim " + dim.str();
  n.bound = dim;
  n.has_bound = true;
  n.source = source;
  return intern(n.name, n);
}

Index IndexTable::extent(const std::string& key, const Source& source) {
  Node n;
  n.kind = Kind::kExtent;
  n.name = "ext " + key;
  n.source = source;
  return intern(n.name, n);
}

Index IndexTable::make(Kind kind, Index a, Index b) {
  Node n;
  n.kind = kind;
  n.a = a;
  n.b = b;
  return intern(fmt::format("{}:{},{}", static_cast<int>(kind), a.id, b.id), std::move(n));
}

bool IndexTable::dim_of(Index i, Dim* dim) const {
  const Node& n = node(i);
  if (n.kind == Kind::kConst) {
    *dim = Dim(n.value);
    return true;
  }
  if (n.kind == Kind::kExtent && n.has_bound) {
    *dim = n.bound;
    return true;
  }
  return false;
}

Source IndexTable::source_of(Index i) const {
  const Node& n = node(i);
  if (n.kind == Kind::kConst) return [value = n.value](const Facts&) { return value; };
  return n.source;
}

bool IndexTable::upper_bound(Index i, Dim* bound) const {
  const Node& n = node(i);
  if (n.kind == Kind::kConst) {
    if (n.value < 0) return false;
    *bound = Dim(n.value + 1);
    return true;
  }
  if (n.kind == Kind::kVar && n.has_bound) {
    *bound = n.bound;
    return true;
  }
  Dim d;
  if (n.kind == Kind::kMod && dim_of(n.b, &d)) {
    *bound = d;
    return true;
  }
  return false;
}

bool IndexTable::below(Index i, const Dim& limit) const {
  Dim bound;
  if (upper_bound(i, &bound)) {
    if (bound == limit) return true;
    if (bound.is_const() && limit.is_const() && bound.value() <= limit.value()) return true;
  }
  const Node& n = node(i);
  Dim divisor;
  if (n.kind == Kind::kDiv && dim_of(n.b, &divisor) && upper_bound(n.a, &bound)) {
    if (bound == divisor * limit) return true;
    if (bound.is_const() && divisor.is_const() && limit.is_const() && divisor.value() > 0 &&
        bound.value() <= divisor.value() * limit.value())
      return true;
  }
  return false;
}

Index IndexTable::add(Index a, Index b) {
  if (is_const(a, 0)) return b;
  if (is_const(b, 0)) return a;
  if (is_const(a) && is_const(b)) return constant(node(a).value + node(b).value);
  if (is_const(a)) std::swap(a, b);  // constants to the right, where they gather
  const Node left = node(a);
  if (is_const(b) && left.kind == Kind::kAdd && is_const(left.b))
    return add(left.a, constant(node(left.b).value + node(b).value));
  return make(Kind::kAdd, a, b);
}

Index IndexTable::sub(Index a, Index b) {
  if (is_const(b)) return add(a, constant(-node(b).value));
  if (a == b) return constant(0);
  return make(Kind::kSub, a, b);
}

Index IndexTable::mul(Index a, Index b) {
  if (is_const(a)) std::swap(a, b);
  if (is_const(b, 0)) return b;
  if (is_const(b, 1)) return a;
  if (is_const(a) && is_const(b)) return constant(node(a).value * node(b).value);
  Dim da, db;
  if (dim_of(a, &da) && dim_of(b, &db)) {  // a product of extents is an extent, so that equal sizes meet
    const Source sa = source_of(a), sb = source_of(b);
    return extent(da * db, [sa, sb](const Facts& facts) { return sa(facts) * sb(facts); });
  }
  const Node left = node(a);
  if (is_const(b) && left.kind == Kind::kMul && is_const(left.b))
    return mul(left.a, constant(node(left.b).value * node(b).value));
  return make(Kind::kMul, a, b);
}

bool IndexTable::exact_quotient(const Dim& d, const Dim& c, Dim* quotient) {
  if (c == Dim(0)) return false;
  if (d.is_const() != c.is_const() && d.is_const()) return false;
  *quotient = ir::floor_div(d, c);
  return *quotient * c == d;
}

Index IndexTable::dim_index(const Dim& d, Index whole, Index part) {
  const Source w = source_of(whole), p = source_of(part);
  return extent(d, [w, p](const Facts& facts) {
    const int64_t divisor = p(facts);
    return divisor == 0 ? 0 : w(facts) / divisor;
  });
}

Index IndexTable::div(Index a, Index b) {
  if (is_const(b, 1) || is_const(a, 0)) return a;
  if (is_const(a) && is_const(b) && node(b).value > 0) return constant(node(a).value / node(b).value);
  Dim d;
  if (dim_of(b, &d) && below(a, d)) return constant(0);
  const Node left = node(a);
  Dim inner;
  if (left.kind == Kind::kDiv && dim_of(left.b, &inner) && dim_of(b, &d)) return div(left.a, mul(left.b, b));
  Dim part, quotient;
  // (x * c + y) / (c * m) = x / m where 0 <= y < c.
  if (left.kind == Kind::kAdd && node(left.a).kind == Kind::kMul && dim_of(b, &d)) {
    const Node product = node(left.a);
    if (dim_of(product.b, &part) && below(left.b, part) && exact_quotient(d, part, &quotient))
      return div(product.a, dim_index(quotient, b, product.b));
  }
  // (x % (c * m)) / c = (x / c) % m.
  if (left.kind == Kind::kMod && dim_of(left.b, &part) && dim_of(b, &d) && exact_quotient(part, d, &quotient))
    return mod(div(left.a, b), dim_index(quotient, left.b, b));
  return make(Kind::kDiv, a, b);
}

Index IndexTable::mod(Index a, Index b) {
  if (is_const(b, 1)) return constant(0);
  if (is_const(a, 0)) return a;
  if (is_const(a) && is_const(b) && node(b).value > 0) return constant(node(a).value % node(b).value);
  Dim d;
  if (dim_of(b, &d) && below(a, d)) return a;
  const Node left = node(a);
  Dim part, quotient;
  // (x * c + y) % c = y where 0 <= y < c.
  if (left.kind == Kind::kAdd && node(left.a).kind == Kind::kMul && dim_of(b, &d) && below(left.b, d) &&
      dim_of(node(left.a).b, &part) && part == d)
    return left.b;
  // (x % (c * m)) % c = x % c.
  if (left.kind == Kind::kMod && dim_of(left.b, &part) && dim_of(b, &d) && exact_quotient(part, d, &quotient))
    return mod(left.a, b);
  return make(Kind::kMod, a, b);
}

Index IndexTable::min(Index a, Index b) {
  if (a == b) return a;
  if (is_const(a) && is_const(b)) return constant(std::min(node(a).value, node(b).value));
  return make(Kind::kMin, a, b);
}

Index IndexTable::max(Index a, Index b) {
  if (a == b) return a;
  if (is_const(a) && is_const(b)) return constant(std::max(node(a).value, node(b).value));
  return make(Kind::kMax, a, b);
}

Coords IndexTable::split(Index flat, const std::vector<Index>& dims) {
  Coords coords(dims.size());
  size_t top = 0;  // the first axis that is not provably of length 1 keeps no remainder: flat is in range
  while (top < dims.size() && is_const(dims[top], 1)) ++top;
  Index inner = constant(1);
  for (size_t k = dims.size(); k-- > 0;) {
    if (is_const(dims[k], 1)) {
      coords[k] = constant(0);
      continue;
    }
    const Index quotient = div(flat, inner);
    coords[k] = k == top ? quotient : mod(quotient, dims[k]);
    inner = mul(inner, dims[k]);
  }
  return coords;
}

namespace {
// coordinate = (flat / inner) [% extent]
struct Part {
  Index flat, inner;
  bool has_extent = false;
  Index extent;
};
}  // namespace

Index IndexTable::linear(const Coords& coords, const std::vector<Index>& dims) {
  const auto part_of = [&](Index i) {
    Part part{i, constant(1), false, {}};
    if (node(part.flat).kind == Kind::kMod) {
      part.has_extent = true;
      part.extent = node(part.flat).b;
      part.flat = node(part.flat).a;
    }
    if (node(part.flat).kind == Kind::kDiv) {
      part.inner = node(part.flat).b;
      part.flat = node(part.flat).a;
    }
    return part;
  };
  // Fold from the right: `here` is the coordinate over the axes seen so far, of extent `extent`.
  Index sum = constant(0), stride = constant(1);
  size_t k = coords.size();
  while (k > 0) {
    --k;
    Index here = coords[k], extent = dims[k];
    while (k > 0) {
      if (is_const(dims[k - 1], 1) && is_const(coords[k - 1], 0)) {
        --k;
        continue;
      }
      const Index outer = coords[k - 1];
      if (is_const(extent, 1) && is_const(here, 0)) {
        here = outer;
        extent = dims[k - 1];
        --k;
        continue;
      }
      const Part low = part_of(here), high = part_of(outer);
      // `here` may have lost its remainder because it is provably below the extent; then it does not merge
      // with an outer part of the same flat, which would be zero anyway.
      const bool full = low.has_extent && low.extent == extent;
      if (!(full && high.flat == low.flat && high.inner == mul(low.inner, extent))) break;
      if (high.has_extent && !(high.extent == dims[k - 1])) break;
      extent = mul(extent, dims[k - 1]);
      here = div(low.flat, low.inner);
      if (high.has_extent) here = mod(here, extent);
      --k;
    }
    sum = add(mul(here, stride), sum);
    stride = mul(stride, extent);
  }
  return sum;
}

bool IndexTable::depends(Index i, Index on) const {
  if (i == on) return true;
  const Node& n = node(i);
  if (n.a.id >= 0 && depends(n.a, on)) return true;
  return n.b.id >= 0 && depends(n.b, on);
}

bool IndexTable::any_depends(const Coords& coords, Index on) const {
  for (const Index c : coords)
    if (depends(c, on)) return true;
  return false;
}

std::optional<int64_t> IndexTable::slope(Index i, Index on) const {
  if (i == on) return 1;
  if (!depends(i, on)) return 0;
  const Node& n = node(i);
  if (n.kind != Kind::kAdd && n.kind != Kind::kSub && n.kind != Kind::kMul) return std::nullopt;
  const auto a = slope(n.a, on), b = slope(n.b, on);
  if (!a || !b) return std::nullopt;
  if (n.kind == Kind::kAdd) return *a + *b;
  if (n.kind == Kind::kSub) return *a - *b;
  if (is_const(n.b) && *b == 0) return *a * node(n.b).value;
  if (is_const(n.a) && *a == 0) return *b * node(n.a).value;
  return std::nullopt;
}

bool IndexTable::multiple_of(Index i, Index on, int64_t factor) const {
  if (i == on || factor == 1) return true;
  const Node& n = node(i);
  switch (n.kind) {
    case Kind::kConst:
      return n.value % factor == 0;
    case Kind::kAdd:
    case Kind::kSub:
    case Kind::kMin:
    case Kind::kMax:
      return multiple_of(n.a, on, factor) && multiple_of(n.b, on, factor);
    case Kind::kMul:
      return multiple_of(n.a, on, factor) || multiple_of(n.b, on, factor);
    case Kind::kMod:
      return multiple_of(n.a, on, factor) && multiple_of(n.b, on, factor);
    default:
      return false;
  }
}

}  // namespace thrice::family
