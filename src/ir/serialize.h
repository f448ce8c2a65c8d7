// A graph as text, for releases: JSON beside a list of its constants, so that a release can hold weights
// apart.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"

namespace thrice::ir {

struct SerializedGraph {
  std::string json;  // stable: equal graphs give equal text
  std::vector<Tensor>
      constants;  // referred to by index, bodies' too; each distinct tensor once; bytes are shared
};

SerializedGraph serialize(const Graph& graph);

// Inverse. The text may be hostile: every id, count and type is checked, and the result passes verify().
// Throws kCorrupt saying what is wrong. Constants' bytes are shared, not copied.
Graph deserialize(const std::string& json, const std::vector<Tensor>& constants);

}  // namespace thrice::ir
