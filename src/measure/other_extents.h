// The extents at which a schedule is judged besides those that it is tuned for.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ir/region.h"

namespace thrice::measure {

struct OtherExtents {
  std::vector<ir::Fact> facts;  // of the workload's inputs
  std::string text;             // "s0=2501 s1=3"
};
// Every symbol at about half its extent, made odd (one more where it is 1 or 2): no multiple of a tile, no
// power of two, and less memory than what was tuned. nullopt: nothing is symbolic, or the workload cannot
// have these extents. `facts` are those it is tuned for; tensors that they point at must outlive the result.
std::optional<OtherExtents> other_extents(const ir::Workload& workload, const std::vector<ir::Fact>& facts,
                                          const ir::Bindings& bindings);

}  // namespace thrice::measure
