#include "plan/buckets.h"

#include <algorithm>

namespace thrice::plan {

double LengthCost::at(int64_t length) const {
  if (us.size() == 1) return us[0].second;
  size_t right = 1;
  while (right + 1 < us.size() && us[right].first < length) ++right;
  const auto [x0, y0] = us[right - 1];
  const auto [x1, y1] = us[right];
  return std::max(0.0, y0 + (y1 - y0) * static_cast<double>(length - x0) / static_cast<double>(x1 - x0));
}

std::vector<LengthRange> split_lengths(const std::vector<LengthShare>& lengths,
                                       const std::vector<LengthCost>& choices, double per_range_us) {
  if (lengths.empty() || choices.empty()) return {};
  // best[c]: least cost of the lengths so far with choice c for the last one; from[i][c]: the choice before
  // it.
  const size_t n = choices.size();
  std::vector<double> best(n, 0);
  std::vector<std::vector<size_t>> from(lengths.size(), std::vector<size_t>(n));
  for (size_t i = 0; i < lengths.size(); ++i) {
    const auto least = static_cast<size_t>(std::min_element(best.begin(), best.end()) - best.begin());
    const double changed = best[least] + (i == 0 ? 0 : per_range_us);
    for (size_t c = 0; c < n; ++c) {
      const bool changes = changed < best[c];
      from[i][c] = changes ? least : c;
      best[c] = (changes ? changed : best[c]) + lengths[i].share * choices[c].at(lengths[i].length);
    }
  }
  auto choice = static_cast<size_t>(std::min_element(best.begin(), best.end()) - best.begin());
  std::vector<LengthRange> ranges;
  for (size_t i = lengths.size(); i-- > 0;) {
    if (ranges.empty() || ranges.back().choice != choice) ranges.push_back({lengths[i].length, choice});
    choice = from[i][choice];
  }
  std::reverse(ranges.begin(), ranges.end());
  return ranges;
}

double expected_us(const std::vector<LengthShare>& lengths, const std::vector<LengthCost>& choices,
                   const std::vector<LengthRange>& ranges) {
  double us = 0;
  size_t r = 0;
  for (const LengthShare& l : lengths) {
    while (r + 1 < ranges.size() && l.length > ranges[r].up_to) ++r;
    us += l.share * choices[ranges[r].choice].at(l.length);
  }
  return us;
}

std::vector<int64_t> tuning_points(const std::vector<LengthShare>& lengths, size_t count) {
  const auto work = [](const LengthShare& l) { return l.share * static_cast<double>(l.length); };
  double all = 0, done = 0;
  for (const LengthShare& l : lengths) all += work(l);
  std::vector<int64_t> points;
  for (size_t i = 0; i < lengths.size(); ++i) {
    done += work(lengths[i]);
    const double part = all / static_cast<double>(std::max<size_t>(count, 1));
    if (i + 1 == lengths.size() || done >= part * static_cast<double>(points.size() + 1) * (1 - 1e-9))
      if (points.size() + 1 < count || i + 1 == lengths.size()) points.push_back(lengths[i].length);
  }
  return points;
}

}  // namespace thrice::plan
