// A region: nodes that become one kernel program; a workload: the same cut out as a graph of its own, the
// unit that is tuned.
#pragma once
#include <string>
#include <vector>

#include "ir/infer.h"

namespace thrice::ir {

struct Region {
  std::vector<NodeId> nodes;     // topological
  std::vector<ValueId> inputs;   // values read from outside, constants included, in order of first use
  std::vector<ValueId> outputs;  // values read outside the region or graph outputs
};
Region make_region(const Graph& graph, std::vector<NodeId> nodes);

// True where contracting the region keeps the graph acyclic (no path leaves it and comes back).
bool is_convex(const Graph& graph, const Region& region);

// What families see. graph.inputs[i] corresponds to region.inputs[i] for each kept input and graph.outputs[i]
// to region.outputs[i].
//  - A constant of one element, and any constant integer that is a shape operand, stays a constant inside
//  (its value is part of the hash, and may be a literal in kernel text).
//  - Every other constant (weights) becomes an input, so that equal layers share one workload, and is marked
//  as one (Value::is_weight): what is made of it once may be kept.
//  - Each distinct non-constant Dim of an input becomes a symbol s0, s1, ... in order of appearance: equal
//  Dims share one.
struct Workload {
  Graph graph;
  std::vector<ValueId> inputs;   // outer value of graph.inputs[i]
  std::vector<ValueId> outputs;  // outer value of graph.outputs[i]
  std::vector<int32_t> origins;  // distinct outer origins, in order
  std::string hash;              // structural_hash(graph)
};
Workload extract(const Graph& graph, const Region& region);

// True where input i of the workload is only a shape operand: its value comes with the facts and it is no
// kernel argument.
bool is_shape_input(const Workload& workload, size_t i);

// Concrete facts of EVERY value of a workload graph (indexed by ValueId) from concrete facts of its inputs
// (index-aligned with graph.inputs). Throws kInvalidModel where shapes do not fit. Cost: linear in nodes;
// called once per new shape.
std::vector<Fact> bind(const Graph& graph, const std::vector<Fact>& inputs);

// Bindings that give a workload (or model) concrete extents: symbol -> value; facts of inputs at these
// bindings (shape operands from `known`).
std::vector<Fact> facts_at(const Graph& graph, const Bindings& bindings);

}  // namespace thrice::ir
