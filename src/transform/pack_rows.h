// The nodes that turn padded values into rows without padding, and back. Rows follow each other sequence by
// sequence, in the order of positions; a packed value has one batch that is as long as all sequences
// together.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "transform/pack_axes.h"

namespace thrice::transform {

class PackRows {
 public:
  // Nodes go to the end of `nodes`. `mask` is [batch, length]; what is not zero is a row.
  PackRows(ir::Graph& graph, std::vector<ir::Node>& nodes, ir::ValueId mask);

  // The padded value's elements at the rows; an axis < 0, of batch or of tokens, is one that it does not
  // have. axes.tokens becomes the axis of rows, axes.batch has length one.
  ir::ValueId pack(ir::ValueId value, const PackAxes& axes);
  // Padded again, with `fill` between; the result is `into` where that is a value.
  ir::ValueId unpack(ir::ValueId packed, const PackAxes& axes, double fill, ir::ValueId into = ir::kNoValue);
  // Rows of [1, rows, ...] at the positions that `choose` takes out of numbers [batch, length]: zeros for
  // those that are padding.
  void pick(ir::ValueId packed, const ir::Node& choose, ir::ValueId into);
  // Scores of rows by rows, -Inf where a key belongs to another sequence (or is behind, where causal).
  ir::ValueId window(ir::ValueId scores, const PackAxes& axes, bool causal);
  // What all windows share.
  void prepare_window(bool causal);
  // A shape operand: extents, -1 where the number of rows stands.
  ir::ValueId shape_of_rows(const std::vector<int64_t>& extents);

  // One operator of its own: `name` is for people.
  ir::ValueId emit(const std::string& name, ir::Op op, std::vector<ir::ValueId> inputs,
                   ir::Attributes attrs = {}, ir::ValueId into = ir::kNoValue);
  // A node of the model with other operands; its results are new values.
  std::vector<ir::ValueId> copy(const ir::Node& node, const std::vector<ir::ValueId>& inputs);
  ir::ValueId number(DType dtype, double value);
  size_t emitted() const { return nodes_.size(); }
  ir::Node& node(size_t i) { return nodes_[i]; }
  // Type that inference will confirm: rank and dtype count here.
  const ir::Type& type(ir::ValueId value) const { return graph_.value(value).type; }

 private:
  void add(ir::Node node);
  ir::ValueId once(const std::string& what);
  ir::ValueId make(const std::string& what);
  ir::ValueId transposed(ir::ValueId value, const std::vector<int64_t>& perm,
                         ir::ValueId into = ir::kNoValue);
  ir::ValueId rows_first(ir::ValueId packed, const PackAxes& axes, double fill);

  ir::Graph& graph_;
  std::vector<ir::Node>& nodes_;
  const ir::ValueId mask_;
  std::map<std::string, ir::ValueId> made_;
};

}  // namespace thrice::transform
