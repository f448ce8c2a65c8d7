// Lists of parameter choices.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace thrice::family {

// `choices` and `chosen`, ascending, each once: a space contains its default.
inline std::vector<int64_t> with_choice(std::vector<int64_t> choices, int64_t chosen) {
  choices.push_back(chosen);
  std::sort(choices.begin(), choices.end());
  choices.erase(std::unique(choices.begin(), choices.end()), choices.end());
  return choices;
}

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

inline int64_t power_of_two_at_least(int64_t n) {
  int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

inline bool is_power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

}  // namespace thrice::family
