#include "ir/dim.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <compare>
#include <numeric>

namespace thrice::ir {
namespace {

using Atom = Dim::Atom;
using AtomPtr = Dim::AtomPtr;
using Monomial = Dim::Monomial;
using Term = Dim::Term;

[[noreturn]] void overflow() {
  throw Error(Code::kInvalidModel, "arithmetic on the extents of a shape leaves 64 bits");
}
int64_t add_checked(int64_t a, int64_t b) {
  int64_t r = 0;
  if (__builtin_add_overflow(a, b, &r)) overflow();
  return r;
}
int64_t mul_checked(int64_t a, int64_t b) {
  int64_t r = 0;
  if (__builtin_mul_overflow(a, b, &r)) overflow();
  return r;
}
int64_t floor_div_int(int64_t a, int64_t b) {
  if (b == 0) throw Error(Code::kInvalidModel, "an extent of a shape is divided by zero");
  if (b == -1) return mul_checked(a, -1);
  const int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}
int64_t broadcast_int(int64_t a, int64_t b) {
  if (a == b || b == 1) return a;
  if (a == 1) return b;
  throw Error(Code::kInvalidModel, fmt::format("extents {} and {} do not broadcast", a, b));
}

std::strong_ordering compare_dims(const Dim& a, const Dim& b);

std::strong_ordering compare_atoms(const AtomPtr& a, const AtomPtr& b) {
  if (a == b) return std::strong_ordering::equal;
  if (auto c = a->kind <=> b->kind; c != 0) return c;
  if (auto c = a->name.compare(b->name) <=> 0; c != 0) return c;
  if (auto c = compare_dims(a->a, b->a); c != 0) return c;
  return compare_dims(a->b, b->b);
}

// Graded lexicographic, highest first: the order that polynomial division needs (compatible with products),
// and the order in which terms are printed.
std::strong_ordering compare_monomials(const Monomial& a, const Monomial& b) {
  if (auto c = b.size() <=> a.size(); c != 0) return c;
  for (size_t i = 0; i < a.size(); ++i)
    if (auto c = compare_atoms(a[i], b[i]); c != 0) return c;
  return std::strong_ordering::equal;
}

std::strong_ordering compare_dims(const Dim& a, const Dim& b) {
  const auto& x = a.terms();
  const auto& y = b.terms();
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (auto c = compare_monomials(x[i].first, y[i].first); c != 0) return c;
    if (auto c = x[i].second <=> y[i].second; c != 0) return c;
  }
  return x.size() <=> y.size();
}

Monomial multiply(const Monomial& a, const Monomial& b) {
  Monomial r(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), r.begin(),
             [](const AtomPtr& x, const AtomPtr& y) { return compare_atoms(x, y) < 0; });
  return r;
}

// a / b where b's atoms are all among a's.
bool divides(const Monomial& b, const Monomial& a, Monomial& quotient) {
  quotient.clear();
  size_t j = 0;
  for (const AtomPtr& atom : a) {
    if (j < b.size() && compare_atoms(atom, b[j]) == 0)
      ++j;
    else
      quotient.push_back(atom);
  }
  return j == b.size();
}

}  // namespace

// Makes Dims from terms; the only code that writes Dim::terms_.
struct DimBuilder {
  static Dim sorted(std::vector<Term> terms) {
    Dim d;
    d.terms_ = std::move(terms);
    return d;
  }
  static Dim single(Monomial monomial, int64_t coefficient) {
    return coefficient == 0 ? Dim() : sorted({{std::move(monomial), coefficient}});
  }
  static Dim canonical(std::vector<Term> terms) {
    std::sort(terms.begin(), terms.end(),
              [](const Term& x, const Term& y) { return compare_monomials(x.first, y.first) < 0; });
    std::vector<Term> merged;
    for (Term& t : terms) {
      if (!merged.empty() && compare_monomials(merged.back().first, t.first) == 0)
        merged.back().second = add_checked(merged.back().second, t.second);
      else
        merged.push_back(std::move(t));
    }
    std::erase_if(merged, [](const Term& t) { return t.second == 0; });
    return sorted(std::move(merged));
  }
  static Dim function(AtomKind kind, const Dim& a, const Dim& b) {
    auto atom = std::make_shared<Atom>();
    atom->kind = kind;
    atom->a = a;
    atom->b = b;
    return single({std::move(atom)}, 1);
  }
};

