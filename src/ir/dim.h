// One extent of a shape: a number, or an expression over named symbols ("batch", "2*width + 1",
// "floordiv(width,4)").
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace thrice::ir {

using Bindings = std::map<std::string, int64_t>;  // symbol -> its value at run time

// Canonical polynomial over atoms; an atom is a symbol or an opaque floordiv / max / min / broadcast of two
// Dims.
// Two Dims compare equal exactly when their canonical forms agree, i.e. when they are PROVABLY equal for
// every binding; `!=` therefore means "not known to be equal". Arithmetic throws kInvalidModel on 64-bit
// overflow. Symbols stand for values >= 0; nothing else is assumed (a symbol may be 0 or 1).
class Dim {
 public:
  Dim(int64_t value = 0);  // NOLINT: implicit on purpose, shapes are written as lists of numbers
  static Dim symbol(const std::string& name);

  bool is_const() const;
  int64_t value() const;  // the constant; throws kInternal when symbolic
  std::string str() const;
  std::set<std::string> symbols() const;
  int64_t evaluate(const Bindings& bindings) const;  // throws kInvalidArgument naming an unbound symbol
  Dim substitute(const Bindings& bindings) const;    // bound symbols become numbers

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend bool operator==(const Dim& a, const Dim& b);
  friend bool operator<(const Dim& a, const Dim& b);  // any strict order, for maps

  // Symbol or opaque function; the inside of dim.cc, and of serialize.cc.
  struct Atom;
  using AtomPtr = std::shared_ptr<const Atom>;
  using Monomial = std::vector<AtomPtr>;  // sorted product of atoms; empty = the constant term
  using Term = std::pair<Monomial, int64_t>;
  const std::vector<Term>& terms() const { return terms_; }

 private:
  friend struct DimBuilder;
  std::vector<Term> terms_;  // highest degree first, the constant last; no zero coefficients; empty = 0
};

enum class AtomKind : uint8_t { kSymbol, kFloorDiv, kMax, kMin, kBroadcast };
struct Dim::Atom {
  AtomKind kind = AtomKind::kSymbol;
  std::string name;  // of a symbol
  Dim a, b;          // operands of a function
};

// Exact where the polynomial divides; rounds to minus infinity. A divisor that is 0 at evaluation throws
// kInvalidModel, unless it was cancelled before.
Dim floor_div(const Dim& a, const Dim& b);
Dim ceil_div(const Dim& a, const Dim& b);
Dim modulo(const Dim& a, const Dim& b);  // a - b * floor_div(a, b)
Dim dim_max(const Dim& a, const Dim& b);
Dim dim_min(const Dim& a, const Dim& b);
// Extent of two broadcast axes: a where they agree or b is 1, b where a is 1; evaluating any other pair
// throws kInvalidModel. A number c != 1 against a symbolic extent gives c: binding checks that the other is 1
// or c.
Dim broadcast(const Dim& a, const Dim& b);
bool is_nonnegative(const Dim& a);  // provably >= 0 for every binding

using Shape = std::vector<Dim>;
std::string shape_str(const Shape& shape);  // "[batch, 3, 48, width]"
Dim num_elements(const Shape& shape);
bool is_static(const Shape& shape);
std::vector<int64_t> static_shape(const Shape& shape);  // throws kInternal when symbolic
Shape to_shape(const std::vector<int64_t>& shape);

}  // namespace thrice::ir
