// Structural checks, text form and structural hash of a graph.
#pragma once
#include "ir/graph.h"

namespace thrice::ir {

// Throws kInternal naming the node when an invariant of graph.h or docs/ops.md is broken (ids in range,
// topological order, arity, dtypes).
void verify(const Graph& graph);

// Text form for people and golden tests: one node a line, `%3 = matmul(%1, %2) {trans_b=1} : f32[batch, 64]`.
std::string print(const Graph& graph);

// 128-bit structural hash as 32 hex digits: operators, attributes, types, edges, constants' contents (unless
// values are left out); NOT names, origins, metadata.
std::string structural_hash(const Graph& graph, bool with_constant_values = true);

}  // namespace thrice::ir
