// Which schedule serves which lengths of a symbolic extent: exact, by dynamic programming over lengths.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace thrice::plan {

// A length that requests have, and which share of them.
struct LengthShare {
  int64_t length = 0;
  double share = 0;
};

// What one schedule takes at the lengths where it was timed, ascending and not empty. Between two of them a
// straight line; before the first and after the last the nearest two are carried on, never below zero.
struct LengthCost {
  std::vector<std::pair<int64_t, double>> us;
  double at(int64_t length) const;
};

// Lengths up to `up_to`, above the range before, are served by choice number `choice`.
struct LengthRange {
  int64_t up_to = 0;
  size_t choice = 0;
  bool operator==(const LengthRange&) const = default;
};

// The split with the least expected time: sum over lengths of share x time, plus `per_range_us` for each
// range beyond the first (a kernel more to build, verify, hold and load must earn that). `lengths` ascend.
// Ties go to fewer ranges, then to earlier choices. Kernels serve any length, so a length costs its own time
// and not that of its bucket's end. Cost: lengths x choices.
std::vector<LengthRange> split_lengths(const std::vector<LengthShare>& lengths,
                                       const std::vector<LengthCost>& choices, double per_range_us);

double expected_us(const std::vector<LengthShare>& lengths, const std::vector<LengthCost>& choices,
                   const std::vector<LengthRange>& ranges);

// At most `count` lengths to tune at: ends of parts of equal work (share x length), the longest always.
std::vector<int64_t> tuning_points(const std::vector<LengthShare>& lengths, size_t count);

}  // namespace thrice::plan
