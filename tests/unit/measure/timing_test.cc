// Would catch: batches that are too short to resolve, a warm-up that counts, candidates timed one after
// another instead of interleaved, a slow candidate that is sampled without end, caches that are not cold when
// they should be, clocks of another load than the one that was asked for, conditions that are not told.
#include "measure/timing.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace thrice::measure {
namespace {

void spin(double us) {
  const double end = monotonic_us() + us;
  while (monotonic_us() < end) {
  }
}

class TimingTest : public testing::Test {
 protected:
  backend::DevicePtr device = backend::open_device("null:0");
  std::unique_ptr<backend::Stream> stream = device->make_stream();
};

TEST_F(TimingTest, ShortWorkIsBatched) {
  int calls = 0;
  const Timing t = time_one(*device, *stream, [&] {
    ++calls;
    spin(5);
  });
  EXPECT_GE(t.median_us, 5);
  EXPECT_LT(t.median_us, 2000);  // a busy machine may interrupt
  EXPECT_GE(t.samples, 5);
  EXPECT_GE(calls, t.samples * 2);  // batches
}

TEST_F(TimingTest, FirstExecutionDoesNotCount) {
  bool first = true;
  const Timing t = time_one(*device, *stream, [&] {
    spin(first ? 20000 : 200);
    first = false;
  });
  EXPECT_LT(t.median_us, 5000);
}

TEST_F(TimingTest, SlowWorkGetsFewSamplesAndGivesUp) {
  TimingOptions options;
  options.max_total_us = 1000;
  EXPECT_EQ(time_one(
                *device, *stream, [] { spin(2000); }, options)
                .samples,
            3);
  options.give_up_us = 100;
  EXPECT_EQ(time_one(
                *device, *stream, [] { spin(2000); }, options)
                .samples,
            1);
}

TEST_F(TimingTest, ThrottledSamplesAreTakenAgainAndCountOnlyWhereNothingElseDoes) {
  bool low = false;  // every second sample, at a hundredth of the clock
  TimingOptions options;
  options.state = [&] {
    SampleState state;
    state.throttled = low;
    state.sm_mhz = low ? 600 : 1980;
    state.temperature_c = low ? 88 : 60;
    low = !low;
    return state;
  };
  const auto work = [&] { spin(low ? 20000 : 200); };
  options.min_batch_us = 1;
  options.max_total_us = 20000;
  const Timing some = time_one(*device, *stream, work, options);
  EXPECT_FALSE(some.throttled);
  EXPECT_LT(some.median_us, 10000) << "only samples at full clocks count";
  EXPECT_GE(some.samples, 3);
  EXPECT_GE(some.conditions.throttled_samples, 2);
  EXPECT_EQ(some.conditions.least_sm_mhz, 600);
  EXPECT_EQ(some.conditions.temperature_c, 88) << "the highest";
  EXPECT_EQ(some.conditions.power_w, -1) << "what is not told is unknown";

  low = false;
  int asked = 0;
  options.state = [&] {
    ++asked;
    SampleState state;
    state.throttled = true;
    return state;
  };
  const Timing none = time_one(*device, *stream, work, options);
  EXPECT_TRUE(none.throttled);
  EXPECT_LE(none.samples, 2 * 25) << "retries are bounded";
  EXPECT_EQ(none.samples, asked);
}

TEST_F(TimingTest, CandidatesAreInterleaved) {
  std::string order;
  TimingOptions options;
  options.min_batch_us = 1;  // one execution a sample
  options.max_total_us = 2000;
  std::vector<Timed> executes;
  for (char name : {'A', 'B', 'C'})
    executes.emplace_back([&order, name] {
      order += name;
      spin(100);
    });
  const auto timings = time_interleaved(*device, *stream, executes, options);
  ASSERT_EQ(timings.size(), 3u);
  EXPECT_NE(order.find("ABCABCABC"), std::string::npos) << order;
  for (const Timing& t : timings) EXPECT_GE(t.samples, 3);
}

TEST_F(TimingTest, ColdSamplesBeginWithColdCachesAndTouchNothingTwice) {
  std::string order;
  const Timed cold(
      [&] {
        order += 'x';
        spin(30);
      },
      [&] {
        order += '|';
        spin(3000);  // outside of the sample
      },
      4);
  const Timing t = time_one(*device, *stream, cold);
  EXPECT_LT(t.median_us, 1000);
  const size_t first = order.find('|');
  ASSERT_NE(first, std::string::npos);
  for (size_t at = first; at < order.size(); at += 5) EXPECT_EQ(order.substr(at, 5), "|xxxx") << order;
  order.clear();
  time_interleaved(*device, *stream, {cold, Timed([&] { order += 'w'; })});
  EXPECT_NE(order.find("|xxxxw"), std::string::npos) << order;
}

TEST_F(TimingTest, LastingLoadComesBeforeTheFirstSampleAndRestBeforeEach) {
  TimingOptions options;
  options.max_total_us = 1000;
  options.settle_us = 60e3;
  int calls = 0, calls_at_first_sample = -1;
  options.state = [&] {
    if (calls_at_first_sample < 0) calls_at_first_sample = calls;
    return SampleState{};
  };
  time_one(
      *device, *stream,
      [&] {
        ++calls;
        spin(2000);
      },
      options);
  EXPECT_GE(calls_at_first_sample, 10) << "busy for as long as was asked";
  options.settle_us = 0;
  options.rest_us = 30e3;
  const double begin = monotonic_us();
  const Timing t = time_one(
      *device, *stream, [&] { spin(2000); }, options);
  EXPECT_GE(monotonic_us() - begin, t.samples * 30e3);
  EXPECT_LT(t.median_us, 20e3) << "rest does not count";
}

}  // namespace
}  // namespace thrice::measure
