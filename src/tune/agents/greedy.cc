#include "tune/agents/greedy.h"

#include <algorithm>

namespace thrice::tune {

using artifact::Schedule;

GreedyAgent::GreedyAgent(const LegalSpace& space, uint64_t seed) : space_(space), rng_(seed) {
  start_at(space_.default_schedule());
  // Each other tactic once: a rival gets its chance before local search begins.
  for (const artifact::TacticSpace& tactic : space_.space().tactics) {
    Schedule rival{tactic.family, tactic.tactic, {}};
    for (const artifact::Parameter& p : tactic.parameters)
      rival.values.emplace_back(
          p.name, p.choices[p.first >= 0 ? static_cast<size_t>(p.first) : p.choices.size() / 2]);
    if (tactic.tactic != space_.default_schedule().tactic && space_.is_legal(rival)) start_at(rival);
  }
}

void GreedyAgent::start_at(const Schedule& schedule) {
  if (seen_.insert(schedule.str()).second) starts_.push_back(schedule);
}

void GreedyAgent::push(const Schedule& schedule) {
  if (seen_.insert(schedule.str()).second) queue_.push_back(schedule);
}

std::vector<Schedule> GreedyAgent::ask(int count) {
  std::vector<Schedule> result;
  for (int restarts = 0; static_cast<int>(result.size()) < count;) {
    if (std::deque<Schedule>& next = starts_.empty() ? queue_ : starts_; !next.empty()) {
      result.push_back(std::move(next.front()));
      next.pop_front();
      continue;
    }
    // Neighbours of what is being measured come with its tell; meanwhile and at a local optimum, jump.
    const std::optional<Schedule> jump = restarts < 50 ? space_.sample(rng_) : std::nullopt;
    if (!jump) break;
    ++restarts;
    push(*jump);
  }
  return result;
}

void GreedyAgent::tell(const Trial& trial) {
  seen_.insert(trial.schedule.str());
  // Trials of an earlier run are told before anything is asked: what they cover may wait in either list.
  std::erase(starts_, trial.schedule);
  std::erase(queue_, trial.schedule);
  const artifact::Measurement& m = trial.measurement;
  if (m.outcome != artifact::Outcome::kOk || !(m.time_us > 0)) return;
  if (best_us_ > 0 && !(m.time_us < best_us_)) return;
  best_us_ = m.time_us;
  std::vector<Schedule> around = space_.neighbours(trial.schedule);
  for (size_t i = around.size(); i > 1; --i) std::swap(around[i - 1], around[rng_.below(i)]);
  // Fresh neighbours go first: what was queued around a slower schedule waits.
  for (Schedule& next : around)
    if (seen_.insert(next.str()).second) queue_.push_front(std::move(next));
}

}  // namespace thrice::tune
