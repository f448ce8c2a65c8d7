#include "tune/agents/genetic.h"

#include <algorithm>

#include "tune/agents/tuned.h"

namespace thrice::tune {

GeneticAgent::GeneticAgent(const Space& space, const AgentOptions& options)
    : space_(space), seen_(space), rng_(options.seed) {
  const auto knob = [&](const char* name) { return options.knob(name, tuned_knob("genetic", name)); };
  population_ = static_cast<size_t>(knob("population"));
  tournament_ = static_cast<size_t>(knob("tournament"));
  crossover_ = knob("crossover");
  mutation_ = knob("mutation");
  step_ = knob("step");
}

const GeneticAgent::Member& GeneticAgent::parent() {
  size_t best = members_.size();  // members are sorted: the smallest place drawn wins
  for (size_t i = 0; i < tournament_; ++i) best = std::min(best, rng_.below(members_.size()));
  return members_[best];
}

Point GeneticAgent::child() {
  Point point = parent().point;
  if (rng_.uniform() < crossover_) {
    const Point& other = parent().point;
    for (size_t d = 0; d < point.size(); ++d)
      if (rng_.uniform() < 0.5) point[d] = other[d];
  }
  space_.make_canonical(point);
  size_t used = 0;
  for (size_t d = 1; d < point.size(); ++d) used += !space_.allowed(point[0], d).empty();
  for (size_t d = 0; d < point.size(); ++d) {
    if (!(rng_.uniform() < mutation_ / static_cast<double>(std::max<size_t>(used, 1)))) continue;
    if (d == 0) {
      point[0] = static_cast<uint16_t>(rng_.below(space_.tactics()));
      continue;
    }
    const auto& choices = space_.allowed(point[0], d);
    if (choices.empty()) continue;
    if (rng_.uniform() < step_) {
      const auto at = std::lower_bound(choices.begin(), choices.end(), point[d]) - choices.begin();
      const auto to = at + (rng_.uniform() < 0.5 ? -1 : 1);
      if (to >= 0 && to < static_cast<std::ptrdiff_t>(choices.size()))
        point[d] = choices[static_cast<size_t>(to)];
    } else {
      point[d] = choices[rng_.below(choices.size())];
    }
  }
  space_.make_canonical(point);
  return point;
}

std::vector<Point> GeneticAgent::ask(int count) {
  std::vector<Point> result;
  while (static_cast<int>(result.size()) < count) {
    std::optional<Point> next;
    if (started_ < population_ && started_ < space_.firsts().size() && seen_.add(space_.firsts()[started_]))
      next = space_.firsts()[started_];
    for (int tries = 0; !next && started_ >= population_ && !members_.empty() && tries < 50; ++tries)
      if (Point point = child(); !seen_.has(point) && space_.legal(point)) next = std::move(point);
    if (!next) next = seen_.fresh(rng_);
    ++started_;
    if (!next) break;
    seen_.add(*next);
    result.push_back(std::move(*next));
  }
  return result;
}

void GeneticAgent::tell(const Point& point, const Told& told) {
  seen_.add(point);
  if (!told.ok) return;
  const auto slower = [](double cost, const Member& m) { return cost < m.cost; };
  members_.insert(std::upper_bound(members_.begin(), members_.end(), told.cost, slower), {point, told.cost});
  if (members_.size() > population_) members_.pop_back();
}

}  // namespace thrice::tune
