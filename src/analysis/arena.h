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
};

// Best fit by decreasing size: intervals sorted by size (then by first step, then by index) each take the
// lowest gap that holds them among those alive with them. Empty tensors take offset 0. Deterministic. Cost:
// O(n^2) in intervals; 2000 intervals take a few milliseconds.
ArenaPlan plan_arena(const std::vector<Interval>& intervals, int64_t alignment = 256);

}  // namespace thrice::analysis
