// Partition of a graph's device nodes into regions, kept acyclic while groups merge.
#pragma once
#include <memory>
#include <vector>

#include "analysis/placement.h"
#include "ir/region.h"

namespace thrice::plan {

// Groups of node indices; every executed node (device, alias, host, control) is in exactly one group. Merging
// two groups is allowed only where no path leaves the union and comes back into it. Copyable: a trial merge
// is made on a copy.
class Grouping {
 public:
  Grouping(const ir::Graph& graph, const analysis::Placement& placement);  // one group a node

  int group_of(ir::NodeId node) const { return group_of_[static_cast<size_t>(node)]; }  // -1: nowhere
  const std::vector<ir::NodeId>& nodes(int group) const { return *groups_[static_cast<size_t>(group)]; }
  // Groups that produce an operand of `group`, latest first; itself left out.
  std::vector<int> producers(int group) const;
  bool can_merge(int a, int b) const;                  // acyclic afterwards
  std::vector<ir::NodeId> merged(int a, int b) const;  // node lists merged in topological order
  void merge(int into, int from);
  // Non-empty groups in an order in which every group comes after its producers; among ready ones the one
  // whose first node comes first.
  std::vector<int> ordered() const;

 private:
  bool reaches(int from, int to) const;  // over at least one other group
  std::vector<int> consumers(int group) const;
  const ir::Graph* graph_;
  std::shared_ptr<const std::vector<std::vector<ir::NodeId>>>
      readers_;  // consumers of each value; shared by copies
  std::vector<int> group_of_;
  using Nodes = std::shared_ptr<const std::vector<ir::NodeId>>;  // shared by copies
  std::vector<Nodes> groups_;
};

}  // namespace thrice::plan
