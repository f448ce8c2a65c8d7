// Time for measuring and for records.
#pragma once
#include <chrono>
#include <cstdint>
#include <ctime>

namespace thrice {

inline double monotonic_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
inline int64_t unix_time() { return static_cast<int64_t>(std::time(nullptr)); }

}  // namespace thrice
