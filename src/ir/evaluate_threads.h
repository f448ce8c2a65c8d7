// Splits large host loops over the machine's cores; small ones stay on the calling thread.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>

namespace thrice::ir {

// Calls f(part) once for each part of [0, parts), on this thread and on idle ones of a pool that the process
// keeps. Returns when all are done. May be called from any thread and from within f: who waits for helpers
// has done what they left. f must not throw.
void run_parts(int64_t parts, const std::function<void(int64_t)>& f);

// Threads that share a loop, the caller among them: the machine's cores, 64 at most. Results do not depend on
// it.
int loop_threads();
// For tests and measurements; 0 = the default again. Not while a loop runs.
void set_loop_threads(int count);

// Calls f(begin, end) over parts of [0, n). `work` = rough number of scalar operations of one item; below
// half a million in all everything stays on this thread (waking one costs some microseconds). f must not
// throw.
template <class F>
void parallel_for(int64_t n, int64_t work, F&& f) {
  constexpr double kWorthAPart = 2.5e5;
  constexpr int64_t kPartsAThread = 4;  // cores are shared: who is late leaves parts to others
  const double total = static_cast<double>(n) * static_cast<double>(std::max<int64_t>(work, 1));
  const int64_t parts =
      std::min({n, kPartsAThread * loop_threads(), static_cast<int64_t>(std::min(total / kWorthAPart, 1e6))});
  if (parts <= 1 || loop_threads() <= 1) {
    if (n > 0) f(int64_t{0}, n);
    return;
  }
  run_parts(parts, [&f, n, parts](int64_t p) { f(n * p / parts, n * (p + 1) / parts); });
}

}  // namespace thrice::ir
