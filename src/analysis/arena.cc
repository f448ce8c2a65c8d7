#include "analysis/arena.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>

#include "base/rng.h"

namespace thrice::analysis {

namespace {
int64_t align_up(int64_t bytes, int64_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

// Places intervals in the given order, each into the lowest of the smallest gaps that hold it.
ArenaPlan place_in_order(const std::vector<Interval>& intervals, const std::vector<size_t>& order,
                         int64_t alignment) {
  ArenaPlan plan;
  plan.offsets.assign(intervals.size(), 0);
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
  return plan;
}

// Moves single intervals forward in the order, by a fixed sequence of random numbers, and keeps what is not
// worse.
void improve(const std::vector<Interval>& intervals, int64_t alignment, int64_t lower_bound,
             std::vector<size_t> order, ArenaPlan& best) {
  constexpr int64_t kSteps = 2'000'000;  // of placing: a few milliseconds, once for each new shape
  const auto n = static_cast<int64_t>(intervals.size());
  if (n < 3) return;
  Rng rng(1);
  for (int64_t left = std::min<int64_t>(200, kSteps / (n * n)); left > 0 && best.bytes > lower_bound;
       --left) {
    std::vector<size_t> other = order;
    const size_t from = 1 + rng.below(static_cast<uint64_t>(n - 1)), to = rng.below(from);
    std::rotate(other.begin() + static_cast<std::ptrdiff_t>(to),
                other.begin() + static_cast<std::ptrdiff_t>(from),
                other.begin() + static_cast<std::ptrdiff_t>(from) + 1);
    ArenaPlan plan = place_in_order(intervals, other, alignment);
    if (plan.bytes > best.bytes) continue;
    best = std::move(plan);
    order = std::move(other);
  }
}

}  // namespace

ArenaPlan plan_arena(const std::vector<Interval>& intervals, int64_t alignment) {
  int64_t lower_bound = 0;
  std::map<int, int64_t> change;
  for (const Interval& interval : intervals) {
    change[interval.first] += align_up(interval.bytes, alignment);
    change[interval.last + 1] -= align_up(interval.bytes, alignment);
  }
  int64_t live = 0;
  for (const auto& [step, delta] : change) {
    live += delta;
    lower_bound = std::max(lower_bound, live);
  }

  // What comes first in an order: each is the best on some networks, and placing is cheap.
  using Key = std::array<int64_t, 2>;
  const auto length = [](const Interval& i) { return int64_t{i.last} - i.first + 1; };
  const std::function<Key(const Interval&)> orders[] = {
      [](const Interval& i) -> Key {
        return {-i.bytes, i.first};
      },
      [&](const Interval& i) -> Key {
        return {-i.bytes * length(i), i.first};
      },
      [&](const Interval& i) -> Key {
        return {-length(i), -i.bytes};
      },
      [](const Interval& i) -> Key {
        return {i.first, -i.bytes};
      },
      [](const Interval& i) -> Key {
        return {-i.last, -i.bytes};
      },
  };
  ArenaPlan best;
  best.bytes = -1;
  std::vector<size_t> order_of_best;
  for (const auto& key : orders) {
    std::vector<size_t> order(intervals.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return key(intervals[a]) < key(intervals[b]); });
    ArenaPlan plan = place_in_order(intervals, order, alignment);
    if (best.bytes < 0 || plan.bytes < best.bytes) {
      best = std::move(plan);
      order_of_best = std::move(order);
    }
    if (best.bytes == lower_bound) break;
  }
  improve(intervals, alignment, lower_bound, order_of_best, best);
  best.lower_bound = lower_bound;
  return best;
}

}  // namespace thrice::analysis