Dim::Dim(int64_t value) {
  if (value != 0) terms_.push_back({{}, value});
}

Dim Dim::symbol(const std::string& name) {
  auto atom = std::make_shared<Atom>();
  atom->name = name;
  return DimBuilder::single({std::move(atom)}, 1);
}

bool Dim::is_const() const { return terms_.empty() || (terms_.size() == 1 && terms_[0].first.empty()); }

int64_t Dim::value() const {
  if (!is_const()) throw Error(Code::kInternal, fmt::format("the extent {} is not a number", str()));
  return terms_.empty() ? 0 : terms_[0].second;
}

Dim operator+(const Dim& a, const Dim& b) {
  std::vector<Term> terms = a.terms();
  terms.insert(terms.end(), b.terms().begin(), b.terms().end());
  return DimBuilder::canonical(std::move(terms));
}

Dim operator-(const Dim& a, const Dim& b) { return a + b * Dim(-1); }

Dim operator*(const Dim& a, const Dim& b) {
  std::vector<Term> terms;
  terms.reserve(a.terms().size() * b.terms().size());
  for (const Term& x : a.terms())
    for (const Term& y : b.terms())
      terms.push_back({multiply(x.first, y.first), mul_checked(x.second, y.second)});
  return DimBuilder::canonical(std::move(terms));
}

bool operator==(const Dim& a, const Dim& b) { return compare_dims(a, b) == 0; }
bool operator<(const Dim& a, const Dim& b) { return compare_dims(a, b) < 0; }

