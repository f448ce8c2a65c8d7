// A quick key of a set of nodes: equal keys, equal workloads. Layers of a model repeat, and cutting a
// workload out takes a hundred times as long.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace thrice::plan {

using Signature = std::array<uint64_t, 2>;

// Finer than the structural hash of the workload: symbolic extents count as the model spells them. The graph
// must outlive it. Not thread-safe.
class RegionSignatures {
 public:
  explicit RegionSignatures(const ir::Graph& graph);
  Signature of(const std::vector<ir::NodeId>& nodes);  // ascending

 private:
  uint64_t value_class(ir::ValueId v) const;
  const ir::Graph& graph_;
  std::vector<std::vector<ir::NodeId>> readers_;  // by value
  std::vector<uint8_t> is_output_;                // by value
  std::vector<uint64_t> node_class_, value_class_;
  std::vector<int32_t> node_place_, value_place_;  // -1 outside a call
};

}  // namespace thrice::plan
