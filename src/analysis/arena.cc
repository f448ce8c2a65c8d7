#include "analysis/arena.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace thrice::analysis {

namespace {
int64_t align_up(int64_t bytes, int64_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }
}  // namespace

ArenaPlan plan_arena(const std::vector<Interval>& intervals, int64_t alignment) {
  ArenaPlan plan;
  plan.offsets.assign(intervals.size(), 0);
  std::vector<size_t> order(intervals.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (intervals[a].bytes != intervals[b].bytes) return intervals[a].bytes > intervals[b].bytes;
    return intervals[a].first < intervals[b].first;
  });

  struct Placed {
    int64_t begin, end;
    int first, last;
  };
  std::vector<Placed> placed;  // sorted by begin
  for (size_t i : order) {
    const Interval& interval = intervals[i];
    const int64_t bytes = align_up(interval.bytes, alignment);
    if (bytes == 0) continue;
    int64_t best = -1, best_gap = 0, end = 0;
    for (const Placed& other : placed) {
      if (other.last < interval.first || other.first > interval.last) continue;
      const int64_t gap = other.begin - end;
      if (gap >= bytes && (best < 0 || gap < best_gap)) {
        best = end;
        best_gap = gap;
      }
      end = std::max(end, other.end);
    }
    const int64_t offset = best >= 0 ? best : end;
    plan.offsets[i] = offset;
    plan.bytes = std::max(plan.bytes, offset + bytes);
    const Placed entry{offset, offset + bytes, interval.first, interval.last};
    placed.insert(std::upper_bound(placed.begin(), placed.end(), entry,
                                   [](const Placed& a, const Placed& b) { return a.begin < b.begin; }),
                  entry);
  }

  std::map<int, int64_t> change;
  for (const Interval& interval : intervals) {
    change[interval.first] += align_up(interval.bytes, alignment);
    change[interval.last + 1] -= align_up(interval.bytes, alignment);
  }
  int64_t live = 0;
  for (const auto& [step, delta] : change) {
    live += delta;
    plan.lower_bound = std::max(plan.lower_bound, live);
  }
  return plan;
}

}  // namespace thrice::analysis
