#include "flow/search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

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

// Of a median of n samples whose median absolute deviation is `spread`, as of a normal distribution.
double standard_error(const measure::Timing& t) {
  return 1.25 * 1.48 * t.spread_us / std::sqrt(std::max(1, t.samples));
}

// A candidate meets the best face to face and replaces it where the lower confidence bound of its gain by the
// reward (two standard errors) is above 1%. Nothing that is slower than the default replaces it.
void settle(TrialSource& source, size_t place, Searched& work, const artifact::Schedule& candidate,
            const artifact::Measurement& m) {
  Tuned& tuned = *work.tuned;
  const auto [best, challenger] = source.duel(place, tuned.schedule, candidate);
  const double gain =
      work.reward.cost(tuned.best, best.median_us) - work.reward.cost(m, challenger.median_us);
  const double doubt = 2 * std::hypot(standard_error(best), standard_error(challenger)) / best.median_us;
  if (!(gain > work.reward.time_weight() * (0.01 + doubt))) return;
  const double now_us = challenger.median_us / best.median_us * tuned.best.time_us;  // on the default's scale
  if (challenger.median_us > best.median_us && !(now_us <= tuned.by_default.time_us)) return;
  tuned.schedule = candidate;
  tuned.best = m;
  tuned.best.time_us = challenger.median_us;
  if (m.time_us > 0) tuned.best.concurrent_us *= challenger.median_us / m.time_us;
  tuned.best.spread_us = challenger.spread_us;
  work.standing.trials_without_gain = 0;
  work.standing.model_share_us = tuned.best.time_us * work.uses;
}

struct Rival {
  artifact::Schedule schedule;
  artifact::Measurement measurement;
};

// The machine may have been faster when the best was measured than when its rivals were: the fastest of those
// that have not met it do so now. The workloads with the largest share of the model first.
void meet_finalists(std::vector<Searched>& works, std::vector<std::vector<Rival>>& rivals,
                    TrialSource& source, const SearchLimits& limits, const Listener& listener) {
  constexpr size_t kFinalists = 3;
  std::vector<size_t> order(works.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return works[a].standing.model_share_us > works[b].standing.model_share_us;
  });
  for (const size_t place : order) {
    std::vector<Rival>& list = rivals[place];
    const Reward& reward = works[place].reward;
    std::stable_sort(list.begin(), list.end(), [&](const Rival& a, const Rival& b) {
      return reward.cost(a.measurement) < reward.cost(b.measurement);
    });
    for (size_t i = 0; i < std::min(kFinalists, list.size()); ++i) {
      const Progress progress{"finalists",       works[place].name,        *limits.trials,
                              limits.max_trials, estimated_speedup(works), -1};
      if (listener.stop() || !(monotonic_us() < limits.deadline_us) || !source.ready(progress)) return;
      listener.tell(progress);
      settle(source, place, works[place], list[i].schedule, list[i].measurement);
    }
  }
}

}  // namespace

bool is_verified(const artifact::Measurement& m) {
  return m.outcome == artifact::Outcome::kOk && m.error >= 0 && m.error <= m.error_limit;
}

tune::AgentOptions agent_options(const Settings& settings, const std::string& hash) {
  tune::AgentOptions options;
  options.seed = settings.seed ^ std::stoull(hash.substr(0, 16), nullptr, 16);
  options.learning_rate = settings.agent_config.learning_rate;
  options.exploration_rate = settings.agent_config.exploration_rate;
  return options;
}

tune::Told told_of(const artifact::Measurement& m, const Reward& reward) {
  const bool ok = is_verified(m) && m.time_us > 0;
  return {ok, ok ? reward.cost(m) : 0};
}

void tell(Searched& work, const artifact::Schedule& schedule, const artifact::Measurement& m) {
  if (const auto point = work.space->point(schedule)) work.agent->tell(*point, told_of(m, work.reward));
}

