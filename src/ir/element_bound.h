// A bound for every element of a result (docs/numerics.md): running error analysis beside the float64
// evaluation.
#pragma once
#include <optional>

#include "ir/evaluate.h"

namespace thrice::ir {

// For each output of `graph`: how far a correct kernel in the graph's dtypes may be from the float64
// reference, one number an element (row-major, +Inf = no bound for this element), or nullopt where nothing
// can be said (integers, strings, control flow, operators without a rule).
//  - Products, convolutions, sums: 1e-5 (|A||B|), plus what the operands' own bounds contribute.
//  - Other operators: a small multiple of the rounding unit of the result's dtype, plus the operands' bounds
//  through
//    a bound of the derivative.
// Integers that were decided by inexact floats (argmax, comparisons) end what can be said about their users.
// `inputs` in the order of graph.inputs, exact. `values`: by value of the graph, its float64 evaluation where
// that is known already; what is missing is computed and left there. Null: computed and dropped. Cost: one to
// two evaluations beside that. Errors: as evaluate_graph.
std::vector<std::optional<std::vector<double>>> element_bounds(const Graph& graph,
                                                               const std::vector<ArrayPtr>& inputs,
                                                               std::vector<ArrayPtr>* values = nullptr);

}  // namespace thrice::ir
