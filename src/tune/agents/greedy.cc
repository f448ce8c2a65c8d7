#include "tune/agents/greedy.h"

#include <algorithm>

namespace thrice::tune {

GreedyAgent::GreedyAgent(const Space& space, uint64_t seed) : space_(space), seen_(space), rng_(seed) {
  // Each tactic once: a rival gets its chance before local search begins.
  for (const Point& first : space_.firsts())
    if (seen_.add(first)) starts_.push_back(first);
}

std::vector<Point> GreedyAgent::ask(int count) {
  std::vector<Point> result;
  while (static_cast<int>(result.size()) < count) {
    if (std::deque<Point>& next = starts_.empty() ? queue_ : starts_; !next.empty()) {
      result.push_back(std::move(next.front()));
      next.pop_front();
      continue;
    }
    // Neighbours of what is being measured come with its tell; meanwhile and at a local optimum, jump.
    std::optional<Point> jump = seen_.fresh(rng_);
    if (!jump) break;
    seen_.add(*jump);
    result.push_back(std::move(*jump));
  }
  return result;
}

void GreedyAgent::tell(const Point& point, const Told& told) {
  seen_.add(point);
  // Trials of an earlier run are told before anything is asked: what they cover may wait in either list.
  std::erase(starts_, point);
  std::erase(queue_, point);
  if (!told.ok || (has_best_ && !(told.cost < best_))) return;
  has_best_ = true;
  best_ = told.cost;
  std::vector<Point> around = space_.neighbours(point);
  for (size_t i = around.size(); i > 1; --i) std::swap(around[i - 1], around[rng_.below(i)]);
  // Fresh neighbours go first: what was queued around a slower configuration waits.
  for (Point& next : around)
    if (seen_.add(next)) queue_.push_front(std::move(next));
}

}  // namespace thrice::tune
