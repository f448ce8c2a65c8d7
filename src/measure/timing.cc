#include "measure/timing.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"

namespace thrice::measure {
namespace {

constexpr int kLeastSamples = 3, kMostSamples = 25, kMostBatch = 10000;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

Timing summarize(const std::vector<double>& samples) {
  Timing timing;
  timing.samples = static_cast<int>(samples.size());
  if (samples.empty()) return timing;
  timing.median_us = median(samples);
  std::vector<double> deviations;
  for (double s : samples) deviations.push_back(std::fabs(s - timing.median_us));
  timing.spread_us = median(deviations);
  return timing;
}

// One candidate: how many executions make a sample, and the samples so far.
struct Candidate {
  const std::function<void()>* execute;
  int batch = 1;
  int wanted = kLeastSamples;
  std::vector<double> samples;    // at full clocks
  std::vector<double> throttled;  // the others

  void add(double us, const TimingOptions& options) {
    (options.throttled && options.throttled() ? throttled : samples).push_back(us);
  }
  int taken() const { return static_cast<int>(samples.size() + throttled.size()); }
  bool complete() const { return static_cast<int>(samples.size()) >= wanted || taken() >= 2 * wanted; }
};

Timing summarize(const Candidate& candidate) {
  if (static_cast<int>(candidate.samples.size()) >= kLeastSamples || candidate.throttled.empty())
    return summarize(candidate.samples);
  std::vector<double> all = candidate.samples;
  all.insert(all.end(), candidate.throttled.begin(), candidate.throttled.end());
  Timing timing = summarize(all);
  timing.spread_us *= 2;
  timing.throttled = true;
  return timing;
}

class Clock {
 public:
  Clock(backend::Device& device, backend::Stream& stream) : stream_(stream) {
    const target::DeviceSpec& spec = device.spec();
    by_events_ = spec.api != target::Api::kNull && !spec.is_cpu;
  }
  // Microseconds of one execution in a batch of n.
  double sample(const std::function<void()>& execute, int n) {
    if (by_events_) {
      const auto begin = stream_.record_event();
      for (int i = 0; i < n; ++i) execute();
      const auto end = stream_.record_event();
      return end->microseconds_since(*begin) / n;
    }
    const double begin = monotonic_us();
    for (int i = 0; i < n; ++i) execute();
    stream_.synchronize();
    return (monotonic_us() - begin) / n;
  }

 private:
  backend::Stream& stream_;
  bool by_events_;
};

// Warms up and sizes the batch. The first execution may still build something in the driver, so it does not
// count.
Candidate prepare(Clock& clock, backend::Stream& stream, const std::function<void()>& execute,
                  const TimingOptions& options) {
  execute();
  stream.synchronize();
  Candidate candidate{&execute};
  double once = std::max(clock.sample(execute, 1), 1e-3);
  if (once < options.min_batch_us) {
    // A single short one is mostly the cost of waiting, and any one may be interrupted: the best of a few.
    once = std::max(clock.sample(execute, 8), 1e-3);
    for (int again = 0; again < 2; ++again) once = std::max(std::min(once, clock.sample(execute, 8)), 1e-3);
    candidate.batch =
        static_cast<int>(std::clamp(std::ceil(options.min_batch_us / once), 1.0, double{kMostBatch}));
  }
  const double room = options.max_total_us / (once * candidate.batch);
  const int most = std::max(kMostSamples, options.min_samples);
  candidate.wanted = static_cast<int>(std::clamp(room, double{kLeastSamples}, static_cast<double>(most)));
  if (candidate.wanted < options.min_samples && room * 2 > options.min_samples)
    candidate.wanted = options.min_samples;
  return candidate;
}

}  // namespace

Timing time_one(backend::Device& device, backend::Stream& stream, const std::function<void()>& execute,
                const TimingOptions& options) {
  Clock clock(device, stream);
  Candidate candidate = prepare(clock, stream, execute, options);
  while (!candidate.complete()) {
    const double us = clock.sample(execute, candidate.batch);
    candidate.add(us, options);
    if (options.give_up_us > 0 && candidate.taken() == 1 && us > options.give_up_us) break;
  }
  return summarize(candidate);
}

std::vector<Timing> time_interleaved(backend::Device& device, backend::Stream& stream,
                                     const std::vector<std::function<void()>>& executes,
                                     const TimingOptions& options) {
  Clock clock(device, stream);
  std::vector<Candidate> candidates;
  int rounds = 0;
  for (const auto& execute : executes) {
    candidates.push_back(prepare(clock, stream, execute, options));
    rounds = std::max(rounds, candidates.back().wanted);
  }
  // Slow candidates sit out later rounds; they were sampled in the first ones beside all others.
  for (int round = 0; round < 2 * rounds; ++round)
    for (Candidate& candidate : candidates)
      if (!candidate.complete()) candidate.add(clock.sample(*candidate.execute, candidate.batch), options);
  std::vector<Timing> timings;
  for (const Candidate& candidate : candidates) timings.push_back(summarize(candidate));
  return timings;
}

}  // namespace thrice::measure
