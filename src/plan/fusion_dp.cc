#include "plan/fusion_dp.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

namespace thrice::plan {

namespace {

constexpr size_t kMostTried = 8;  // ready atoms that are compared at a state: which waits for the least

// A candidate as sets.
struct Region {
  AtomSet atoms, needs;  // needs: outside atoms that its own read
  AtomSet cone;          // its atoms and all that lead to them
};

class Search {
 public:
  Search(const FusionProblem& problem, int without)
      : problem_(problem), n_(problem.size()), without_(without) {
    const Reach reach = reach_of(problem.after);
    before_.assign(n_, AtomSet(n_));
    for (size_t a = 0; a < n_; ++a)
      for (const int b : problem.after[a]) before_[static_cast<size_t>(b)].add(a);
    of_atom_.resize(n_);
    for (size_t c = 0; c < problem.candidates.size(); ++c) {
      Region region{AtomSet(n_), AtomSet(n_), AtomSet(n_)};
      for (const int a : problem.candidates[c].atoms) region.atoms.add(static_cast<size_t>(a));
      region.cone = region.atoms;
      for (const int a : problem.candidates[c].atoms) {
        of_atom_[static_cast<size_t>(a)].push_back(static_cast<int>(c));
        region.cone |= reach.above[static_cast<size_t>(a)];
        before_[static_cast<size_t>(a)].each([&](size_t b) {
          if (!region.atoms.has(b)) region.needs.add(b);
        });
      }
      regions_.push_back(std::move(region));
    }
    looked_.assign(regions_.size(), 0);
    share_out();
  }

  FusionAnswer run(double at_most, const SearchBounds& bounds) {
    FusionAnswer answer;
    at_most += 1e-9 * (1 + std::abs(at_most));  // sums in another order
    double all = 0;
    for (const double share : least_) all += share;
    State start;
    start.done = AtomSet(n_);
    start.left = all;
    states_.push_back(start);
    index_.emplace(states_[0].done, 0);
    queue_.push({all, 0, 0});
    while (!queue_.empty()) {
      const Waiting next = queue_.top();
      queue_.pop();
      const auto s = static_cast<size_t>(next.state);
      if (states_[s].closed) continue;
      states_[s].closed = true;
      if (next.done == static_cast<int>(n_)) {
        answer.found = true;
        answer.us = states_[s].us;
        for (size_t at = s; states_[at].by >= 0; at = static_cast<size_t>(states_[at].from))
          answer.candidates.push_back(states_[at].by);
        std::reverse(answer.candidates.begin(), answer.candidates.end());
        break;
      }
      expand(s, next.done, at_most);
      if (static_cast<int64_t>(states_.size()) > bounds.states || looks_ > bounds.looks) break;
    }
    answer.looks = looks_;
    answer.states = static_cast<int64_t>(states_.size());
    return answer;
  }

 private:
  struct State {
    AtomSet done;
    double us = 0, left = 0;  // so far; at least, from here
    int from = -1, by = -1;   // state and candidate that led here
    bool closed = false;
  };
  struct Waiting {
    double least;
    int done, state;
    bool operator<(const Waiting& other) const {  // the top is the largest
      if (least != other.least) return least > other.least;
      if (done != other.done) return done < other.done;
      return state > other.state;
    }
  };

  // What an atom costs at least, whatever region it is in: a region's price is shared among its atoms as they
  // would cost alone.
  void share_out() {
    std::vector<double> alone(n_, 1);
    for (const CandidateRegion& c : problem_.candidates)
      if (c.atoms.size() == 1) alone[static_cast<size_t>(c.atoms[0])] = c.us + 1e-6;
    least_.assign(n_, std::numeric_limits<double>::infinity());
    for (const CandidateRegion& c : problem_.candidates) {
      double sum = 0;
      for (const int a : c.atoms) sum += alone[static_cast<size_t>(a)];
      for (const int a : c.atoms)
        least_[static_cast<size_t>(a)] =
            std::min(least_[static_cast<size_t>(a)], c.us * alone[static_cast<size_t>(a)] / sum);
    }
  }

  bool is_ready(int c, const AtomSet& done) const {
    const Region& region = regions_[static_cast<size_t>(c)];
    return c != without_ && !region.atoms.meets(done) && done.contains(region.needs);
  }

