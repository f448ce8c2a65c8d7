#include "plan/fusion_candidates.h"

#include <algorithm>
#include <map>

namespace thrice::plan {

namespace {

using Union = std::vector<int>;
using Level = std::map<Union, int>;  // unions of one size, each with the refusals that led to it

class Grower {
 public:
  explicit Grower(const std::vector<std::vector<int>>& after)
      : after_(after), before_(after.size()), reach_(reach_of(after)) {
    for (size_t a = 0; a < after.size(); ++a)
      for (const int b : after[a]) before_[static_cast<size_t>(b)].push_back(static_cast<int>(a));
  }

  // Every union of one atom more.
  void grow(const Union& from, int refused, Level& into) const {
    AtomSet inside(after_.size()), below(after_.size()), above(after_.size());
    for (const int a : from) {
      inside.add(static_cast<size_t>(a));
      below |= reach_.below[static_cast<size_t>(a)];
      above |= reach_.above[static_cast<size_t>(a)];
    }
    const auto add = [&](int a) {
      const auto at = static_cast<size_t>(a);
      if (inside.has(at) || !inside.contains_common(below, reach_.above[at]) ||
          !inside.contains_common(above, reach_.below[at]))
        return;
      Union larger(from);
      larger.insert(std::lower_bound(larger.begin(), larger.end(), a), a);
      const auto [it, is_new] = into.emplace(std::move(larger), refused);
      it->second = std::min(it->second, refused);
    };
    for (const int a : from) {
      for (const int b : after_[static_cast<size_t>(a)]) add(b);
      for (const int b : before_[static_cast<size_t>(a)]) add(b);
    }
  }

 private:
  const std::vector<std::vector<int>>& after_;
  std::vector<std::vector<int>> before_;
  Reach reach_;
};

}  // namespace

Growth grow_candidates(const std::vector<std::vector<int>>& after, const GrowthBounds& bounds,
                       const std::function<Verdict(const std::vector<int>&)>& judge) {
  const Grower grower(after);
  Growth growth;
  growth.complete = 1;
  size_t asked = 0;
  Level level;
  for (size_t a = 0; a < after.size(); ++a) grower.grow({static_cast<int>(a)}, 0, level);
  for (size_t size = 2; size <= bounds.most_atoms; ++size) {
    Level next;
    for (const auto& [atoms, refused] : level) {
      if (asked++ >= bounds.most_unions) return growth;
      const Verdict verdict = judge(atoms);
      if (verdict == Verdict::kStop) return growth;
      if (verdict == Verdict::kTaken) growth.taken.push_back(atoms);
      if (verdict == Verdict::kNever) continue;
      const int so_far = verdict == Verdict::kTaken ? 0 : refused + (verdict == Verdict::kRefused);
      if (so_far > bounds.most_refused || size == bounds.most_atoms) continue;
      if (next.size() >= bounds.most_unions) return growth;
      grower.grow(atoms, so_far, next);
    }
    growth.complete = size;
    if (next.empty()) {
      growth.complete = bounds.most_atoms;
      break;
    }
    level = std::move(next);
  }
  return growth;
}

}  // namespace thrice::plan
