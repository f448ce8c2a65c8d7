// How long does it take? Warm-up, batches long enough to resolve, median and spread, with the state of the
// device beside each sample; several candidates interleaved.
#pragma once
#include <concepts>
#include <functional>
#include <vector>

#include "artifact/measurement.h"
#include "backend/backend.h"

namespace thrice::measure {

// What a device was like when a sample ended; -1 = not told.
struct SampleState {
  bool throttled = false;  // clocks held down (heat, hardware, an external brake; not the power cap)
  double sm_mhz = -1, memory_mhz = -1, temperature_c = -1, power_w = -1;
};

struct Timing {
  double median_us = 0, spread_us = 0;  // of one execution; spread = median absolute deviation
  int samples = 0;
  bool throttled = false;           // too few samples at full clocks: all count, and the spread is doubled
  artifact::Conditions conditions;  // over all samples that were taken
};

// What is timed: a function that enqueues one execution.
struct Timed {
  template <class F>
  requires std::invocable<F&> Timed(F e)
      : execute(std::move(e)) {}  // NOLINT: a function is one, with warm caches
  Timed(std::function<void()> e, std::function<void()> c, int d)
      : execute(std::move(e)), chill(std::move(c)), distinct(d) {}
  std::function<void()> execute;
  // Cold caches: `chill` enqueues what drives the operands out, before each sample and outside of it; the
  // `distinct` executions of a sample then share no byte (measure/rotation.h). Empty: caches are warm.
  std::function<void()> chill;
  int distinct = 0;
};

struct TimingOptions {
  double min_batch_us = 100;  // executions are batched until one sample lasts this long (warm caches)
  int min_samples = 5;
  double max_total_us = 50e3;  // of one candidate; slow candidates get fewer samples, never less than 3
  double give_up_us = 0;       // time_one: the first sample is the only one when it is slower (0 = never)
  // The power state. Work without a pause before the first sample: clocks come down to what the power cap
  // leaves a busy device. Rest before each sample: clocks have recovered, as for a caller who comes now and
  // then. Both 0: as it comes.
  double settle_us = 0, rest_us = 0;
  bool cold = false;  // caches, where who times can drive operands out (measure/place.h)
  // Of the sample that has just ended; may be empty. Samples at throttled clocks are taken again, at most as
  // many more as were wanted, and do not count where three others are there.
  std::function<SampleState()> state;
};

// CPU devices and null: wall clock around batch and synchronize; others: events.
Timing time_one(backend::Device& device, backend::Stream& stream, const Timed& timed,
                const TimingOptions& options = {});
// A B C A B C ...: drift of the machine hits all alike.
std::vector<Timing> time_interleaved(backend::Device& device, backend::Stream& stream,
                                     const std::vector<Timed>& all, const TimingOptions& options = {});

}  // namespace thrice::measure
