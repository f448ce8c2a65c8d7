// Would catch: a search whose choice is decided by the noise of its measurements: two runs from cold on the
// same device must choose the same schedules, or ones within 1% of each other.
#include <gtest/gtest.h>
#include <thrice/status.h>

#include <cmath>
#include <limits>
#include <set>

#include "base/rng.h"
#include "flow/search.h"
#include "tune/family_space.h"

namespace thrice::flow {
namespace {

using artifact::Measurement;
using artifact::Schedule;

constexpr int kWorkloads = 40;
constexpr int64_t kTrialsEach = 80;  // of 144; with half as many 90 to 95% agree: small workloads get few
constexpr double kTrialNoise = 0.03, kDuelNoise = 0.004;  // as CPU devices show; a duel takes many samples

// Nothing but a space of 6 x 6 x 4.
class Space : public family::Family {
 public:
  std::string_view name() const override { return "space"; }
  family::Refusal match(const ir::Workload&) const override { return {}; }
  Schedule default_schedule(const ir::Workload&, const std::vector<ir::Fact>&,
                            const target::DeviceSpec&) const override {
    return {"space", "only", {{"a", 2}, {"b", 3}, {"c", 0}}};
  }
  artifact::ScheduleSpace space(const ir::Workload&, const std::vector<ir::Fact>&,
                                const target::DeviceSpec&) const override {
    artifact::ScheduleSpace s;
    s.tactics = {
        {"space", "only", {{"a", {0, 1, 2, 3, 4, 5}}, {"b", {0, 1, 2, 3, 4, 5}}, {"c", {0, 1, 2, 3}}}}};
    return s;
  }
  family::Refusal illegal(const ir::Workload&, const Schedule&, const target::DeviceSpec&) const override {
    return {};
  }
  family::ProgramText emit(const ir::Workload&, const Schedule&, const target::DeviceSpec&) const override {
    throw Error(Code::kInternal, "no text");
  }
  artifact::LaunchPlan launch(const ir::Workload&, const Schedule&,
                              const std::vector<ir::Fact>&) const override {
    throw Error(Code::kInternal, "no launches");
  }
};

// A bowl with steps: each workload's optimum lies elsewhere, and neighbours are a few percent apart.
double true_us(size_t work, const Schedule& s) {
  Rng place(1000 + work);
  double us = 50 + static_cast<double>(place.below(1000));
  for (const auto& [name, value] : s.values) {
    const double best = static_cast<double>(place.below(name == "c" ? 4 : 6));
    us *= 1 + 0.07 * std::abs(static_cast<double>(value) - best) + 0.01 * static_cast<double>(value % 2);
  }
  return us;
}

class Noisy : public TrialSource {
 public:
  Noisy(uint64_t seed, int64_t& trials) : rng_(seed), trials_(trials) {}
  bool ready(const Progress&) override { return true; }
  std::optional<std::string> refuse(size_t, const Schedule&) override { return {}; }
  Measurement measure(size_t work, const Schedule& s, double) override {
    ++trials_;
    Measurement m;
    m.outcome = artifact::Outcome::kOk;
    m.time_us = true_us(work, s) * (1 + kTrialNoise * noise());
    m.spread_us = 0.7 * kTrialNoise * m.time_us;
    m.samples = 5;
    m.error = 0;
    m.error_limit = 1;
    return m;
  }
  std::array<measure::Timing, 2> duel(size_t work, const Schedule& best, const Schedule& other) override {
    const auto timing = [&](const Schedule& s) {
      const double us = true_us(work, s) * (1 + kDuelNoise * noise());
      return measure::Timing{us, 0.7 * kDuelNoise * us, 25};
    };
    return {timing(best), timing(other)};
  }

