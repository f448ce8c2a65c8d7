// Time against memory: the least time of all regions together for each amount of memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace thrice::analysis {

// One way to compute a region. Bytes of `kept` stay from run to run and add up over regions; `peak` is the
// most that is alive at one time while the region runs, scratch included, and only the largest counts.
struct RegionChoice {
  double time = 0;
  int64_t kept = 0, peak = 0;
};

struct FrontPoint {
  int64_t bytes = 0;            // sum of kept, and the largest peak
  double time = 0;              // sum
  std::vector<size_t> choices;  // by region
};
struct MemoryFront {
  std::vector<FrontPoint>
      points;            // more bytes and less time from one to the next; empty: a region has no choice
  bool is_exact = true;  // no other choices are better than a point in both
  int64_t step = 0;      // else: sums and peaks were rounded up to multiples of it on the way
};

// Dynamic programming over regions: states are the pairs of bytes kept and largest peak so far, each with its
// least time; what another state beats in all three goes. Exact as long as a region leaves no more than
// `max_states`; beyond that, bytes are rounded up to 64 steps. `floor`: the largest peak of what has no
// choice. Points are told by their true bytes in any case. Cost: regions x choices x states, times a
// logarithm.
MemoryFront memory_front(const std::vector<std::vector<RegionChoice>>& regions, int64_t floor = 0,
                         size_t max_states = 4096);

}  // namespace thrice::analysis
