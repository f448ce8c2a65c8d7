// Seeded input kinds for verification (docs/numerics.md): the same kind, seed and type give the same tensor
// on every machine.
#pragma once
#include "ir/graph.h"

namespace thrice::ir {

enum class InputKind {
  kSmallIntegers,
  kNormal,
  kUniform,
  kHeavyTail,
  kWideRange,
  kOutliers,
  kEdgeValues,
  kPositive  // [1, 2): inside the domain of roots and logarithms; for what the other kinds leave without a
             // number
};
const char* input_kind_name(InputKind kind);

// Floats by kind; integers uniform in [low, high) (bool: coin). Values are rounded to the dtype.
Tensor make_input(DType dtype, const std::vector<int64_t>& shape, InputKind kind, uint64_t seed,
                  int64_t low = -4, int64_t high = 5);

// Metadata of a graph whose sequences are packed (transform/pack_tokens.h): the name of its mask input.
inline constexpr const char* kPackedMask = "thrice.packed_mask";
// Operator that attention of packed sequences comes from: one kernel always, its parts would compute rows by
// rows.
inline constexpr const char* kPackedAttention = "PackedAttention";
// Ones and zeros [batch, length]: each sequence is as long as `lengths` says, or as `seed` draws, from 1 to
// all.
Tensor padding_mask(DType dtype, const std::vector<int64_t>& shape, uint64_t seed);
Tensor padding_mask(DType dtype, const std::vector<int64_t>& shape, const std::vector<int64_t>& lengths);

// Inputs for a whole graph at given bindings: index operands of gather/scatter stay inside their axis,
// lengths stay positive, a packed graph's mask has
// sequences of drawn lengths, everything else by kind.
std::vector<Tensor> make_inputs(const Graph& graph, const Bindings& bindings, InputKind kind, uint64_t seed);

}  // namespace thrice::ir
