// Where a batch of padded sequences lies in a value, and where its axes go in a reshape.
#pragma once
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace thrice::transform {

// Axes of a value; -1: it has none. `batch` may hold `inner` elements of each sequence (heads behind it);
// batch == tokens: one axis of all positions of all sequences. `keys`: second axis of positions, of scores.
struct PackAxes {
  int batch = -1, tokens = -1, keys = -1;
  int64_t inner = 1;
  bool operator==(const PackAxes&) const = default;
  bool has(int axis) const { return axis == batch || axis == tokens || axis == keys; }
};

// Extents of all values of a graph for a few batches and lengths: what axes are, is read off numbers.
class PackSizes {
 public:
  // The padded input of shape [batch, length] tells both. Throws kUnsupported where a graph has other free
  // extents, or such as depend on data.
  PackSizes(const ir::Graph& graph, ir::ValueId mask);
  // At one batch and length, for both probes.
  PackSizes(const ir::Graph& graph, ir::ValueId mask, int64_t batch, int64_t length);

  static constexpr size_t kProbes = 2;
  const std::vector<int64_t>& of(ir::ValueId value, size_t probe) const {
    return sizes_[probe][static_cast<size_t>(value)];
  }
  int64_t batch(size_t probe) const { return batch_[probe]; }
  int64_t length(size_t probe) const { return length_[probe]; }
  const ir::Bindings& bindings(size_t probe) const { return bindings_[probe]; }
  bool is_one(ir::ValueId value, int axis) const;     // axis < 0 counts as one
  bool is_batch(ir::ValueId value, int axis) const;   // extent of the batch
  bool is_length(ir::ValueId value, int axis) const;  // extent of the positions
  // The extent, where it is the same whatever batch and length.
  std::optional<int64_t> fixed(ir::ValueId value, int axis) const;
  // No more elements than the padded input has.
  bool is_small(ir::ValueId value) const;
  // First axis with the batch's extent and a later one with the length's.
  std::optional<PackAxes> padded_axes(ir::ValueId value) const;
  // Axes of a reshape's result; nullopt where it breaks one of them up.
  std::optional<PackAxes> reshaped(ir::ValueId from, const PackAxes& axes, ir::ValueId to) const;

 private:
  void fill(const ir::Graph& graph, ir::ValueId mask, size_t probe, int64_t batch, int64_t length);

  ir::Bindings bindings_[kProbes];
  int64_t batch_[kProbes] = {}, length_[kProbes] = {};
  std::vector<std::vector<int64_t>> sizes_[kProbes];
};

}  // namespace thrice::transform