  void expand(size_t s, int count, double at_most) {
    const AtomSet done = states_[s].done;
    std::vector<size_t> ready;
    for (size_t a = 0; a < n_; ++a)
      if (!done.has(a) && done.contains(before_[a])) ready.push_back(a);
    size_t chosen = ready[0], count_wanted = n_;
    AtomSet wanted(n_);
    for (size_t i = 0; i < ready.size() && i < kMostTried && count_wanted > 0; ++i) {
      AtomSet other(n_);
      const size_t other_count = wanted_before(ready[i], done, i == 0 ? n_ : count_wanted, other);
      if (i > 0 && other_count >= count_wanted) continue;
      chosen = ready[i];
      count_wanted = other_count;
      wanted = std::move(other);
    }
    wanted.add(chosen);
    for (const size_t a : ready) {
      looks_ += static_cast<int64_t>(of_atom_[a].size());
      for (const int c : of_atom_[a])
        if (is_ready(c, done) && is_first(c, a, done) && regions_[static_cast<size_t>(c)].atoms.meets(wanted))
          step(s, c, count, at_most);
    }
  }

  // In any answer the region of a ready atom comes after the regions that it waits for; each of these holds
  // one of the atoms found here. One of them or the region itself can be the next, so no other need be tried.
  // Returns their number; where it reaches `enough` the search for them ends.
  size_t wanted_before(size_t atom, const AtomSet& done, size_t enough, AtomSet& wanted) {
    ++look_;
    size_t count = 0;
    std::vector<size_t> open{atom};
    while (!open.empty()) {
      const size_t a = open.back();
      open.pop_back();
      for (const int c : of_atom_[a]) {
        // Once each: all that hold `atom` are met at the first turn, and what one adds is the same at any.
        int64_t& looked = looked_[static_cast<size_t>(c)];
        if (looked == look_) continue;
        looked = look_;
        ++looks_;
        const Region& region = regions_[static_cast<size_t>(c)];
        if (c == without_ || region.atoms.meets(done)) continue;
        region.cone.each([&](size_t b) {
          if (region.atoms.has(b) || done.has(b) || wanted.has(b)) return;
          wanted.add(b);
          ++count;
          open.push_back(b);
        });
        if (count >= enough) return count;
      }
    }
    return count;
  }

  // A region with several ready atoms is tried once, at the first.
  bool is_first(int c, size_t atom, const AtomSet& done) const {
    for (const int a : problem_.candidates[static_cast<size_t>(c)].atoms) {
      if (static_cast<size_t>(a) == atom) return true;
      if (done.contains(before_[static_cast<size_t>(a)])) return false;
    }
    return true;
  }

  void step(size_t s, int c, int count, double at_most) {
    const CandidateRegion& candidate = problem_.candidates[static_cast<size_t>(c)];
    State next;
    next.done = states_[s].done;
    next.done |= regions_[static_cast<size_t>(c)].atoms;
    next.us = states_[s].us + candidate.us;
    next.from = static_cast<int>(s);
    next.by = c;
    next.left = 0;  // summed anew: no rounding gathers along a path
    for (size_t a = 0; a < n_; ++a)
      if (!next.done.has(a)) next.left += least_[a];
    if (next.us + next.left > at_most) return;
    const auto [it, is_new] = index_.emplace(next.done, static_cast<int>(states_.size()));
    const int at = it->second;
    const Waiting waiting{next.us + next.left, count + static_cast<int>(candidate.atoms.size()), at};
    if (is_new) {
      states_.push_back(std::move(next));
    } else {
      State& known = states_[static_cast<size_t>(at)];
      if (known.closed || !(next.us < known.us)) return;
      known = std::move(next);
    }
    queue_.push(waiting);
  }

  const FusionProblem& problem_;
  size_t n_;
  int without_;
  int64_t looks_ = 0, look_ = 0;
  std::vector<int64_t> looked_;            // by candidate: in which look for what is wanted it was met last
  std::vector<AtomSet> before_;            // by atom: what it reads
  std::vector<std::vector<int>> of_atom_;  // by atom: candidates that hold it
  std::vector<Region> regions_;
  std::vector<double> least_;
  std::vector<State> states_;
  std::unordered_map<AtomSet, int, AtomSetHash> index_;
  std::priority_queue<Waiting> queue_;
};

}  // namespace

FusionAnswer solve(const FusionProblem& problem, double at_most, const SearchBounds& bounds, int without) {
  return Search(problem, without).run(at_most, bounds);
}

}  // namespace thrice::plan
