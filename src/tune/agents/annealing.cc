#include "tune/agents/annealing.h"

#include <algorithm>
#include <cmath>

#include "tune/agents/tuned.h"

namespace thrice::tune {
namespace {
constexpr double kFailed = 1e9;
}

AnnealingAgent::AnnealingAgent(const Space& space, const AgentOptions& options)
    : space_(space), seen_(space), rng_(options.seed) {
  const auto knob = [&](const char* name) { return options.knob(name, tuned_knob("annealing", name)); };
  temperature_ = knob("temperature");
  cooling_ = knob("cooling");
  wide_ = knob("wide");
  patience_ = static_cast<int>(knob("patience"));
  elsewhere_ = knob("elsewhere");
}

Point AnnealingAgent::moved(const Point& from) {
  Point point = from;
  size_t d = rng_.below(point.size());
  if (d == 0 && space_.tactics() > 1) {
    point[0] = static_cast<uint16_t>(rng_.below(space_.tactics()));
    space_.make_canonical(point);
    return point;
  }
  for (size_t tries = 0; tries < 4 * point.size() && (d == 0 || space_.allowed(point[0], d).size() < 2);
       ++tries)
    d = rng_.below(point.size());
  const auto& choices = space_.allowed(point[0], d);
  if (choices.size() < 2) return point;
  if (rng_.uniform() < wide_) {
    point[d] = choices[rng_.below(choices.size())];
  } else {
    const auto at = std::lower_bound(choices.begin(), choices.end(), point[d]) - choices.begin();
    const auto to = at + (rng_.uniform() < 0.5 ? -1 : 1);
    if (to >= 0 && to < static_cast<std::ptrdiff_t>(choices.size()))
      point[d] = choices[static_cast<size_t>(to)];
  }
  return point;
}

void AnnealingAgent::consider(const Point& point, double cost) {
  if (cost < kFailed && (!has_now_ || restart_ || cost <= now_cost_ ||
                         rng_.uniform() < std::exp((now_cost_ - cost) / std::max(temperature_, 1e-9)))) {
    if (!has_now_ || cost != now_cost_) rejected_ = 0;
    now_ = point;
    now_cost_ = cost;
    has_now_ = true;
    restart_ = false;
  } else if (++rejected_ >= patience_) {
    rejected_ = 0;
    if (has_now_ && !(rng_.uniform() < elsewhere_)) {
      now_ = best_;
      now_cost_ = best_cost_;
    } else {
      restart_ = true;
    }
  }
}

std::optional<Point> AnnealingAgent::next() {
  if (started_ < space_.firsts().size())
    if (const Point& first = space_.firsts()[started_++]; !seen_.has(first)) return first;
  // What was measured is walked over without a trial, but not for ever.
  for (int moves = 0; has_now_ && !restart_ && moves < 300; ++moves) {
    Point point = moved(now_);
    if (point == now_ || !space_.legal(point)) continue;
    if (!seen_.has(point)) return point;
    if (const auto known = costs_.find(point_key(point)); known != costs_.end())
      consider(point, known->second);
  }
  return seen_.fresh(rng_);
}

std::vector<Point> AnnealingAgent::ask(int count) {
  std::vector<Point> result;
  while (static_cast<int>(result.size()) < count) {
    std::optional<Point> point = next();
    if (!point) break;
    seen_.add(*point);
    result.push_back(std::move(*point));
  }
  return result;
}

void AnnealingAgent::tell(const Point& point, const Told& told) {
  seen_.add(point);
  const double cost = told.ok ? told.cost : kFailed;
  costs_[point_key(point)] = cost;
  if (told.ok && (!has_now_ || told.cost < best_cost_)) {
    best_ = point;
    best_cost_ = told.cost;
  }
  consider(point, cost);
  temperature_ *= cooling_;
}

}  // namespace thrice::tune