namespace {

// The atom a Dim consists of, or null.
const Atom* only_atom(const Dim& d) {
  const auto& t = d.terms();
  return t.size() == 1 && t[0].second == 1 && t[0].first.size() == 1 ? t[0].first[0].get() : nullptr;
}

// floor(a / c) for a number c > 0: parts of a that c divides leave, the rest is reduced by its common factor.
// Each coefficient is brought into [0, c), so that equal quotients get equal forms.
Dim floor_div_by_number(const Dim& a, int64_t c) {
  if (c == 1) return a;
  std::vector<Term> whole, rest;
  int64_t constant = 0, factor = c;
  for (const Term& t : a.terms()) {
    const int64_t q = floor_div_int(t.second, c), r = t.second - q * c;
    if (q != 0) whole.push_back({t.first, q});
    if (r == 0) continue;
    if (t.first.empty()) {
      constant = r;
    } else {
      rest.push_back({t.first, r});
      factor = std::gcd(factor, r);
    }
  }
  Dim result = DimBuilder::canonical(std::move(whole));
  if (rest.empty()) return result;  // 0 <= constant < c
  for (Term& t : rest) t.second /= factor;
  const int64_t left = c / factor;
  Dim inner = DimBuilder::canonical(std::move(rest)) + Dim(constant / factor);
  if (left == 1) return result + inner;
  // floor(floor(x / m) / n) = floor(x / (m n)); with an added constant k: floor((x + k m) / (m n)).
  const Dim offset = Dim(inner.terms().back().first.empty() ? inner.terms().back().second : 0);
  if (const Atom* atom = only_atom(inner - offset);
      atom && atom->kind == AtomKind::kFloorDiv && atom->b.is_const() && atom->b.value() > 0)
    return result + floor_div_by_number(atom->a + offset * atom->b, mul_checked(left, atom->b.value()));
  return result + DimBuilder::function(AtomKind::kFloorDiv, inner, Dim(left));
}

void collect(AtomKind kind, const Dim& d, std::vector<Dim>& leaves) {
  const Atom* atom = only_atom(d);
  if (atom && atom->kind == kind) {
    collect(kind, atom->a, leaves);
    collect(kind, atom->b, leaves);
  } else {
    leaves.push_back(d);
  }
}

// Sorted distinct leaves of an associative, commutative, idempotent function.
std::vector<Dim> flatten(AtomKind kind, const Dim& a, const Dim& b) {
  std::vector<Dim> leaves;
  collect(kind, a, leaves);
  collect(kind, b, leaves);
  std::sort(leaves.begin(), leaves.end());
  leaves.erase(std::unique(leaves.begin(), leaves.end()), leaves.end());
  return leaves;
}

Dim nest(AtomKind kind, const std::vector<Dim>& leaves) {
  Dim result = leaves[0];
  for (size_t i = 1; i < leaves.size(); ++i) result = DimBuilder::function(kind, result, leaves[i]);
  return result;
}

// max (keep_larger) or min; drops each leaf that another one dominates.
Dim extreme(AtomKind kind, const Dim& a, const Dim& b) {
  const std::vector<Dim> leaves = flatten(kind, a, b);
  std::vector<Dim> kept;
  for (size_t i = 0; i < leaves.size(); ++i) {
    bool dominated = false;
    for (size_t j = 0; j < leaves.size() && !dominated; ++j) {
      if (i == j) continue;
      const Dim gap = kind == AtomKind::kMax ? leaves[j] - leaves[i] : leaves[i] - leaves[j];
      dominated = is_nonnegative(gap);
    }
    if (!dominated) kept.push_back(leaves[i]);
  }
  return nest(kind, kept);
}

Dim apply(AtomKind kind, const Dim& a, const Dim& b) {
  switch (kind) {
    case AtomKind::kFloorDiv:
      return floor_div(a, b);
    case AtomKind::kMax:
      return dim_max(a, b);
    case AtomKind::kMin:
      return dim_min(a, b);
    case AtomKind::kBroadcast:
      return broadcast(a, b);
    case AtomKind::kSymbol:
      break;
  }
  throw Error(Code::kInternal, "a symbol has no operands");
}

int64_t evaluate_atom(const Atom& atom, const Bindings& bindings) {
  if (atom.kind == AtomKind::kSymbol) {
    const auto it = bindings.find(atom.name);
    if (it == bindings.end())
      throw Error(Code::kInvalidArgument, fmt::format("the symbol '{}' of a shape has no value", atom.name));
    return it->second;
  }
  const int64_t a = atom.a.evaluate(bindings), b = atom.b.evaluate(bindings);
  switch (atom.kind) {
    case AtomKind::kFloorDiv:
      return floor_div_int(a, b);
    case AtomKind::kMax:
      return std::max(a, b);
    case AtomKind::kMin:
      return std::min(a, b);
    default:
      return broadcast_int(a, b);
  }
}

std::string atom_str(const Atom& atom) {
  static constexpr const char* kNames[] = {"", "floordiv", "max", "min", "broadcast"};
  if (atom.kind == AtomKind::kSymbol) return atom.name;
  return fmt::format("{}({},{})", kNames[static_cast<size_t>(atom.kind)], atom.a.str(), atom.b.str());
}

void collect_symbols(const Dim& d, std::set<std::string>& names) {
  for (const Term& t : d.terms()) {
    for (const AtomPtr& atom : t.first) {
      if (atom->kind == AtomKind::kSymbol) {
        names.insert(atom->name);
      } else {
        collect_symbols(atom->a, names);
        collect_symbols(atom->b, names);
      }
    }
  }
}

}  // namespace

std::string Dim::str() const {
  if (terms_.empty()) return "0";
  std::string text;
  for (const Term& t : terms_) {
    const bool negative = t.second < 0;
    const uint64_t size = negative ? 0 - static_cast<uint64_t>(t.second) : static_cast<uint64_t>(t.second);
    if (text.empty())
      text += negative ? "-" : "";
    else
      text += negative ? " - " : " + ";
    if (t.first.empty() || size != 1) text += fmt::format("{}", size);
    if (!t.first.empty() && size != 1) text += "*";
    for (size_t i = 0; i < t.first.size(); ++i) text += (i ? "*" : "") + atom_str(*t.first[i]);
  }
  return text;
}

std::set<std::string> Dim::symbols() const {
  std::set<std::string> names;
  collect_symbols(*this, names);
  return names;
}

int64_t Dim::evaluate(const Bindings& bindings) const {
  int64_t sum = 0;
  for (const Term& t : terms_) {
    int64_t product = t.second;
    for (const AtomPtr& atom : t.first) product = mul_checked(product, evaluate_atom(*atom, bindings));
    sum = add_checked(sum, product);
  }
  return sum;
}

