// How long does it take? Warm-up, batches long enough to resolve, median and spread; several candidates
// interleaved.
#pragma once
#include <functional>
#include <vector>

#include "backend/backend.h"

namespace thrice::measure {

struct Timing {
  double median_us = 0, spread_us = 0;  // of one execution; spread = median absolute deviation
  int samples = 0;
  bool throttled = false;  // too few samples at full clocks: all count, and the spread is doubled
};
struct TimingOptions {
  double min_batch_us = 100;  // executions are batched until one sample lasts this long
  int min_samples = 5;
  double max_total_us = 50e3;  // of one candidate; slow candidates get fewer samples, never less than 3
  double give_up_us = 0;       // time_one: the first sample is the only one when it is slower (0 = never)
  // Was the device below its clocks during the sample that has just ended? May be empty: never. Such samples
  // are taken again, at most as many more as were wanted, and do not count where three others are there.
  std::function<bool()> throttled;
};

// `execute` enqueues one execution on `stream`. CPU devices and null: wall clock around batch and
// synchronize; others: events.
Timing time_one(backend::Device& device, backend::Stream& stream, const std::function<void()>& execute,
                const TimingOptions& options = {});
// A B C A B C ...: drift of the machine hits all alike.
std::vector<Timing> time_interleaved(backend::Device& device, backend::Stream& stream,
                                     const std::vector<std::function<void()>>& executes,
                                     const TimingOptions& options = {});

}  // namespace thrice::measure
