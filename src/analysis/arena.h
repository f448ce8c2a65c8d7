// Offsets from lifetimes: where each temporary tensor lies in one device allocation.
#pragma once
#include <cstdint>
#include <vector>

namespace thrice::analysis {

// One tensor alive from step `first` to step `last`, both included.
struct Interval {
  int64_t bytes = 0;
  int first = 0, last = 0;
};

struct ArenaPlan {
  std::vector<int64_t> offsets;  // per interval, multiples of the alignment
  int64_t bytes = 0;             // arena size
  int64_t lower_bound = 0;       // max over steps of the bytes alive: no arena can be smaller
  bool is_optimal = false;       // known: it equals the lower bound, or the search came to its end
};

// Best fit in the best of five orders (by size, by size times life, by life, by begin, by end), then of
// orders near to it, tried until the arena is as small as the lower bound: each interval takes the smallest
// gap that holds it among those alive with it. What is then above the lower bound is searched by branch and
// bound: to the end up to 12 tensors, for some milliseconds beyond. Empty tensors take offset 0.
// Deterministic. Cost: O(n^2) in intervals a try; 2000 intervals take some ten milliseconds.
ArenaPlan plan_arena(const std::vector<Interval>& intervals, int64_t alignment = 256);

}  // namespace thrice::analysis