Dim Dim::substitute(const Bindings& bindings) const {
  Dim sum;
  for (const Term& t : terms_) {
    Dim product(t.second);
    for (const AtomPtr& atom : t.first) {
      if (atom->kind == AtomKind::kSymbol) {
        const auto it = bindings.find(atom->name);
        product = product * (it == bindings.end() ? DimBuilder::single({atom}, 1) : Dim(it->second));
      } else {
        product = product * apply(atom->kind, atom->a.substitute(bindings), atom->b.substitute(bindings));
      }
    }
    sum = sum + product;
  }
  return sum;
}

bool is_nonnegative(const Dim& a) {
  for (const Term& t : a.terms()) {
    if (t.second < 0) return false;
    for (const AtomPtr& atom : t.first) {
      switch (atom->kind) {
        case AtomKind::kSymbol:
          break;
        case AtomKind::kFloorDiv:
        case AtomKind::kMin:
        case AtomKind::kBroadcast:
          if (!is_nonnegative(atom->a) || !is_nonnegative(atom->b)) return false;
          break;
        case AtomKind::kMax:
          if (!is_nonnegative(atom->a) && !is_nonnegative(atom->b)) return false;
          break;
      }
    }
  }
  return true;
}

Dim floor_div(const Dim& a, const Dim& b) {
  if (b.is_const()) {
    if (b.value() == 0) throw Error(Code::kInvalidModel, "an extent of a shape is divided by zero");
    if (a.is_const()) return floor_div_int(a.value(), b.value());
    if (b.value() < 0) return floor_div_by_number(a * Dim(-1), mul_checked(b.value(), -1));
    return floor_div_by_number(a, b.value());
  }
  // Long division; each step lowers the leading term. floor((q b + r) / b) = q + floor(r / b).
  const Term& lead = b.terms()[0];
  Dim quotient, rest;
  Dim left = a;
  while (!left.terms().empty()) {
    const Term t = left.terms()[0];
    Monomial m;
    if (t.second % lead.second == 0 && divides(lead.first, t.first, m)) {
      const Dim step = DimBuilder::single(std::move(m), t.second / lead.second);
      quotient = quotient + step;
      left = left - step * b;
    } else {
      const Dim part = DimBuilder::single(t.first, t.second);
      rest = rest + part;
      left = left - part;
    }
  }
  if (rest.terms().empty()) return quotient;
  return quotient + DimBuilder::function(AtomKind::kFloorDiv, rest, b);
}

Dim ceil_div(const Dim& a, const Dim& b) {
  if (is_nonnegative(b)) return floor_div(a + b - 1, b);
  return Dim(0) - floor_div(Dim(0) - a, b);
}
Dim modulo(const Dim& a, const Dim& b) { return a - b * floor_div(a, b); }
Dim dim_max(const Dim& a, const Dim& b) { return extreme(AtomKind::kMax, a, b); }
Dim dim_min(const Dim& a, const Dim& b) { return extreme(AtomKind::kMin, a, b); }

Dim broadcast(const Dim& a, const Dim& b) {
  if (a == b) return a;
  if (a.is_const() && b.is_const()) return broadcast_int(a.value(), b.value());
  if (a.is_const()) return a.value() == 1 ? b : a;
  if (b.is_const()) return b.value() == 1 ? a : b;
  return nest(AtomKind::kBroadcast, flatten(AtomKind::kBroadcast, a, b));
}

std::string shape_str(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + shape[i].str();
  return text + "]";
}

Dim num_elements(const Shape& shape) {
  Dim count(1);
  for (const Dim& d : shape)
    if (d.is_const() && d.value() == 0) return 0;
  for (const Dim& d : shape) count = count * d;
  return count;
}

bool is_static(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_const(); });
}

std::vector<int64_t> static_shape(const Shape& shape) {
  std::vector<int64_t> result;
  result.reserve(shape.size());
  for (const Dim& d : shape) result.push_back(d.value());
  return result;
}

Shape to_shape(const std::vector<int64_t>& shape) { return {shape.begin(), shape.end()}; }

}  // namespace thrice::ir
