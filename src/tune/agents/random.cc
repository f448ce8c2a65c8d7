#include "tune/agents/random.h"

namespace thrice::tune {

std::vector<artifact::Schedule> RandomAgent::ask(int count) {
  constexpr int kRepeats = 50;  // draws that may hit schedules asked before; small spaces run dry here
  std::vector<artifact::Schedule> result;
  for (int miss = 0; static_cast<int>(result.size()) < count && miss < kRepeats;) {
    std::optional<artifact::Schedule> schedule = space_.sample(rng_);
    if (!schedule) break;
    if (known_.insert(schedule->str()).second)
      result.push_back(std::move(*schedule));
    else
      ++miss;
  }
  return result;
}

}  // namespace thrice::tune
