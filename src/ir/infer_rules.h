// The inside of inference: what a rule sees, and the rules by operator group. Only infer*.cc include this.
#pragma once
#include <fmt/format.h>
#include <thrice/status.h>

#include "ir/infer.h"

namespace thrice::ir {

using FreshSymbol = std::function<Dim(const std::string& hint)>;

struct InferContext {
  const Node& node;
  const std::vector<const Fact*>& operands;
  const FreshSymbol& fresh_symbol;

  bool has(size_t i) const { return i < operands.size() && operands[i] != nullptr; }
  const Fact& in(size_t i) const;  // throws kInvalidModel when absent
  const Type& type(size_t i) const { return in(i).type; }
  const Shape& shape(size_t i) const { return in(i).type.shape; }
  DType dtype(size_t i) const { return in(i).type.dtype; }
  int64_t rank(size_t i) const { return static_cast<int64_t>(shape(i).size()); }

  // Elements of a small integer operand, from Fact::known or its constant.
  std::optional<std::vector<Dim>> known(size_t i) const;
  // A shape operand: its length, and its elements where they are known. Throws kInvalidModel when it is no
  // i64 (or i32) vector, kUnsupported when its length is unknown.
  int64_t shape_operand_length(size_t i) const;
  // Elements of a float operand that is a constant; nullopt when unknown or absent.
  std::optional<std::vector<double>> numbers(size_t i) const;

  Dim fresh(size_t output, size_t axis) const;
  // Attribute `axis`, checked against [0, rank).
  size_t axis(const std::string& key, int64_t rank) const;
  // An ints attribute; `otherwise` for each of `count` entries when absent. Throws kInvalidModel on another
  // length.
  std::vector<int64_t> ints(const std::string& key, size_t count, int64_t otherwise) const;
  void require(bool condition, const char* what) const;  // kInvalidModel
  void require_same_dtype(size_t i, size_t j) const;
  [[noreturn]] void fail(const std::string& what) const;  // kInvalidModel naming the operator
};

std::optional<std::vector<Dim>> known_of(const Fact& fact);

Shape broadcast_shapes(const InferContext& c, const Shape& a, const Shape& b);
Dim unify(const InferContext& c, const Dim& a, const Dim& b);  // extents that must be equal

std::vector<Fact> infer_elementwise(const InferContext& c);
std::vector<Fact> infer_view(const InferContext& c);
std::vector<Fact> infer_reduce(const InferContext& c);
std::vector<Fact> infer_heavy(const InferContext& c);
std::vector<Fact> infer_spatial(
    const InferContext& c);  // conv, conv_transpose, pool, resize, grid_sample, roi_align
std::vector<Fact> infer_host(const InferContext& c);

// Control nodes; `bodies` (may be null) receives the bodies with their types filled. Body symbols are named
// after `prefix`.
std::vector<Fact> infer_control(const InferContext& c, const std::string& prefix,
                                std::vector<std::shared_ptr<const Graph>>* bodies);
// infer_graph with facts of inputs given (empty: from the graph) and a prefix for new symbols.
void infer_graph_with(Graph& graph, const std::vector<const Fact*>& inputs, const std::string& prefix);

// Value of result 0 as expressions, where operands are known and the operator is one that shape arithmetic
// uses.
std::optional<std::vector<Dim>> infer_known(const InferContext& c, const Type& result);

}  // namespace thrice::ir
