#include "analysis/step_order.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <set>

namespace thrice::analysis {

namespace {

using Done = std::vector<uint64_t>;  // bit s: step s has run

bool has(const Done& done, size_t s) { return (done[s / 64] >> (s % 64) & 1) != 0; }

class Costs {
 public:
  explicit Costs(const OrderProblem& problem)
      : problem_(problem), readers_(problem.bytes.size()), after_(problem.steps.size()) {
    for (size_t s = 0; s < problem.steps.size(); ++s) {
      for (size_t p : problem.steps[s].reads) readers_[p].push_back(s);
      for (size_t b : problem.steps[s].before) after_[b].push_back(s);
    }
  }
  const std::vector<size_t>& after(size_t s) const { return after_[s]; }
  bool is_ready(const Done& done, size_t s) const {
    const auto& before = problem_.steps[s].before;
    return std::all_of(before.begin(), before.end(), [&](size_t b) { return has(done, b); });
  }
  // What running `s` after `done` adds while it runs, and leaves.
  struct Change {
    int64_t running = 0, growth = 0;
  };
  Change change(const Done& done, size_t s) const {
    const OrderedStep& step = problem_.steps[s];
    Change change;
    for (size_t p : step.makes) {
      change.running += problem_.bytes[p];
      if (!readers_[p].empty()) change.growth += problem_.bytes[p];
    }
    const auto ends = [&](size_t p) {
      return std::all_of(readers_[p].begin(), readers_[p].end(),
                         [&](size_t r) { return r == s || has(done, r); });
    };
    for (size_t p : step.reads)
      if (ends(p)) change.growth -= problem_.bytes[p];
    std::vector<size_t> taken;
    for (const auto& [read, made] : step.shares) {
      const auto is_taken = [&](size_t p) { return std::find(taken.begin(), taken.end(), p) != taken.end(); };
      if (problem_.bytes[read] == 0 || problem_.bytes[read] < problem_.bytes[made] || is_taken(read) ||
          is_taken(made) || !ends(read))
        continue;
      change.running -= problem_.bytes[made];
      taken.insert(taken.end(), {read, made});
    }
    change.running += step.scratch;
    return change;
  }
  // Any order has at least this: each step with what it reads, makes and needs.
  int64_t least() const {
    int64_t least = 0;
    for (const OrderedStep& step : problem_.steps) {
      int64_t bytes = step.scratch;
      for (size_t p : step.makes) bytes += problem_.bytes[p];
      for (size_t p : step.reads) bytes += problem_.bytes[p];
      for (const auto& [read, made] : step.shares) bytes -= problem_.bytes[made];
      least = std::max(least, bytes);
    }
    return least;
  }

 private:
  const OrderProblem& problem_;
  std::vector<std::vector<size_t>> readers_, after_;
};

// Runs steps one after the other and counts.
class Simulation {
 public:
  Simulation(const OrderProblem& problem, const Costs& costs)
      : costs_(costs), done_((problem.steps.size() + 63) / 64, 0) {
    for (size_t s = 0; s < problem.steps.size(); ++s)
      if (problem.steps[s].before.empty()) ready_.insert(s);
  }
  const std::set<size_t>& ready() const { return ready_; }
  Costs::Change change(size_t s) const { return costs_.change(done_, s); }
  void run(size_t s) {
    const Costs::Change change = costs_.change(done_, s);
    most_ = std::max(most_, live_ + change.running);
    live_ += change.growth;
    done_[s / 64] |= uint64_t{1} << (s % 64);
    ready_.erase(s);
    for (size_t next : costs_.after(s))
      if (costs_.is_ready(done_, next)) ready_.insert(next);
  }
  int64_t most() const { return most_; }

 private:
  const Costs& costs_;
  Done done_;
  std::set<size_t> ready_;
  int64_t live_ = 0, most_ = 0;
};

int64_t simulate(const OrderProblem& problem, const Costs& costs, const std::vector<size_t>& order) {
  Simulation simulation(problem, costs);
  for (size_t s : order) simulation.run(s);
  return simulation.most();
}

std::vector<size_t> greedy(const OrderProblem& problem, const Costs& costs, bool by_growth) {
  Simulation simulation(problem, costs);
  std::vector<size_t> order;
  while (!simulation.ready().empty()) {
    const auto cost = [&](size_t s) {
      const Costs::Change change = simulation.change(s);
      return by_growth ? std::pair(change.growth, change.running) : std::pair(change.running, change.growth);
    };
    const size_t next = *std::min_element(simulation.ready().begin(), simulation.ready().end(),
                                          [&](size_t a, size_t b) { return cost(a) < cost(b); });
    simulation.run(next);
    order.push_back(next);
  }
  return order;
}

// The least maximum over all paths from the empty set to the full one. True when the search ended within its
// bound; `order` is then filled where one below `limit` exists.
class Search {
 public:
  Search(const OrderProblem& problem, const Costs& costs) : problem_(problem), costs_(costs) {}