 private:
  // Mostly small, now and then an interruption.
  double noise() {
    double sum = 0;
    for (int i = 0; i < 4; ++i) sum += static_cast<double>(rng_.below(2001)) / 1000 - 1;
    return rng_.below(200) == 0 ? 5 + sum : sum / 1.2;
  }
  Rng rng_;
  int64_t& trials_;
};

std::vector<Schedule> tune_from_cold(uint64_t noise_seed) {
  const Space family;
  const ir::Workload nothing;
  const target::DeviceSpec device;
  int64_t trials = 0;
  Noisy source(noise_seed, trials);
  std::vector<Tuned> tuned(kWorkloads);
  std::vector<Searched> works;
  for (size_t w = 0; w < kWorkloads; ++w) {
    tuned[w].schedule = family.default_schedule(nothing, {}, device);
    tuned[w].by_default = tuned[w].best = source.measure(w, tuned[w].schedule, 0);
    Searched& work = works.emplace_back();
    work.name = "w" + std::to_string(w);
    work.tuned = &tuned[w];
    work.space = std::make_unique<tune::Space>(tune::family_space(nothing, family, {}, device));
    tune::AgentOptions options;
    options.seed = 1 + w;
    work.agent = tune::make_agent("greedy", *work.space, options);
    tell(work, tuned[w].schedule, tuned[w].by_default);
  }
  search(works, source, {&trials, kWorkloads * kTrialsEach, std::numeric_limits<double>::infinity()}, {});
  std::vector<Schedule> chosen;
  for (const Tuned& t : tuned) chosen.push_back(t.schedule);
  return chosen;
}

// Two workloads that are one and the same to a device: what wins for one is tried by the other.
class Twins : public Noisy {
 public:
  using Noisy::Noisy;
  Measurement measure(size_t, const Schedule& s, double us) override { return Noisy::measure(0, s, us); }
  std::array<measure::Timing, 2> duel(size_t, const Schedule& best, const Schedule& other) override {
    return Noisy::duel(0, best, other);
  }
  std::vector<size_t> alike(size_t work) const override { return {1 - work}; }
};

TEST(Choice, WhatWonIsTriedByWorkloadsLikeIt) {
  const Space family;
  const ir::Workload nothing;
  const target::DeviceSpec device;
  int64_t trials = 0;
  Twins source(5, trials);
  std::vector<Tuned> tuned(2);
  std::vector<Searched> works(2);
  for (size_t w = 0; w < 2; ++w) {
    tuned[w].schedule = family.default_schedule(nothing, {}, device);
    tuned[w].by_default = tuned[w].best = source.measure(w, tuned[w].schedule, 0);
    works[w].tuned = &tuned[w];
    works[w].space = std::make_unique<tune::Space>(tune::family_space(nothing, family, {}, device));
    tune::AgentOptions options;
    options.seed = 1 + w;
    works[w].agent = tune::make_agent("random", *works[w].space, options);
  }
  search(works, source, {&trials, 60, std::numeric_limits<double>::infinity()}, {});
  // All but the last to win, which may have come when no trial was left.
  int winners = 0;
  for (size_t w = 0; w < 2; ++w) {
    double best_us = tuned[w].by_default.time_us;
    for (const Attempt& a : tuned[w].attempts) {
      if (a.best_us == best_us) continue;
      best_us = a.best_us;
      ++winners;
      bool known = a.schedule == tuned[w].schedule.str() || a.schedule == tuned[1 - w].schedule.str();
      for (const Attempt& b : tuned[1 - w].attempts) known |= a.schedule == b.schedule;
      EXPECT_TRUE(known) << a.schedule;
    }
  }
  EXPECT_GE(winners, 3);
  EXPECT_NEAR(true_us(0, tuned[0].schedule), true_us(0, tuned[1].schedule),
              0.05 * true_us(0, tuned[0].schedule));
}

// Would catch a turn that goes to another workload and begins with a kernel that nobody was asked to build,
// or that stands behind those of others: the builders take what was prepared last first.
class Builds : public Noisy {
 public:
  using Noisy::Noisy;
  size_t lookahead() const override { return 4; }
  void prepare(size_t, const std::vector<Schedule>& schedules) override {
    for (const Schedule& s : schedules) asked_.insert(s.str());
    front_ = schedules.empty() ? "" : schedules.front().str();
    fresh_ = true;
  }
  Measurement measure(size_t work, const Schedule& s, double us) override {
    if (asked_.count(s.str()) == 0) ++missing;
    if (fresh_ && front_ != s.str()) ++behind;
    const bool changed = work != last_ && last_ != kNone;
    if (changed && fresh_ && first_of_turn_late(s)) ++late;
    last_ = work;
    fresh_ = false;
    before_ = asked_;
    return Noisy::measure(work, s, us);
  }
  int missing = 0, behind = 0, late = 0, turns = 0;

