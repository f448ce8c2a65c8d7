#include "tune/agents/random.h"

namespace thrice::tune {

std::vector<Point> RandomAgent::ask(int count) {
  std::vector<Point> result;
  while (static_cast<int>(result.size()) < count) {
    std::optional<Point> point = seen_.fresh(rng_);
    if (!point) break;
    seen_.add(*point);
    result.push_back(std::move(*point));
  }
  return result;
}

}  // namespace thrice::tune