  bool run(int64_t limit, size_t max_states, std::vector<size_t>& order) {
    const size_t n = problem_.steps.size();
    const int64_t least = costs_.least();
    if (least >= limit) return true;
    add({Done((n + 63) / 64, 0), 0, least, 0, kNone, kNone});
    while (!queue_.empty()) {
      const size_t at = queue_.top().state;
      queue_.pop();
      if (states_[at].is_closed) continue;
      states_[at].is_closed = true;
      if (states_[at].count == n) {
        for (size_t i = at; states_[i].from != kNone; i = states_[i].from) order.push_back(states_[i].step);
        std::reverse(order.begin(), order.end());
        return true;
      }
      expand(at, limit);
      if (states_.size() > max_states) return false;
    }
    return true;
  }
  size_t states() const { return states_.size(); }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);
  struct State {
    Done done;
    int64_t live = 0, most = 0;
    size_t count = 0, from = kNone, step = kNone;
    bool is_closed = false;
  };
  struct Entry {
    int64_t most;
    size_t count, state;
    bool operator<(const Entry& o) const {  // the least memory first; then what is nearest to its end
      if (most != o.most) return most > o.most;
      if (count != o.count) return count < o.count;
      return state > o.state;
    }
  };

  void expand(size_t at, int64_t limit) {
    std::vector<std::pair<size_t, Costs::Change>> moves;
    for (size_t s = 0; s < problem_.steps.size(); ++s) {
      if (has(states_[at].done, s) || !costs_.is_ready(states_[at].done, s)) continue;
      const Costs::Change change = costs_.change(states_[at].done, s);
      if (change.growth <= 0 && states_[at].live + change.running <= states_[at].most) {
        moves = {{s, change}};
        break;
      }
      moves.emplace_back(s, change);
    }
    for (const auto& [s, change] : moves) {
      const State& from = states_[at];
      const int64_t most = std::max(from.most, from.live + change.running);
      if (most >= limit) continue;
      Done done = from.done;
      done[s / 64] |= uint64_t{1} << (s % 64);
      add({std::move(done), from.live + change.growth, most, from.count + 1, at, s});
    }
  }
  void add(State state) {
    const auto [it, is_new] = known_.try_emplace(state.done, states_.size());
    if (is_new) {
      queue_.push({state.most, state.count, states_.size()});
      states_.push_back(std::move(state));
      return;
    }
    State& known = states_[it->second];
    if (known.is_closed || known.most <= state.most) return;
    queue_.push({state.most, state.count, it->second});
    known = std::move(state);
  }

  const OrderProblem& problem_;
  const Costs& costs_;
  std::vector<State> states_;
  std::map<Done, size_t> known_;
  std::priority_queue<Entry> queue_;
};

}  // namespace

int64_t peak_of(const OrderProblem& problem, const std::vector<size_t>& order) {
  return simulate(problem, Costs(problem), order);
}

StepOrder order_steps(const OrderProblem& problem, size_t max_states) {
  const Costs costs(problem);
  StepOrder best;
  best.order.resize(problem.steps.size());
  std::iota(best.order.begin(), best.order.end(), size_t{0});
  best.peak = best.given_peak = simulate(problem, costs, best.order);
  for (const bool by_growth : {true, false}) {
    std::vector<size_t> order = greedy(problem, costs, by_growth);
    const int64_t peak = simulate(problem, costs, order);
    if (order.size() < problem.steps.size() || peak >= best.peak) continue;
    best.peak = peak;
    best.order = std::move(order);
  }
  Search search(problem, costs);
  std::vector<size_t> order;
  best.is_optimal = search.run(best.peak, max_states, order);
  best.states = search.states();
  if (!order.empty()) {
    best.peak = simulate(problem, costs, order);
    best.order = std::move(order);
  }
  if (best.peak < best.given_peak) best.method = best.is_optimal ? OrderMethod::kExact : OrderMethod::kGreedy;
  return best;
}

}  // namespace thrice::analysis
