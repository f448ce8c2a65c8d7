// Would catch: a bad candidate that throws out of a trial or is told as the wrong kind of failure, a wrong
// one that gets a time, results faster than the device's peaks that are believed.
#include "measure/trial.h"

#include <gtest/gtest.h>

#include "measure_fixture.h"

namespace thrice::measure {
namespace {

using artifact::Outcome;
using test::kernel_text;

constexpr const char* kHonest = "if (i < n) y[i] = x[i] > 0 ? x[i] : x[i] != x[i] ? x[i] : 0;";

class Trial : public testing::Test {
 protected:
  void SetUp() override {
    for (const auto& r : backend::list_backends())
      if (r.name == "opencl" && !r.available) GTEST_SKIP() << "skipped: " << r.reason;
    device = backend::open_device("opencl:0");
    cache = std::make_shared<jit::KernelCache>(device, "");
    runner = std::make_unique<TrialRunner>(device, cache);
    oracle = std::make_unique<Oracle>(workload, ir::facts_at(workload.graph, {{"s0", 5000}}));
  }
  TrialResult run(const std::string& text, const std::string& tactic = "only") {
    return runner->run(workload, test::TextFamily(text), {"text", tactic, {}}, *oracle, {});
  }
  backend::DevicePtr device;
  std::shared_ptr<jit::KernelCache> cache;
  std::unique_ptr<TrialRunner> runner;
  ir::Workload workload = test::unary_workload(ir::Op::relu);
  std::unique_ptr<Oracle> oracle;
};

TEST_F(Trial, HonestCandidateIsTimed) {
  const TrialResult r = run(kernel_text(kHonest));
  EXPECT_EQ(r.measurement.outcome, Outcome::kOk) << r.measurement.message;
  EXPECT_GT(r.measurement.time_us, 0);
  EXPECT_GE(r.measurement.samples, 3);
  EXPECT_GE(r.measurement.error, 0);
  EXPECT_GT(r.measurement.error_limit, 0);
  EXPECT_GT(r.measurement.build_ms, 0);
  EXPECT_GT(r.cost.check, 0);
  EXPECT_GT(r.cost.after, 0);
  EXPECT_FALSE(r.source_key.empty());
}

TEST_F(Trial, SeveralAtOnceAreTimedWhereAskedFor) {
  const test::TextFamily family(kernel_text(kHonest));
  EXPECT_EQ(run(kernel_text(kHonest)).measurement.concurrent_us, 0);
  TrialOptions options;
  options.concurrent_below_us = 1e9;
  const auto m = runner->run(workload, family, {"text", "only", {}}, *oracle, options).measurement;
  EXPECT_EQ(m.outcome, Outcome::kOk) << m.message;
  // One of many is done sooner than one that is waited for, and later than four times as soon, by a margin.
  EXPECT_GT(m.concurrent_us, m.time_us / 100);
  EXPECT_LT(m.concurrent_us, m.time_us * 20);
  options.concurrent_below_us = m.time_us / 1000;
  EXPECT_EQ(runner->run(workload, family, {"text", "only", {}}, *oracle, options).measurement.concurrent_us,
            0);
}

TEST_F(Trial, EachFailureHasItsOutcome) {
  EXPECT_EQ(run(kernel_text(kHonest), "illegal").measurement.outcome, Outcome::kIllegal);
  EXPECT_EQ(run("this is no kernel").measurement.outcome, Outcome::kCompileFailed);
  const TrialResult wrong = run(kernel_text("if (i < n) y[i] = 1;"));
  EXPECT_EQ(wrong.measurement.outcome, Outcome::kWrong);
  EXPECT_EQ(wrong.measurement.time_us, 0);
  EXPECT_FALSE(wrong.measurement.message.empty());
  // One argument more than the launch passes.
  EXPECT_EQ(run(kernel_text(kHonest, "TH_GLOBAL float* t, ")).measurement.outcome, Outcome::kLaunchFailed);
  // More local memory than our description allows.
  EXPECT_EQ(
      run(kernel_text(
              std::string("TH_LOCAL float t[16384]; t[TH_THREAD] = n; TH_BARRIER(); if (t[0] < 0) return; ") +
              kHonest))
          .measurement.outcome,
      Outcome::kIllegal);
  EXPECT_EQ(run(kernel_text(kHonest)).measurement.outcome, Outcome::kOk);  // the runner is still usable
}

TEST_F(Trial, OutOfMemoryIsNamedWithItsBytes) {
  const test::TextFamily family(kernel_text(kHonest, "TH_GLOBAL float* t, "), int64_t{1} << 50);
  const TrialResult r = runner->run(workload, family, {"text", "only", {}}, *oracle, {});
  EXPECT_EQ(r.measurement.outcome, Outcome::kOutOfMemory);
  EXPECT_STREQ(outcome_name(r.measurement.outcome), "out_of_memory");
  EXPECT_NE(r.measurement.message.find(std::to_string((int64_t{1} << 50) + 8192)), std::string::npos)
      << r.measurement.message;
}

TEST_F(Trial, WrongOnlyWhenRepeatedIsCaught) {
  // Right while the scratch output is poisoned, wrong on values of an earlier launch.
  const TrialResult r = run(kernel_text(
      "if (i < n) { float v = x[i] > 0 ? x[i] : 0; y[i] = y[i] == v || y[i] == v + 1 ? v + 1 : v; }"));
  // The check poisons before each launch, so this passes it; the output after timing does not.
  EXPECT_EQ(r.measurement.outcome, Outcome::kWrong) << r.measurement.message;
}

TEST_F(Trial, BothStatesOfTheCachesAreTimedAndJudged) {
  for (const bool cold : {false, true}) {
    TrialOptions options;
    options.timing.cold = cold;
    options.both_caches = true;
    const TrialResult r =
        runner->run(workload, test::TextFamily(kernel_text(kHonest)), {"text", "only", {}}, *oracle, options);
    EXPECT_EQ(r.measurement.outcome, Outcome::kOk) << r.measurement.message;
    EXPECT_GT(r.measurement.warm_us, 0);
    EXPECT_GT(r.measurement.cold_us, 0);
    EXPECT_EQ(r.measurement.time_us, cold ? r.measurement.cold_us : r.measurement.warm_us);
    // Right in the buffers of the checks, which have a zone of 4 KiB before them, wrong in the copies.
    const TrialResult wrong =
        runner->run(workload,
                    test::TextFamily(kernel_text(
                        "TH_GLOBAL const char* z = (TH_GLOBAL const char*)y - 4096; int whole = z[0] "
                        "== z[1] && z[1] == z[4095] && z[2] == z[3000]; "
                        "if (i < n) y[i] = whole ? (x[i] > 0 ? x[i] : 0) : 7;")),
                    {"text", "only", {}}, *oracle, options);
    EXPECT_EQ(wrong.measurement.outcome, Outcome::kWrong) << "what was timed cold was not judged";
  }
  const test::TextFamily family(kernel_text(kHonest));
  const artifact::Schedule schedule{"text", "only", {}};
  TimingOptions cold;
  cold.cold = true;
  for (const Timing& t : runner->compare(workload, family, {schedule, schedule}, *oracle, cold))
    EXPECT_GT(t.median_us, 0);
}

// A busy machine's probe must not refuse what is right.
TEST_F(Trial, AProbeRefusesNothing) {
  target::DeviceSpec peaks = device->spec();
  peaks.l2_bytes = 1;
  peaks.bandwidth_gbs = 1e-3;
  peaks.peaks_source = "probe";
  runner->set_peaks(peaks);
  const TrialResult r = run(kernel_text(kHonest));
  EXPECT_EQ(r.measurement.outcome, Outcome::kOk) << r.measurement.message;
}

TEST_F(Trial, FasterThanThePeaksIsAMeasuringError) {
  target::DeviceSpec peaks = device->spec();
  peaks.l2_bytes = 1;
  peaks.bandwidth_gbs = 1e-3;  // 40 kB in 40 ms
  peaks.peaks_source = "a datasheet";
  runner->set_peaks(peaks);
  const TrialResult r = run(kernel_text(kHonest));
  EXPECT_EQ(r.measurement.outcome, Outcome::kWrong);
  EXPECT_NE(r.measurement.message.find("measuring error"), std::string::npos) << r.measurement.message;
  EXPECT_NE(r.measurement.message.find("a datasheet"), std::string::npos) << r.measurement.message;
  EXPECT_EQ(r.measurement.time_us, 0);
  peaks.bandwidth_gbs = 1e6;
  runner->set_peaks(peaks);
  EXPECT_EQ(run(kernel_text(kHonest)).measurement.outcome, Outcome::kOk);
}

TEST_F(Trial, AnswersOfOldRoundsAreForgottenAndComeBackEqual) {
  const std::vector<double> answer = oracle->answer(ir::InputKind::kNormal, 1).outputs[0]->f;
  for (uint64_t seed = 2; seed < 40; ++seed) oracle->answer(ir::InputKind::kNormal, seed);
  EXPECT_EQ(oracle->answer(ir::InputKind::kNormal, 1).outputs[0]->f, answer);
}

TEST_F(Trial, FinalistsAreTimedTogether) {
  const test::TextFamily family(kernel_text(kHonest));
  const artifact::Schedule schedule{"text", "only", {}};
  const auto timings = runner->compare(workload, family, {schedule, schedule}, *oracle, {});
  ASSERT_EQ(timings.size(), 2u);
  for (const Timing& t : timings) EXPECT_GT(t.median_us, 0);
}

}  // namespace
}  // namespace thrice::measure
