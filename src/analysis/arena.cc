#include "analysis/arena.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>

#include "base/rng.h"

namespace thrice::analysis {

namespace {
constexpr std::ptrdiff_t kExactTensors = 12;
// Of the search: as many as twelve tensors ever need; beyond, tensors looked at, which take some
// milliseconds.
constexpr int64_t kAllNodes = int64_t{1} << 40, kSomeLooks = 400'000;

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

// Branch and bound. Some best plan has every interval at the lowest offset that those below it leave: sorted
// by offset, each one lies on top of those that were placed before it and live with it. So orders are tried,
// and an order is given up once, at some moment, what is placed and what is still to come above it reach the
// best so far.
class Exact {
 public:
  Exact(const std::vector<Interval>& intervals, int64_t alignment, int64_t lower_bound, int64_t max_nodes)
      : lower_bound_(lower_bound), left_(max_nodes) {
    std::vector<int> begins;
    for (size_t i = 0; i < intervals.size(); ++i)
      if (intervals[i].bytes > 0) begins.push_back(intervals[i].first);
    std::sort(begins.begin(), begins.end());
    begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
    const auto at = [&](int moment) {
      return static_cast<size_t>(std::upper_bound(begins.begin(), begins.end(), moment) - begins.begin()) - 1;
    };
    // What is alive changes for the worse where something begins: these moments are enough.
    top_.assign(begins.size(), 0);
    rest_.assign(begins.size(), 0);
    for (size_t i = 0; i < intervals.size(); ++i) {
      if (intervals[i].bytes == 0) continue;
      items_.push_back(
          {i, align_up(intervals[i].bytes, alignment), at(intervals[i].first), at(intervals[i].last)});
      for (size_t m = items_.back().first; m <= items_.back().last; ++m) rest_[m] += items_.back().bytes;
    }
    offsets_.assign(items_.size(), 0);
    is_placed_.assign(items_.size(), 0);
  }
  // Lowers `best` where it can; true = to the least there is.
  bool run(ArenaPlan& best) {
    best_ = &best;
    place(0, 0, 0);
    return left_ > 0 || best.bytes == lower_bound_;
  }

 private:
  struct Item {
    size_t interval;
    int64_t bytes;
    size_t first, last;
  };
  int64_t base(const Item& item) const {
    return *std::max_element(top_.begin() + static_cast<std::ptrdiff_t>(item.first),
                             top_.begin() + static_cast<std::ptrdiff_t>(item.last) + 1);
  }
  // What is still to come while it is alive lies above it.
  bool fits(const Item& item, int64_t end) const {
    for (size_t m = item.first; m <= item.last; ++m)
      if (end + rest_[m] - item.bytes >= best_->bytes) return false;
    return true;
  }

  // `lowest`, `last`: the offset of the last one placed, and its number. Those of one offset are not alive
  // together and may be placed in any order: only that of their numbers is tried.
  void place(size_t count, int64_t lowest, size_t last) {
    if (count == items_.size()) {
      best_->bytes = *std::max_element(top_.begin(), top_.end());
      for (size_t i = 0; i < items_.size(); ++i) best_->offsets[items_[i].interval] = offsets_[i];
      return;
    }
    std::vector<std::pair<int64_t, size_t>> next;
    for (size_t i = 0; i < items_.size(); ++i) {
      if (is_placed_[i]) continue;
      const int64_t offset = base(items_[i]);
      if (offset + items_[i].bytes >= best_->bytes) return;  // later it lies no lower
      if (offset > lowest || (offset == lowest && (count == 0 || i > last))) next.emplace_back(offset, i);
    }
    std::sort(next.begin(), next.end(), [&](const auto& a, const auto& b) {
      return std::pair(a.first, -items_[a.second].bytes) < std::pair(b.first, -items_[b.second].bytes);
    });
    for (const auto& [offset, i] : next) {
      if (left_ <= 0 || best_->bytes == lower_bound_) return;
      --left_;
      const Item& item = items_[i];
      if (!fits(item, offset + item.bytes)) continue;
      const std::vector<int64_t> before(top_.begin() + static_cast<std::ptrdiff_t>(item.first),
                                        top_.begin() + static_cast<std::ptrdiff_t>(item.last) + 1);
      for (size_t m = item.first; m <= item.last; ++m) {
        top_[m] = offset + item.bytes;
        rest_[m] -= item.bytes;
      }
      offsets_[i] = offset;
      is_placed_[i] = 1;
      place(count + 1, offset, i);
      is_placed_[i] = 0;
      for (size_t m = item.first; m <= item.last; ++m) {
        top_[m] = before[m - item.first];
        rest_[m] += item.bytes;
      }
    }
  }

  std::vector<Item> items_;
  std::vector<int64_t> top_, rest_;  // by moment: the end of what is placed; bytes to come
  std::vector<int64_t> offsets_;
  std::vector<uint8_t> is_placed_;
  ArenaPlan* best_ = nullptr;
  int64_t lower_bound_, left_;
};

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
  best.is_optimal = best.bytes == lower_bound;
  if (!best.is_optimal) {
    const auto tensors =
        std::count_if(intervals.begin(), intervals.end(), [](const Interval& i) { return i.bytes > 0; });
    const int64_t nodes = tensors <= kExactTensors ? kAllNodes : kSomeLooks / tensors;
    best.is_optimal = Exact(intervals, alignment, lower_bound, nodes).run(best);
  }
  return best;
}

}  // namespace thrice::analysis
