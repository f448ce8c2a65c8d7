// Edits that every pass needs. They keep graph.outputs in mind: an output may only stand for a value that a
// node made and that is no output yet, so that callers own what they get.
#pragma once
#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace thrice::transform {

bool is_output(const ir::Graph& graph, ir::ValueId value);

// Collects "use b instead of a" and applies them in one sweep.
class Replacements {
 public:
  explicit Replacements(const ir::Graph& graph);
  // What `value` stands for by now.
  ir::ValueId of(ir::ValueId value) const;
  // False, and nothing happens, where the replacement would break an output (see the head).
  bool replace(ir::Graph& graph, ir::ValueId from, ir::ValueId to);
  void apply(ir::Graph& graph) const;
  int64_t count() const { return count_; }

 private:
  std::vector<ir::ValueId> target_;
  int64_t count_ = 0;
};

// Removes nodes that nobody needs; results that nobody reads become kNoValue where others of the node are
// read. Returns the number of nodes removed.
int64_t remove_dead(ir::Graph& graph);

// Exchanges the nodes and numbers the producers of all values anew.
void exchange_nodes(ir::Graph& graph, std::vector<ir::Node> nodes);

// Drops values that nothing mentions, and origins that no node has; numbers the rest anew.
void compact(ir::Graph& graph);

// The constant behind a value, or nullptr.
const ir::Tensor* constant_of(const ir::Graph& graph, ir::ValueId value);

}  // namespace thrice::transform