namespace {

// Why a workload gets no further trial; "" = it may.
std::string ending(const Searched& work) {
  constexpr double kNearLight = 1.05, kGain = 0.01;
  constexpr int kPatience = 160;
  const double best_us = work.tuned->best.time_us;  // far below: the peaks are wrong, and say nothing
  if (work.light_us > 0 && best_us <= kNearLight * work.light_us && kNearLight * best_us >= work.light_us)
    return "within 5% of the device's peaks";
  if (work.standing.trials_without_gain >= kPatience && work.first.empty() &&
      work.agent->expected_gain() < kGain)
    return "no gain in 160 trials";
  return {};
}

void ask(Searched& work, size_t up_to) {
  if (work.first.size() >= up_to) return;
  for (const tune::Point& point : work.agent->ask(static_cast<int>(up_to - work.first.size())))
    work.first.push_back(work.space->schedule(point));
}

// Other workloads whose turn comes within as many trials as one kernel takes to be built, if none of these
// gains; the last first.
std::vector<size_t> coming_turns(std::vector<tune::Standing> standings, size_t chosen) {
  constexpr int kTrials = 8;
  std::vector<size_t> turns;
  size_t now = chosen;
  for (int trial = 0; trial < kTrials; ++trial) {
    ++standings[now].trials_without_gain;
    const int next = tune::next_workload(standings);
    if (next < 0) break;
    now = static_cast<size_t>(next);
    if (now != chosen && std::find(turns.begin(), turns.end(), now) == turns.end())
      turns.insert(turns.begin(), now);
  }
  return turns;
}

// What became the best of one workload is tried next by those like it, unless they know it.
void tell_neighbours(std::vector<Searched>& works, const std::vector<size_t>& neighbours,
                     const artifact::Schedule& schedule) {
  const std::string text = schedule.str();
  for (const size_t place : neighbours) {
    Searched& other = works[place];
    const auto& tried = other.tuned->attempts;
    const auto point = other.space->point(schedule);
    if (other.tuned->schedule == schedule || !point || !other.space->legal(*point) ||
        std::find(other.first.begin(), other.first.end(), schedule) != other.first.end() ||
        std::any_of(tried.begin(), tried.end(), [&](const Attempt& a) { return a.schedule == text; }))
      continue;
    other.first.push_front(schedule);
    other.standing.exhausted = false;
    other.tuned->ended.clear();
  }
}

}  // namespace

void search(std::vector<Searched>& works, TrialSource& source, const SearchLimits& limits,
            const Listener& listener) {
  double all_us = 0;
  for (Searched& work : works) {
    work.standing.model_share_us = work.tuned->best.time_us * work.uses;
    all_us += work.standing.model_share_us;
  }
  if (all_us > 0)
    for (Searched& work : works) work.tuned->share_at_start = work.standing.model_share_us / all_us;
  std::vector<std::vector<Rival>> rivals(works.size());
  constexpr double kForFinalists = 0.1;  // of the time
  const double begin_us = monotonic_us();
  const double last_trial_us = std::isfinite(limits.deadline_us)
                                   ? limits.deadline_us - kForFinalists * (limits.deadline_us - begin_us)
                                   : limits.deadline_us;
  while (!listener.stop() && *limits.trials < limits.max_trials && monotonic_us() < last_trial_us) {
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
    if (tuned.ended = ending(work); !tuned.ended.empty()) {
      work.standing.exhausted = true;
      continue;
    }
    // Builders should not wait for the runner, nor it for them: more is asked for before the last is tried.
    const size_t ahead = std::max<size_t>(1, source.lookahead());
    const bool asks = work.first.size() <= ahead / 2;
    if (asks) ask(work, ahead);
    if (ahead > 1) {
      // A turn of another workload begins with a kernel that is there. The most urgent is prepared last,
      // since that goes before what waits.
      bool others = false;
      for (const size_t next : coming_turns(standings, place)) {
        Searched& other = works[next];
        if (!other.first.empty()) continue;
        constexpr size_t kFew = 2;
        ask(other, kFew);
        source.prepare(next, {other.first.begin(), other.first.end()});
        others = true;
      }
      if (asks || others) source.prepare(place, {work.first.begin(), work.first.end()});
    }
    if (work.first.empty()) {
      work.standing.exhausted = true;
      tuned.ended = "all tried";
      continue;
    }
    const artifact::Schedule candidate = work.first.front();
    work.first.pop_front();
    if (const auto refusal = source.refuse(place, candidate)) {
      // No record: at another moment it may run. The agent goes on to others.
      artifact::Measurement refused;
      refused.message = *refusal;
      tell(work, candidate, refused);
      ++work.standing.trials_without_gain;
      continue;
    }
    const artifact::Measurement m = source.measure(place, candidate, 3 * tuned.best.time_us);
    tell(work, candidate, m);
    work.agent->learn();
    ++tuned.trials;
    ++work.standing.trials;
    ++work.standing.trials_without_gain;
    tuned.attempts.push_back(
        {*limits.trials, candidate.str(), is_verified(m), m.time_us, tuned.best.time_us});
    if (!is_verified(m)) continue;
    // One short look may make a faster candidate seem slower: within the spreads it gets a second one.
    const double hopeful_us = m.time_us - m.spread_us - tuned.best.spread_us;
    if (work.reward.cost(m, hopeful_us) < work.reward.cost(tuned.best)) {
      settle(source, place, work, candidate, m);
      tuned.attempts.back().best_us = tuned.best.time_us;
      if (tuned.schedule == candidate) tell_neighbours(works, source.alike(place), candidate);
    } else {
      rivals[place].push_back({candidate, m});
    }
  }
  meet_finalists(works, rivals, source, limits, listener);
  for (Searched& work : works) work.tuned->trials_without_gain = work.standing.trials_without_gain;
}

}  // namespace thrice::flow
