// Results in the storage of operands, once schedules are chosen.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "artifact/plan.h"
#include "flow/search.h"
#include "ir/region.h"

namespace thrice::flow {

// Sets `in_place=1` on the chosen schedules of regions that write over an operand at these extents
// (exec/in_place.h), in the plan and in `results`, with a note of what that saves; nothing where it saves
// nothing. The full gate that follows checks them in place too, and takes others where they fail.
void write_in_place(const std::shared_ptr<const ir::Graph>& graph, const ir::Bindings& bindings,
                    artifact::Plan& plan, std::map<std::string, Tuned>& results,
                    std::vector<std::string>& notes);

}  // namespace thrice::flow
