#include "plan/region_judge.h"

#include <thrice/status.h>

#include <algorithm>

#include "plan/merge_rules.h"
#include "plan/planner.h"

namespace thrice::plan {

using analysis::Place;
using ir::NodeId;

RegionJudge::RegionJudge(const ir::Graph& graph, const analysis::Placement& placement,
                         const std::vector<ir::Fact>& facts, CostModel& costs, const Grouping& groups)
    : graph_(graph), facts_(facts), costs_(costs), signatures_(graph), order_(groups.ordered()) {
  std::map<int, int> atom_of;
  for (size_t a = 0; a < order_.size(); ++a) atom_of[order_[a]] = static_cast<int>(a);
  after_.resize(order_.size());
  before_.resize(order_.size());
  for (size_t a = 0; a < order_.size(); ++a) {
    Atom atom;
    atom.nodes = groups.nodes(order_[a]);
    for (const NodeId n : atom.nodes) {
      const Place place = placement.nodes[static_cast<size_t>(n)];
      atom.is_fixed |= place != Place::kDevice && place != Place::kAlias;
      atom.is_alias |= place == Place::kAlias && atom.nodes.size() == 1;
      atom.heavy += ir::op_class(graph.nodes[static_cast<size_t>(n)].op) == ir::OpClass::kHeavy;
    }
    atoms_.push_back(std::move(atom));
    for (const int g : groups.producers(order_[a])) {
      before_[a].push_back(atom_of.at(g));
      after_[static_cast<size_t>(atom_of.at(g))].push_back(static_cast<int>(a));
    }
  }
}

std::vector<NodeId> RegionJudge::nodes(const std::vector<int>& atoms) const {
  std::vector<NodeId> result;
  for (const int a : atoms) {
    const auto& own = atoms_[static_cast<size_t>(a)].nodes;
    result.insert(result.end(), own.begin(), own.end());
  }
  std::sort(result.begin(), result.end());
  return result;
}

// What a core reads many times is not computed at each read: attention looks through views and scales, a
// product or window through casts.
bool RegionJudge::may_come_before(const Atom& producer, const Atom& core) const {
  return std::all_of(producer.nodes.begin(), producer.nodes.end(), [&](NodeId n) {
    const ir::Node& node = graph_.nodes[static_cast<size_t>(n)];
    return core.heavy > 1 ? is_read_through(graph_, node) : node.op == ir::Op::cast;
  });
}

Verdict RegionJudge::verdict(const std::vector<int>& atoms) {
  const auto inside = [&](int a) { return std::binary_search(atoms.begin(), atoms.end(), a); };
  size_t count = 0;
  int core = -1;
  for (const int a : atoms) {
    const Atom& atom = atoms_[static_cast<size_t>(a)];
    count += atom.nodes.size();
    if (atom.is_fixed || (atom.heavy && core >= 0)) return Verdict::kNever;
    if (atom.heavy) core = a;
  }
  if (count > kMaxRegionNodes) return Verdict::kNever;
  std::vector<int> open;
  if (core >= 0) open.push_back(core);
  while (!open.empty()) {
    const int at = open.back();
    open.pop_back();
    for (const int b : before_[static_cast<size_t>(at)]) {
      if (!inside(b)) continue;
      if (!may_come_before(atoms_[static_cast<size_t>(b)], atoms_[static_cast<size_t>(core)]))
        return Verdict::kNever;
      open.push_back(b);
    }
  }
  for (const int a : atoms) {  // a view that costs nothing is worth nothing at the rim
    const auto at = static_cast<size_t>(a);
    if (atoms_[at].is_alias && !(std::any_of(before_[at].begin(), before_[at].end(), inside) &&
                                 std::any_of(after_[at].begin(), after_[at].end(), inside)))
      return Verdict::kOpen;
  }
  if (shown_ >= kMostShown) return Verdict::kStop;
  return take(atoms) ? Verdict::kTaken : Verdict::kRefused;
}

bool RegionJudge::take(const std::vector<int>& atoms) {
  if (atoms.size() == 1) {
    const Atom& atom = atoms_[static_cast<size_t>(atoms[0])];
    if (atom.is_fixed || atom.is_alias) return true;
  }
  const std::vector<NodeId> all = nodes(atoms);
  const auto [it, is_new] = judged_.emplace(signatures_.of(all), -1);
  if (is_new) it->second = judge(all, atoms.size() > 1);
  return it->second >= 0;
}

int RegionJudge::judge(const std::vector<NodeId>& nodes, bool is_union) {
  shown_ += nodes.size();
  const ir::Region region = ir::make_region(graph_, nodes);
  if (is_union && region.inputs.size() + region.outputs.size() > kMaxRegionBuffers) return -1;
  const ir::Workload workload = ir::extract(graph_, region);
  const family::Family* family = match_family(workload);
  if (!family) return -1;
  std::vector<ir::Fact> inputs;
  for (const ir::ValueId v : workload.inputs) inputs.push_back(facts_[static_cast<size_t>(v)]);
  known_.push_back(costs_.cost({workload, *family, inputs}));
  return static_cast<int>(known_.size()) - 1;
}

void RegionJudge::settle() { costs_.settle(known_); }

RegionCost RegionJudge::cost(const std::vector<int>& atoms) {
  if (atoms.size() == 1) {
    const Atom& atom = atoms_[static_cast<size_t>(atoms[0])];
    if (atom.is_fixed || atom.is_alias) {
      RegionCost nothing;
      nothing.source = atom.is_alias ? "view" : "not a kernel";
      return nothing;
    }
  }
  const int known = judged_.at(signatures_.of(nodes(atoms)));
  if (known < 0) throw Error(Code::kInternal, "a region that no family takes was priced");
  return known_[static_cast<size_t>(known)];
}

}  // namespace thrice::plan
