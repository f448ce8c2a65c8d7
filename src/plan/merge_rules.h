// When is it worth to run two groups as one kernel? The greedy planner's rules, each with a sentence for
// `explain`. The planner "dp" shares the bounds and what may come before a core; the rest it prices.
#pragma once
#include <string>
#include <vector>

#include "family/family.h"
#include "ir/region.h"

namespace thrice::plan {

constexpr size_t kMaxRegionNodes = 64;  // longer chains gain nothing more and cost registers and compile time
constexpr size_t kMaxRegionBuffers =
    24;  // kernel arguments: OpenCL guarantees 1024 bytes, registers hold about so many pointers

// Views that lead to one element each, and multiplication by a number: attention may read through them.
bool is_read_through(const ir::Graph& graph, const ir::Node& node);

// What a merge of groups (sorted node list `nodes`) would be; refusal empty = do it.
struct MergeVerdict {
  std::string refusal;
  const family::Family* family = nullptr;
};
// `consumer` = the nodes whose operands the others produce; the rest of `nodes` are producers.
MergeVerdict judge_merge(const ir::Graph& graph, const std::vector<ir::NodeId>& nodes,
                         const std::vector<ir::NodeId>& consumer);

}  // namespace thrice::plan
