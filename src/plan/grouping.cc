#include "plan/grouping.h"

#include <thrice/status.h>

#include <algorithm>
#include <queue>
#include <set>

namespace thrice::plan {

using ir::NodeId;
using ir::ValueId;

Grouping::Grouping(const ir::Graph& graph, const analysis::Placement& placement)
    : graph_(&graph),
      readers_(std::make_shared<const std::vector<std::vector<NodeId>>>(ir::consumers(graph))),
      group_of_(graph.nodes.size(), -1) {
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (placement.nodes[n] == analysis::Place::kNowhere) continue;
    group_of_[n] = static_cast<int>(groups_.size());
    groups_.push_back(std::make_shared<const std::vector<NodeId>>(1, static_cast<NodeId>(n)));
  }
}

std::vector<int> Grouping::producers(int group) const {
  std::set<int> found;
  for (NodeId n : nodes(group))
    for (ValueId v : graph_->nodes[static_cast<size_t>(n)].inputs) {
      if (v == ir::kNoValue || graph_->value(v).producer < 0) continue;
      const int g = group_of(graph_->value(v).producer);
      if (g >= 0 && g != group) found.insert(g);
    }
  std::vector<int> result(found.begin(), found.end());
  std::sort(result.begin(), result.end(), [&](int a, int b) { return nodes(a).back() > nodes(b).back(); });
  return result;
}

std::vector<int> Grouping::consumers(int group) const {
  std::set<int> found;
  for (NodeId n : nodes(group))
    for (ValueId v : graph_->nodes[static_cast<size_t>(n)].outputs) {
      if (v == ir::kNoValue) continue;
      for (NodeId reader : (*readers_)[static_cast<size_t>(v)]) {
        const int g = group_of(reader);
        if (g >= 0 && g != group) found.insert(g);
      }
    }
  return {found.begin(), found.end()};
}

bool Grouping::reaches(int from, int to) const {
  std::vector<uint8_t> seen(groups_.size(), 0);
  std::vector<int> stack{from};
  seen[static_cast<size_t>(from)] = 1;
  while (!stack.empty()) {
    const int g = stack.back();
    stack.pop_back();
    for (const NodeId n : nodes(g))
      for (const ValueId v : graph_->nodes[static_cast<size_t>(n)].outputs) {
        if (v == ir::kNoValue) continue;
        for (const NodeId reader : (*readers_)[static_cast<size_t>(v)]) {
          const int next = group_of(reader);
          if (next < 0 || seen[static_cast<size_t>(next)]) continue;
          if (next == to) {
            if (g != from) return true;
            continue;  // an edge of its own is no path around
          }
          seen[static_cast<size_t>(next)] = 1;
          stack.push_back(next);
        }
      }
  }
  return false;
}

bool Grouping::can_merge(int a, int b) const { return !reaches(a, b) && !reaches(b, a); }

std::vector<NodeId> Grouping::merged(int a, int b) const {
  std::vector<NodeId> result;
  std::merge(nodes(a).begin(), nodes(a).end(), nodes(b).begin(), nodes(b).end(), std::back_inserter(result));
  return result;
}

void Grouping::merge(int into, int from) {
  static const Nodes kNone = std::make_shared<const std::vector<NodeId>>();
  groups_[static_cast<size_t>(into)] = std::make_shared<const std::vector<NodeId>>(merged(into, from));
  for (NodeId n : nodes(from)) group_of_[static_cast<size_t>(n)] = into;
  groups_[static_cast<size_t>(from)] = kNone;
}

std::vector<int> Grouping::ordered() const {
  std::vector<int> waiting(groups_.size(), 0);
  const auto later = [&](int a, int b) { return nodes(a).front() > nodes(b).front(); };
  std::priority_queue<int, std::vector<int>, decltype(later)> ready(later);
  size_t total = 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g]->empty()) continue;
    ++total;
    waiting[g] = static_cast<int>(producers(static_cast<int>(g)).size());
    if (waiting[g] == 0) ready.push(static_cast<int>(g));
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int g = ready.top();
    ready.pop();
    order.push_back(g);
    for (int next : consumers(g))
      if (--waiting[static_cast<size_t>(next)] == 0) ready.push(next);
  }
  if (order.size() != total) throw Error(Code::kInternal, "regions form a cycle");
  return order;
}

}  // namespace thrice::plan
