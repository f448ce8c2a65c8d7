#include "flow/search.h"

#include <algorithm>

#include "base/clock.h"

namespace thrice::flow {
namespace {

double estimated_speedup(const std::vector<Searched>& works) {
  double before = 0, now = 0;
  for (const Searched& work : works) {
    before += work.tuned->by_default.time_us * work.uses;
    now += work.tuned->best.time_us * work.uses;
  }
  return now > 0 ? before / now : 0;
}

}  // namespace

bool is_verified(const artifact::Measurement& m) {
  return m.outcome == artifact::Outcome::kOk && m.error >= 0 && m.error <= m.error_limit;
}

void search(std::vector<Searched>& works, TrialSource& source, const SearchLimits& limits,
            const Listener& listener) {
  double all_us = 0;
  for (Searched& work : works) {
    work.standing.model_share_us = work.tuned->best.time_us * work.uses;
    all_us += work.standing.model_share_us;
  }
  if (all_us > 0)
    for (Searched& work : works) work.tuned->share_at_start = work.standing.model_share_us / all_us;
  while (!listener.stop() && *limits.trials < limits.max_trials && monotonic_us() < limits.deadline_us) {
    std::vector<tune::Standing> standings;
    for (const Searched& work : works) standings.push_back(work.standing);
    const int chosen = tune::next_workload(standings);
    if (chosen < 0) break;
    const auto place = static_cast<size_t>(chosen);
    Searched& work = works[place];
    Tuned& tuned = *work.tuned;
    const Progress progress{"tune",
                            work.name,
                            *limits.trials,
                            limits.max_trials,
                            estimated_speedup(works),
                            (limits.deadline_us - monotonic_us()) / 1e6};
    listener.tell(progress);
    if (!source.ready(progress)) break;
    if (work.first.empty()) {
      const size_t ahead = std::max<size_t>(1, source.lookahead());
      for (artifact::Schedule& schedule : work.agent->ask(static_cast<int>(ahead)))
        work.first.push_back(std::move(schedule));
      if (ahead > 1) source.prepare(place, {work.first.begin(), work.first.end()});
    }
    if (work.first.empty()) {
      work.standing.exhausted = true;
      continue;
    }
    const artifact::Schedule candidate = work.first.front();
    work.first.pop_front();
    if (const auto refusal = source.refuse(place, candidate)) {
      // No record: at another moment it may run. The agent goes on to others.
      artifact::Measurement refused;
      refused.message = *refusal;
      work.agent->tell({candidate, refused});
      ++work.standing.trials_without_gain;
      continue;
    }
    const artifact::Measurement m = source.measure(place, candidate, 3 * tuned.best.time_us);
    work.agent->tell({candidate, m});
    work.agent->learn();
    ++tuned.trials;
    ++work.standing.trials;
    ++work.standing.trials_without_gain;
    // One short look may make a faster candidate seem slower: within the spreads it gets a second one.
    if (!is_verified(m) || !(m.time_us - m.spread_us - tuned.best.spread_us < tuned.best.time_us)) continue;
    // A promising candidate meets the current best face to face before it replaces it.
    const auto [best, challenger] = source.duel(place, tuned.schedule, candidate);
    const double gain = best.median_us - challenger.median_us;
    const double doubt = std::max(0.01 * best.median_us, best.spread_us + challenger.spread_us);
    if (!(gain > doubt)) continue;
    tuned.schedule = candidate;
    tuned.best = m;
    tuned.best.time_us = challenger.median_us;
    tuned.best.spread_us = challenger.spread_us;
    work.standing.trials_without_gain = 0;
    work.standing.model_share_us = m.time_us * work.uses;
  }
  for (Searched& work : works) {
    work.tuned->trials_without_gain = work.standing.trials_without_gain;
    work.tuned->exhausted = work.standing.exhausted;
  }
}

}  // namespace thrice::flow
