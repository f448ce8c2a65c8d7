// A model of padded batches -> one that computes on rows without padding (docs/decisions/0018). Same inputs,
// outputs and names; what is at padded positions of an output is zero.
#pragma once
#include <string>
#include <vector>

#include "transform/pack_axes.h"

namespace thrice::transform {

struct PackedOutput {
  enum class Kind {
    kExact,      // what the padded model gives, everywhere
    kPositions,  // where a position is no padding; zero elsewhere
    kPicked      // of the sequences whose picked position is no padding
  };
  Kind kind = Kind::kExact;
  PackAxes axes;
};

struct Packing {
  std::string mask;       // the input
  size_t mask_input = 0;  // its number
  std::string rows;       // the symbol of the number of rows
  std::vector<PackedOutput> outputs;
  std::vector<int64_t> picks;  // positions that outputs are picked at, from the end where negative
};

// Run after run_transforms, as the last rewrite. Proves, operator by operator, that no row depends on
// padding: token-wise operators, attention whose mask hides padded keys, masked pooling, picked positions.
// `mask`: name of the input [batch, length] with 1 where a position counts and 0 where it is padding; "" =
// the one that is called mask. Errors: kUnsupported naming the operator that stands in the way, or what is
// missing; kInvalidArgument for an unknown mask. The mask's name goes into the metadata (ir::kPackedMask).
Packing pack_tokens(ir::Graph& graph, const std::string& mask = "");

}  // namespace thrice::transform
