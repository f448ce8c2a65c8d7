#include "ir/region_name.h"

#include <fmt/format.h>

#include <algorithm>

namespace thrice::ir {

std::string region_name(const Graph& graph, const std::vector<int32_t>& nodes) {
  constexpr size_t kShown = 3;  // more do not fit a table
  std::string name;
  std::vector<int32_t> seen;
  for (int32_t n : nodes) {
    const int32_t origin = graph.nodes[static_cast<size_t>(n)].origin;
    if (origin < 0 || static_cast<size_t>(origin) >= graph.origins.size() ||
        std::find(seen.begin(), seen.end(), origin) != seen.end())
      continue;
    seen.push_back(origin);
    if (seen.size() <= kShown)
      name += (name.empty() ? "" : " + ") + graph.origins[static_cast<size_t>(origin)].op_type;
  }
  if (seen.size() > kShown) name += fmt::format(" + {} more", seen.size() - kShown);
  if (name.empty() && !nodes.empty()) name = op_name(graph.nodes[static_cast<size_t>(nodes[0])].op);
  return name;
}

}  // namespace thrice::ir
