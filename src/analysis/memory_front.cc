#include "analysis/memory_front.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace thrice::analysis {

namespace {

struct State {
  int64_t kept = 0, peak = 0;
  double time = 0;
  size_t from = 0, choice = 0;
};

// Leaves those that no other beats in all three.
void prune(std::vector<State>& states) {
  std::sort(states.begin(), states.end(), [](const State& a, const State& b) {
    return std::tie(a.time, a.kept, a.peak) < std::tie(b.time, b.kept, b.peak);
  });
  std::vector<State> best;
  std::map<int64_t, int64_t> stairs;  // of what is no slower: bytes kept -> least peak, falling
  for (const State& state : states) {
    auto it = stairs.upper_bound(state.kept);
    if (it != stairs.begin() && std::prev(it)->second <= state.peak) continue;
    while (it != stairs.end() && it->second >= state.peak) it = stairs.erase(it);
    stairs[state.kept] = state.peak;
    best.push_back(state);
  }
  states = std::move(best);
}

int64_t rounded_up(int64_t bytes, int64_t step) {
  const int64_t whole = bytes >= 0 ? (bytes + step - 1) / step : -(-bytes / step);
  return whole * step;
}

}  // namespace

MemoryFront memory_front(const std::vector<std::vector<RegionChoice>>& regions, int64_t floor,
                         size_t max_states) {
  constexpr int64_t kSteps = 64;
  MemoryFront front;
  std::vector<std::vector<State>> layers{{{0, floor, 0, 0, 0}}};
  for (const std::vector<RegionChoice>& choices : regions) {
    std::vector<State> next;
    for (size_t s = 0; s < layers.back().size(); ++s)
      for (size_t c = 0; c < choices.size(); ++c) {
        const State& state = layers.back()[s];
        next.push_back({state.kept + choices[c].kept, std::max(state.peak, choices[c].peak),
                        state.time + choices[c].time, s, c});
      }
    prune(next);
    if (next.size() > max_states) {
      const auto [less, more] = std::minmax_element(
          next.begin(), next.end(), [](const State& a, const State& b) { return a.kept < b.kept; });
      const auto [low, high] = std::minmax_element(
          next.begin(), next.end(), [](const State& a, const State& b) { return a.peak < b.peak; });
      const int64_t step =
          std::max({int64_t{1}, (more->kept - less->kept) / kSteps, (high->peak - low->peak) / kSteps});
      for (State& state : next) {
        state.kept = rounded_up(state.kept, step);
        state.peak = rounded_up(state.peak, step);
      }
      prune(next);
      front.is_exact = false;
      front.step = std::max(front.step, step);
    }
    layers.push_back(std::move(next));
  }

  std::vector<FrontPoint> points;
  for (const State& last : layers.back()) {
    FrontPoint point;
    point.choices.resize(regions.size());
    int64_t peak = floor;
    const State* state = &last;
    for (size_t r = regions.size(); r-- > 0; state = &layers[r][state->from]) {
      point.choices[r] = state->choice;
      point.bytes += regions[r][state->choice].kept;
      peak = std::max(peak, regions[r][state->choice].peak);
    }
    point.bytes += peak;
    point.time = last.time;
    points.push_back(std::move(point));
  }
  std::sort(points.begin(), points.end(), [](const FrontPoint& a, const FrontPoint& b) {
    return std::tie(a.bytes, a.time, a.choices) < std::tie(b.bytes, b.time, b.choices);
  });
  for (FrontPoint& point : points)
    if (front.points.empty() || point.time < front.points.back().time)
      front.points.push_back(std::move(point));
  return front;
}

}  // namespace thrice::analysis
