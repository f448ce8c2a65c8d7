// Splits large host loops over the machine's cores; small ones stay on the calling thread.
#pragma once
#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace thrice::ir {

// Calls f(begin, end) over parts of [0, n). `work` = rough number of scalar operations of one item; below
// about a million in all no thread is started (starting one costs tens of microseconds). f must not throw.
template <class F>
void parallel_for(int64_t n, int64_t work, F&& f) {
  constexpr double kWorthAThread = 5e5;
  const double total = static_cast<double>(n) * static_cast<double>(std::max<int64_t>(work, 1));
  const int64_t cores = std::max<int64_t>(2, std::thread::hardware_concurrency());
  const int64_t parts =
      std::min({n, std::min<int64_t>(cores, 16), static_cast<int64_t>(std::min(total / kWorthAThread, 1e6))});
  if (parts <= 1) {
    if (n > 0) f(int64_t{0}, n);
    return;
  }
  std::vector<std::jthread> threads;
  for (int64_t p = 1; p < parts; ++p)
    threads.emplace_back([&f, n, p, parts] { f(n * p / parts, n * (p + 1) / parts); });
  f(int64_t{0}, n / parts);
}

}  // namespace thrice::ir
