// Would catch: batches that are too short to resolve, a warm-up that counts, candidates timed one after
// another instead of interleaved, a slow candidate that is sampled without end.
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
  options.throttled = [&] {
    const bool was = low;
    low = !low;
    return was;
  };
  const auto work = [&] { spin(low ? 20000 : 200); };
  options.min_batch_us = 1;
  options.max_total_us = 20000;
  const Timing some = time_one(*device, *stream, work, options);
  EXPECT_FALSE(some.throttled);
  EXPECT_LT(some.median_us, 10000) << "only samples at full clocks count";
  EXPECT_GE(some.samples, 3);

  low = false;
  int asked = 0;
  options.throttled = [&] { return ++asked > 0; };
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
  std::vector<std::function<void()>> executes;
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

}  // namespace
}  // namespace thrice::measure
