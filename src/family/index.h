// Integer expressions over coordinates and extents: hash-consed, simplified as they are made, printed only
// when used.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "family/program.h"

namespace thrice::family {

struct Index {
  int id = -1;
  bool operator==(const Index&) const = default;
  auto operator<=>(const Index&) const = default;
};
using Coords = std::vector<Index>;

// Table of the expressions of one kernel. All values are 32-bit; div and mod are for non-negative operands
// only.
class IndexTable {
 public:
  enum class Kind { kConst, kVar, kExtent, kAdd, kSub, kMul, kDiv, kMod, kMin, kMax };
  struct Node {
    Kind kind = Kind::kConst;
    int64_t value = 0;       // kConst
    std::string name;        // kVar: identifier; kExtent: unique key
    Index a, b;              // operators
    ir::Dim bound;           // kVar: 0 <= value < bound (when has_bound); kExtent: the extent as a Dim
    bool has_bound = false;  // kVar: bound is meaningful; kExtent: it is a Dim
    Source source;           // kExtent
  };

  Index constant(int64_t value);
  // A C identifier that is in scope wherever it is used; two calls with one name give one Index.
  Index var(const std::string& name);
  Index var(const std::string& name, const ir::Dim& bound);  // 0 <= var < bound
  // An extent as a Dim: literal when constant. `source` tells its value; equal Dims share the first source.
  Index extent(const ir::Dim& dim, const Source& source);
  // Any other run-time integer; `key` says what it is ("n3.start0"), equal keys share one.
  Index extent(const std::string& key, const Source& source);

  Index add(Index a, Index b);
  Index sub(Index a, Index b);
  Index mul(Index a, Index b);
  Index div(Index a, Index b);
  Index mod(Index a, Index b);
  Index min(Index a, Index b);
  Index max(Index a, Index b);

  // Coordinates of flat position `flat` in a box of extents `dims`, row-major.
  Coords split(Index flat, const std::vector<Index>& dims);
  // Inverse: sum of coordinate * stride; merges what `split` made, so that linear(split(i, d), d) is i.
  Index linear(const Coords& coords, const std::vector<Index>& dims);

  const Node& node(Index i) const { return nodes_[static_cast<size_t>(i.id)]; }
  bool is_const(Index i) const { return node(i).kind == Kind::kConst; }
  bool is_const(Index i, int64_t value) const { return is_const(i) && node(i).value == value; }
  bool depends(Index i, Index on) const;
  bool any_depends(const Coords& coords, Index on) const;
  // How much `i` grows when `on` grows by one; nullopt where that is not one known number.
  std::optional<int64_t> slope(Index i, Index on) const;
  // Whether `i` is provably a multiple of `factor` wherever `on` is.
  bool multiple_of(Index i, Index on, int64_t factor) const;

 private:
  Index make(Kind kind, Index a, Index b);
  Index intern(const std::string& key, Node node);
  bool dim_of(Index i, ir::Dim* dim) const;         // i is a constant or a Dim extent
  bool below(Index i, const ir::Dim& limit) const;  // i < limit is provable
  // d / c where that is exact and provable.
  static bool exact_quotient(const ir::Dim& d, const ir::Dim& c, ir::Dim* quotient);
  Index dim_index(const ir::Dim& d, Index whole, Index part);  // the extent d = whole / part
  bool upper_bound(Index i, ir::Dim* bound) const;             // some Dim that i is provably below
  std::vector<Node> nodes_;
  std::map<std::string, int> ids_;
  Source source_of(Index i) const;
};

}  // namespace thrice::family
