#include "measure/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

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
  const Timed* timed;
  int batch = 1;
  int wanted = kLeastSamples;
  std::vector<double> samples;      // at full clocks
  std::vector<double> throttled;    // the others
  std::vector<SampleState> states;  // of all

  void add(double us, const TimingOptions& options) {
    if (options.state) states.push_back(options.state());
    (options.state && states.back().throttled ? throttled : samples).push_back(us);
  }
  int taken() const { return static_cast<int>(samples.size() + throttled.size()); }
  bool complete() const { return static_cast<int>(samples.size()) >= wanted || taken() >= 2 * wanted; }
};

artifact::Conditions conditions_of(const Candidate& candidate) {
  artifact::Conditions c;
  c.throttled_samples = static_cast<int>(candidate.throttled.size());
  const auto known = [&](double SampleState::*member) {
    std::vector<double> values;
    for (const SampleState& state : candidate.states)
      if (state.*member >= 0) values.push_back(state.*member);
    std::sort(values.begin(), values.end());
    return values;
  };
  if (const auto mhz = known(&SampleState::sm_mhz); !mhz.empty()) {
    c.sm_mhz = median(mhz);
    c.least_sm_mhz = mhz.front();
  }
  if (const auto mhz = known(&SampleState::memory_mhz); !mhz.empty()) c.memory_mhz = median(mhz);
  if (const auto degrees = known(&SampleState::temperature_c); !degrees.empty())
    c.temperature_c = degrees.back();
  if (const auto watts = known(&SampleState::power_w); !watts.empty()) c.power_w = median(watts);
  return c;
}

Timing summarize(const Candidate& candidate) {
  Timing timing;
  if (static_cast<int>(candidate.samples.size()) >= kLeastSamples || candidate.throttled.empty()) {
    timing = summarize(candidate.samples);
  } else {
    std::vector<double> all = candidate.samples;
    all.insert(all.end(), candidate.throttled.begin(), candidate.throttled.end());
    timing = summarize(all);
    timing.spread_us *= 2;
    timing.throttled = true;
  }
  timing.conditions = conditions_of(candidate);
  return timing;
}

class Clock {
 public:
  Clock(backend::Device& device, backend::Stream& stream) : stream_(stream) {
    const target::DeviceSpec& spec = device.spec();
    by_events_ = spec.api != target::Api::kNull && !spec.is_cpu;
  }
  // Microseconds of one execution in a batch of n.
  double sample(const Timed& timed, int n) {
    if (timed.chill) timed.chill();
    if (by_events_) {
      const auto begin = stream_.record_event();
      for (int i = 0; i < n; ++i) timed.execute();
      const auto end = stream_.record_event();
      return end->microseconds_since(*begin) / n;
    }
    if (timed.chill) stream_.synchronize();
    const double begin = monotonic_us();
    for (int i = 0; i < n; ++i) timed.execute();
    stream_.synchronize();
    return (monotonic_us() - begin) / n;
  }

 private:
  backend::Stream& stream_;
  bool by_events_;
};

void rest(const TimingOptions& options) {
  if (options.rest_us > 0)
    std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(options.rest_us));
}

// Warms up and sizes the batch. The first execution may still build something in the driver, so it does not
// count.
Candidate prepare(Clock& clock, backend::Stream& stream, const Timed& timed, const TimingOptions& options) {
  Candidate candidate{&timed};
  const bool is_cold = timed.chill != nullptr;
  for (int i = 0; i < std::max(1, timed.distinct); ++i) timed.execute();
  stream.synchronize();
  if (is_cold) candidate.batch = std::max(1, timed.distinct);
  const double begin = monotonic_us();
  double once = std::max(clock.sample(timed, candidate.batch), 1e-3);
  const double sample_us = is_cold ? monotonic_us() - begin : 0;  // with what makes the caches cold
  if (!is_cold && once < options.min_batch_us) {
    // A single short one is mostly the cost of waiting, and any one may be interrupted: the best of a few.
    once = std::max(clock.sample(timed, 8), 1e-3);
    for (int again = 0; again < 2; ++again) once = std::max(std::min(once, clock.sample(timed, 8)), 1e-3);
    candidate.batch =
        static_cast<int>(std::clamp(std::ceil(options.min_batch_us / once), 1.0, double{kMostBatch}));
  }
  const double room = options.max_total_us / std::max(once * candidate.batch, sample_us);
  const int most = std::max(kMostSamples, options.min_samples);
  candidate.wanted = static_cast<int>(std::clamp(room, double{kLeastSamples}, static_cast<double>(most)));
  if (candidate.wanted < options.min_samples && room * 2 > options.min_samples)
    candidate.wanted = options.min_samples;
  return candidate;
}

// Busy without a pause, all candidates in turn.
void settle(Clock& clock, const std::vector<Candidate>& candidates, const TimingOptions& options) {
  const double end = monotonic_us() + options.settle_us;
  while (options.settle_us > 0 && monotonic_us() < end)
    for (const Candidate& candidate : candidates) clock.sample(*candidate.timed, candidate.batch);
}

}  // namespace

Timing time_one(backend::Device& device, backend::Stream& stream, const Timed& timed,
                const TimingOptions& options) {
  Clock clock(device, stream);
  std::vector<Candidate> one{prepare(clock, stream, timed, options)};
  Candidate& candidate = one.front();
  settle(clock, one, options);
  while (!candidate.complete()) {
    rest(options);
    const double us = clock.sample(timed, candidate.batch);
    candidate.add(us, options);
    if (options.give_up_us > 0 && candidate.taken() == 1 && us > options.give_up_us) break;
  }
  return summarize(candidate);
}

std::vector<Timing> time_interleaved(backend::Device& device, backend::Stream& stream,
                                     const std::vector<Timed>& all, const TimingOptions& options) {
  Clock clock(device, stream);
  std::vector<Candidate> candidates;
  int rounds = 0;
  for (const Timed& timed : all) {
    candidates.push_back(prepare(clock, stream, timed, options));
    rounds = std::max(rounds, candidates.back().wanted);
  }
  settle(clock, candidates, options);
  // Slow candidates sit out later rounds; they were sampled in the first ones beside all others.
  for (int round = 0; round < 2 * rounds; ++round)
    for (Candidate& candidate : candidates)
      if (!candidate.complete()) {
        rest(options);
        candidate.add(clock.sample(*candidate.timed, candidate.batch), options);
      }
  std::vector<Timing> timings;
  for (const Candidate& candidate : candidates) timings.push_back(summarize(candidate));
  return timings;
}

}  // namespace thrice::measure
