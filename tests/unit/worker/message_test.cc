// Would catch: a field that one end writes and the other does not read, a workload that means something else
// after the journey, a cut message that is taken for a whole one.
#include "worker/message.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "measure_fixture.h"
#include "worker/channel.h"

namespace thrice::worker {
namespace {

measure::Job sample_job() {
  measure::Job job;
  job.source = {artifact::Language::kCuda, "text", {"k", "m"}, "key"};
  artifact::Launch launch;
  launch.kernel = 1;
  launch.grid = {3, 4, 5};
  launch.block = {6, 7, 8};
  launch.dynamic_shared_bytes = 99;
  launch.extents = {-1, 2};
  launch.once = true;
  job.launches = {{launch}, {128, 256}, {true, false}};
  job.elsewhere = job.launches;
  job.elsewhere->launches[0].grid[0] = 77;
  job.least_us = 1.5;
  job.peaks_source = "probe";
  job.options.gate = measure::Gate::kFull;
  job.options.seed = ~uint64_t{0};
  job.options.timing = {1, 2, 3, 4, 5, 6, true, {}};
  job.options.give_up_us = 12;
  job.options.both_caches = true;
  return job;
}

template <class Read>
void expect_cuts_are_refused(const std::vector<std::byte>& body, Read read) {
  for (size_t bytes = 0; bytes < body.size(); ++bytes)
    EXPECT_THROW(read({body.begin(), body.begin() + static_cast<std::ptrdiff_t>(bytes)}), Error) << bytes;
  std::vector<std::byte> longer = body;
  longer.push_back(std::byte{0});
  EXPECT_THROW(read(longer), Error);
}

TEST(Message, ARunArrivesWhole) {
  const measure::Job job = sample_job();
  const std::vector<std::byte> body = write_run("w", job);
  const RunRequest got = read_run(body);
  EXPECT_EQ(got.workload, "w");
  EXPECT_EQ(got.job.source.kernels, job.source.kernels);
  EXPECT_EQ(got.job.source.language, artifact::Language::kCuda);
  EXPECT_EQ(got.job.launches.launches[0].block, job.launches.launches[0].block);
  EXPECT_EQ(got.job.launches.launches[0].extents, job.launches.launches[0].extents);
  EXPECT_TRUE(got.job.launches.launches[0].once);
  EXPECT_EQ(got.job.launches.temporary_kept, job.launches.temporary_kept);
  ASSERT_TRUE(got.job.elsewhere.has_value());
  EXPECT_EQ(got.job.elsewhere->launches[0].grid[0], 77);
  EXPECT_EQ(got.job.options.seed, job.options.seed);
  EXPECT_EQ(got.job.options.gate, measure::Gate::kFull);
  EXPECT_EQ(got.job.options.timing.max_total_us, 3);
  EXPECT_EQ(got.job.options.timing.rest_us, 6);
  EXPECT_TRUE(got.job.options.timing.cold);
  EXPECT_TRUE(got.job.options.both_caches);
  EXPECT_EQ(write_run("w", got.job), body) << "what is read is written the same";
  expect_cuts_are_refused(body, read_run);
}

TEST(Message, AResultArrivesWhole) {
  measure::TrialResult result;
  result.measurement.outcome = artifact::Outcome::kTimedOut;
  result.measurement.message = "why";
  result.measurement.time_us = 3.25;
  result.measurement.samples = 7;
  result.measurement.shared_bytes = 1 << 20;
  result.measurement.concurrent_us = 1.5;
  result.measurement.cold_us = 4.5;
  result.measurement.conditions = {3, 1980, 1900, 3201, 61, 480.5};
  result.cost.after = 2.5;
  result.failure = Code::kTimedOut;
  result.source_key = "k";
  const std::vector<std::byte> body = write_result(result, true);
  const RunAnswer got = read_result(body);
  EXPECT_TRUE(got.worker_ends);
  EXPECT_EQ(got.result.measurement.outcome, artifact::Outcome::kTimedOut);
  EXPECT_EQ(got.result.measurement.shared_bytes, 1 << 20);
  EXPECT_EQ(got.result.measurement.concurrent_us, 1.5);
  EXPECT_EQ(got.result.measurement.cold_us, 4.5);
  EXPECT_EQ(got.result.measurement.conditions.power_w, 480.5);
  EXPECT_EQ(write_result(got.result, true), body);
  expect_cuts_are_refused(body, read_result);
}

TEST(Message, TimingsArriveWhole) {
  measure::Timing timing{3.5, 0.25, 9, true, {2, 1980, 1700, 3201, 61, 480}};
  const std::vector<std::byte> body = write_timings({timing, {}});
  const auto got = read_timings(body);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_TRUE(got[0].throttled);
  EXPECT_EQ(got[0].conditions.least_sm_mhz, 1700);
  EXPECT_EQ(write_timings(got), body);
  expect_cuts_are_refused(body, read_timings);
}

TEST(Message, AWorkloadMeansTheSame) {
  const ir::Workload workload = test::row_sums(33);
  const auto facts = ir::facts_at(workload.graph, {{"s0", 17}});
  const std::vector<std::byte> body = write_workload(workload, facts);
  const Known known = read_workload(body);
  EXPECT_EQ(known.workload.hash, workload.hash);
  EXPECT_EQ(workload_key(known.workload, known.facts), workload_key(workload, facts));
  EXPECT_NE(workload_key(workload, ir::facts_at(workload.graph, {{"s0", 18}})),
            workload_key(workload, facts));
  measure::Oracle here(workload, facts), there(known.workload, known.facts);
  const auto& a = here.answer(ir::InputKind::kNormal, 3);
  const auto& b = there.answer(ir::InputKind::kNormal, 3);
  EXPECT_EQ(a.outputs[0]->f, b.outputs[0]->f);
  EXPECT_EQ(a.limits, b.limits);
}

TEST(Channel, WaitsNoLongerThanAskedAndSeesTheEnd) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  Channel mine(ends[0]);
  Message message;
  {
    Channel other(ends[1]);
    const double begin = monotonic_us();
    EXPECT_EQ(mine.receive(message, begin + 50e3), Channel::Got::kTimeout);
    EXPECT_GE(monotonic_us() - begin, 49e3);
    ASSERT_TRUE(other.send(Kind::kHello, write_text("here"), 1e300));
    ASSERT_EQ(mine.receive(message, 1e300), Channel::Got::kMessage);
    EXPECT_EQ(read_text(message.body), "here");
    // Nobody reads: a send of more than the socket holds gives up at its deadline.
    EXPECT_FALSE(mine.send(Kind::kRun, std::vector<std::byte>(size_t{8} << 20), monotonic_us() + 50e3));
  }
  EXPECT_EQ(mine.receive(message, 1e300), Channel::Got::kEnd);
  EXPECT_FALSE(mine.send(Kind::kRun, {}, 1e300)) << "and no signal";
}

}  // namespace
}  // namespace thrice::worker
