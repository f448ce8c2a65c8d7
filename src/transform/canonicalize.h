// Small rewrites to one form, so that planning and kernels meet each idea once.
#pragma once
#include <cstdint>

#include "ir/graph.h"

namespace thrice::transform {

// Nodes that change nothing: identity, and casts, reshapes, transposes, expands, slices, tiles and concats
// whose result provably is their operand for every binding of the symbols (a symbol may be 0 or 1, so "moves
// only axes of length 1" counts only where the lengths are numbers). Returns nodes bypassed.
int64_t bypass_identities(ir::Graph& graph);

// transpose of transpose, reshape of reshape (where the outer shape is numbers without 0, whose meaning would
// change).
int64_t merge_views(ir::Graph& graph);

// Nodes that compute the same: same operator, operands, all attributes and result types. Random and control
// nodes are never merged. Equal small constants become one first. Returns nodes merged.
int64_t merge_common(ir::Graph& graph);

// The shape of a value is read from the graph's inputs where its extents follow from theirs, else from the
// first value that has them: no result need be there only for its shape. Needs the values that inference
// knows. Returns shapes rewritten.
int64_t read_shapes_of_inputs(ir::Graph& graph);

// A product of a constant matrix that is transposed before (a model that multiplies with its embedding's
// table) reads the matrix itself the other way round: nothing is turned in a run, and kernels see weights.
// Small ones were folded. Returns operands changed.
int64_t turn_weights(ir::Graph& graph);

// Three and more products of one operand with constant weights (queries, keys and values of attention), each
// with a constant vector added to it or each without: one product, and slices of its result. Returns products
// joined.
int64_t join_products(ir::Graph& graph);

// Constants, and comparisons of constants, that hide from query m the keys beyond m + shift, where an
// addition or a choice reads them: computed from the indices instead, for each reader anew, so that attention
// can see what they are and no matrix of the mask is kept or read. Folding would undo it: runs last. Returns
// readers changed.
int64_t unfold_masks(ir::Graph& graph);

// conv -> per-channel mul, add, sub, div by constants: into weights and bias, computed in float64 and rounded
// once. Only where the values between are read by nobody else and are no outputs, and where no scale is zero
// or not finite.
int64_t fold_conv_scale(ir::Graph& graph);

}  // namespace thrice::transform
