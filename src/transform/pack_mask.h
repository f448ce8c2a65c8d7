// What a value that is made of the padding mask alone says.
#pragma once
#include <optional>

#include "transform/pack_axes.h"

namespace thrice::transform {

// The value where the mask shows a position (key), and the one nearest to it where it hides.
struct PackMask {
  double shown = 0, hidden = 0;
  bool padding = false;  // hides what the padding mask hides
  bool causal = false;   // hides keys behind the query
  bool is_even = false;  // one number wherever it hides
};

// Looks at `value` as a mask of positions at `axes` (of keys at axes.keys, where there are some, for queries
// at axes.tokens), which other axes do not change. Whatever the spelling (comparisons, tables of indices,
// arithmetic): the part of the graph that makes it is evaluated for several batches, lengths and masks, and
// must be one number where the mask shows, and less (or more) where it hides. Only queries that are no
// padding count. nullopt: it is no such mask, or is made of other inputs.
std::optional<PackMask> mask_meaning(const ir::Graph& graph, const PackSizes& sizes, ir::ValueId mask,
                                     ir::ValueId value, const PackAxes& axes);

// Graph inputs whose elements (not only extents) a value is made of.
std::vector<ir::ValueId> inputs_behind(const ir::Graph& graph, ir::ValueId value);

}  // namespace thrice::transform
