// How a ModelAgent begins where there are several tactics.
#include <algorithm>

#include "tune/agents/model.h"

namespace thrice::tune {

// Where nothing is expected, tactics race by successive halving: each has its first, the faster half of them
// two more, half of those four. The critic starts from that, and may come back to any of them.
bool ModelAgent::race() {
  if (rung_ < 0) {
    rung_ = 0;
    if (space_.tactics() > 1 && expected_.empty() && options_.knob("race", 1) > 0)
      for (size_t t = 0; t < space_.tactics(); ++t) racing_.push_back(static_cast<uint16_t>(t));
  }
  while (racing_.size() > 1) {
    std::vector<std::pair<double, uint16_t>> order;
    for (const uint16_t t : racing_) {
      double best = 1e300;
      for (const size_t g : good_)
        if (trials_[g].point[0] == t) best = std::min(best, trials_[g].told.cost);
      order.emplace_back(best, t);
    }
    std::stable_sort(order.begin(), order.end());
    const bool all_tried = std::none_of(racing_.begin(), racing_.end(), [&](uint16_t t) {
      return std::none_of(trials_.begin(), trials_.end(),
                          [&](const Trial& trial) { return trial.point[0] == t; });
    });
    if (rung_ > 0 || all_tried) {
      order.resize((order.size() + 1) / 2);
      racing_.clear();
      for (const auto& [best, t] : order) racing_.push_back(t);
      rung_ = std::max(rung_, 1);
      if (racing_.size() == 1) break;
    }
    for (const uint16_t t : racing_)
      for (int i = 0, tries = 0; i < 1 << rung_ && tries < 200; ++tries)
        if (const auto p = space_.sample(rng_, 20); p && (*p)[0] == t && push(*p)) ++i;
    ++rung_;
    if (!queue_.empty()) return true;
  }
  racing_.clear();
  return false;
}

}  // namespace thrice::tune
