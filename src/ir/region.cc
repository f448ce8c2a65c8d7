#include "ir/region.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>

namespace thrice::ir {
namespace {

// One byte a node: is it in the region?
std::vector<uint8_t> membership(const Graph& graph, const std::vector<NodeId>& nodes) {
  std::vector<uint8_t> inside(graph.nodes.size(), 0);
  for (NodeId n : nodes) inside[static_cast<size_t>(n)] = 1;
  return inside;
}

}  // namespace

Region make_region(const Graph& graph, std::vector<NodeId> nodes) {
  Region region;
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  const std::vector<uint8_t> inside = membership(graph, nodes);
  std::vector<uint8_t> seen(graph.values.size(), 0), read_outside(graph.values.size(), 0);
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (!inside[n])
      for (ValueId id : graph.nodes[n].inputs)
        if (id != kNoValue) read_outside[static_cast<size_t>(id)] = 1;
  for (ValueId id : graph.outputs) read_outside[static_cast<size_t>(id)] = 1;
  for (NodeId n : nodes) {
    const Node& node = graph.nodes[static_cast<size_t>(n)];
    for (ValueId id : node.inputs) {
      if (id == kNoValue || seen[static_cast<size_t>(id)]) continue;
      seen[static_cast<size_t>(id)] = 1;
      const NodeId producer = graph.value(id).producer;
      if (producer < 0 || !inside[static_cast<size_t>(producer)]) region.inputs.push_back(id);
    }
    for (ValueId id : node.outputs)
      if (id != kNoValue && read_outside[static_cast<size_t>(id)]) region.outputs.push_back(id);
  }
  region.nodes = std::move(nodes);
  return region;
}

bool is_convex(const Graph& graph, const Region& region) {
  if (region.nodes.empty()) return true;
  const std::vector<uint8_t> inside = membership(graph, region.nodes);
  // Values that outside nodes made from the region's results. Only nodes between the first and the last of
  // the region can lie on a path that returns.
  std::vector<uint8_t> tainted(graph.values.size(), 0);
  const auto [first, last] = std::minmax_element(region.nodes.begin(), region.nodes.end());
  for (NodeId n = *first; n <= *last; ++n) {
    const Node& node = graph.nodes[static_cast<size_t>(n)];
    for (ValueId id : node.inputs) {
      if (id == kNoValue) continue;
      const NodeId producer = graph.value(id).producer;
      const bool from_region = producer >= 0 && inside[static_cast<size_t>(producer)];
      if (inside[static_cast<size_t>(n)]) {
        if (tainted[static_cast<size_t>(id)]) return false;
      } else if (from_region || tainted[static_cast<size_t>(id)]) {
        for (ValueId out : node.outputs)
          if (out != kNoValue) tainted[static_cast<size_t>(out)] = 1;
      }
    }
  }
  return true;
}

}  // namespace thrice::ir