 private:
  static constexpr size_t kNone = ~size_t{0};
  // Asked for in this very turn only.
  bool first_of_turn_late(const Schedule& s) {
    ++turns;
    return before_.count(s.str()) == 0;
  }
  std::set<std::string> asked_, before_;
  std::string front_;
  bool fresh_ = false;
  size_t last_ = kNone;
};

TEST(Choice, TurnsBeginWithKernelsThatAreThere) {
  const Space family;
  const ir::Workload nothing;
  const target::DeviceSpec device;
  int64_t trials = 0;
  Builds source(7, trials);
  std::vector<Tuned> tuned(5);
  std::vector<Searched> works(5);
  for (size_t w = 0; w < works.size(); ++w) {
    tuned[w].schedule = family.default_schedule(nothing, {}, device);
    tuned[w].by_default.outcome = artifact::Outcome::kOk;
    tuned[w].by_default.time_us = 100 - static_cast<double>(w);  // nearly alike: turns change often
    tuned[w].best = tuned[w].by_default;
    works[w].tuned = &tuned[w];
    works[w].space = std::make_unique<tune::Space>(tune::family_space(nothing, family, {}, device));
    tune::AgentOptions options;
    options.seed = 1 + w;
    works[w].agent = tune::make_agent("random", *works[w].space, options);
  }
  search(works, source, {&trials, 100, std::numeric_limits<double>::infinity()}, {});
  EXPECT_EQ(source.missing, 0);
  EXPECT_EQ(source.behind, 0);
  EXPECT_GT(source.turns, 5);
  EXPECT_LE(source.late, 1) << "of " << source.turns << " turns";
}

// Would catch a budget that is spent where nothing is left to gain.
TEST(Choice, WorkloadsEndEarly) {
  const Space family;
  const ir::Workload nothing;
  const target::DeviceSpec device;
  int64_t trials = 0;
  Noisy source(1, trials);
  std::vector<Tuned> tuned(3);
  std::vector<Searched> works;
  for (size_t w = 0; w < tuned.size(); ++w) {
    tuned[w].schedule = family.default_schedule(nothing, {}, device);
    tuned[w].by_default = tuned[w].best = source.measure(w, tuned[w].schedule, 0);
    Searched& work = works.emplace_back();
    work.tuned = &tuned[w];
    work.space = std::make_unique<tune::Space>(tune::family_space(nothing, family, {}, device));
    work.agent = tune::make_agent("greedy", *work.space, {});
    tell(work, tuned[w].schedule, tuned[w].by_default);
  }
  works[0].uses = 1e12;  // looked at first
  works[1].uses = 1e20;
  works[0].light_us = 0.96 * tuned[0].best.time_us;
  works[1].standing.trials_without_gain = 160;
  trials = 0;
  search(works, source, {&trials, 12, std::numeric_limits<double>::infinity()}, {});
  EXPECT_EQ(tuned[0].ended, "within 5% of the device's peaks");
  EXPECT_EQ(tuned[1].ended, "no gain in 160 trials");
  EXPECT_EQ(tuned[2].ended, "");
  EXPECT_EQ(tuned[0].trials + tuned[1].trials, 0);
  EXPECT_EQ(tuned[2].trials, 12);
  works[0].light_us = 3 * tuned[0].best.time_us;  // a peak that is refuted by what was measured
  works[0].standing.exhausted = false;
  search(works, source, {&trials, 14, std::numeric_limits<double>::infinity()}, {});
  EXPECT_NE(tuned[0].ended, "within 5% of the device's peaks");
}

TEST(Choice, TwoColdRunsAgree) {
  const std::vector<Schedule> first = tune_from_cold(1);
  for (const uint64_t other : {2, 3, 4, 7}) {
    const std::vector<Schedule> second = tune_from_cold(other);
    int near = 0;
    std::string apart;
    for (size_t w = 0; w < first.size(); ++w) {
      const double a = true_us(w, first[w]), b = true_us(w, second[w]);
      const bool same = first[w] == second[w] || std::abs(a - b) <= 0.01 * std::min(a, b);
      near += same;
      if (!same) apart += first[w].str() + " | " + second[w].str() + "\n";
    }
    EXPECT_GE(near, kWorkloads * 95 / 100) << "noise " << other << "\n" << apart;
  }
}

}  // namespace
}  // namespace thrice::flow
