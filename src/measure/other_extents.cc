#include "measure/other_extents.h"

#include <fmt/format.h>
#include <thrice/status.h>

namespace thrice::measure {

std::optional<OtherExtents> other_extents(const ir::Workload& workload, const std::vector<ir::Fact>& facts,
                                          const ir::Bindings& bindings) {
  if (bindings.empty()) return {};
  OtherExtents other;
  ir::Bindings values;
  for (const auto& [symbol, extent] : bindings) {
    values[symbol] = extent > 2 ? (extent / 2) | 1 : extent + 1;
    other.text += fmt::format("{}{}={}", other.text.empty() ? "" : " ", symbol, values[symbol]);
  }
  try {
    other.facts = ir::facts_at(workload.graph, values);
    for (size_t i = 0; i < facts.size(); ++i)
      if (facts[i].constant && ir::is_shape_input(workload, i)) other.facts[i].constant = facts[i].constant;
    ir::bind(workload.graph, other.facts);
  } catch (const Error&) {
    return {};  // a reshape, a window or a constant operand fixes some of them
  }
  return other;
}

}  // namespace thrice::measure
