// The error of the ordinary operator: what float32 (or the output's dtype) costs whoever computes it node by
// node. Limits are stated relative to it (docs/numerics.md).
#pragma once
#include <vector>

#include "ir/evaluate.h"
#include "ir/region.h"

namespace thrice::measure {

// Evaluates the graph as an ordinary implementation would: each node's float result is rounded to its dtype,
// and results of long sums carry the error that sequential accumulation in float32 has, 0.5 * 2^-23 *
// sqrt(terms) of their size with a sign drawn by element (at most 5e-6, so that no limit on one sum passes
// 1e-5). `facts`: of every value (ir::bind). `exact`: float64 results by value id where they are at hand (may
// be empty): a node whose operands are exact, like the product at the head of a region, is not evaluated a
// second time. Returns the graph's outputs.
std::vector<ir::ArrayPtr> evaluate_ordinary(const ir::Graph& graph, const std::vector<ir::ArrayPtr>& inputs,
                                            const std::vector<ir::Fact>& facts,
                                            const std::vector<ir::ArrayPtr>& exact = {});

// Terms that one output element of `node` sums; 1 for operators that do not accumulate.
int64_t accumulated_terms(const ir::Node& node, const std::vector<ir::Fact>& facts);

}  // namespace thrice::measure
