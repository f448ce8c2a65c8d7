// Which unions of operators may be one kernel, and at what price: asked once for each that is alike.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "analysis/placement.h"
#include "plan/cost_model.h"
#include "plan/fusion_candidates.h"
#include "plan/grouping.h"
#include "plan/region_signature.h"

namespace thrice::plan {

// Operators of all distinct unions that are cut out and shown to the families; then no more are asked for.
// One takes some 60 us.
constexpr size_t kMostShown = 20'000;

// Atoms are the groups of `groups` in an order in which they can run.
class RegionJudge {
 public:
  RegionJudge(const ir::Graph& graph, const analysis::Placement& placement,
              const std::vector<ir::Fact>& facts, CostModel& costs, const Grouping& groups);

  const std::vector<int>& groups() const { return order_; }              // by atom
  const std::vector<std::vector<int>>& after() const { return after_; }  // by atom (FusionProblem)
  std::vector<ir::NodeId> nodes(const std::vector<int>& atoms) const;    // ascending
  // Rules of legality alone: what may be slow has a price.
  Verdict verdict(const std::vector<int>& atoms);
  // To be asked before settle() for all that will be priced; false where no family takes them.
  bool take(const std::vector<int>& atoms);
  void settle();
  // After settle(). Views, steps on the host and control steps cost nothing that fusion could change.
  RegionCost cost(const std::vector<int>& atoms);
  Signature signature(const std::vector<int>& atoms) { return signatures_.of(nodes(atoms)); }
  size_t judged() const { return judged_.size(); }

 private:
  struct Atom {
    std::vector<ir::NodeId> nodes;
    bool is_fixed = false, is_alias = false;  // fixed: host, control
    int heavy = 0;
  };
  bool may_come_before(const Atom& producer, const Atom& core) const;
  // Index of its cost; -1: no family. An atom is one kernel already, however many buffers it has.
  int judge(const std::vector<ir::NodeId>& nodes, bool is_union);
  const ir::Graph& graph_;
  const std::vector<ir::Fact>& facts_;
  CostModel& costs_;
  RegionSignatures signatures_;
  std::vector<int> order_;
  std::vector<std::vector<int>> after_, before_;
  std::vector<Atom> atoms_;
  std::map<Signature, int> judged_;  // -> known_
  std::vector<RegionCost> known_;
  size_t shown_ = 0;  // operators
};

}  // namespace thrice::plan
