// Build, check, time, check again: the half of a trial that runs where the device is.
#include "measure/place.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "measure/arguments.h"
#include "measure/concurrent.h"
#include "measure/judge.h"
#include "measure/other_extents.h"
#include "measure/probe.h"
#include "measure/rotation.h"

namespace thrice::measure {
namespace {

using artifact::Measurement;
using artifact::Outcome;

// Adds the time of its own life.
class Spent {
 public:
  explicit Spent(double& ms) : ms_(ms) {}
  ~Spent() { ms_ += (monotonic_us() - begin_) * 1e-3; }
  Spent(const Spent&) = delete;

 private:
  double& ms_;
  const double begin_ = monotonic_us();
};

constexpr ir::InputKind kTimed = ir::InputKind::kNormal;

// Launches that a model makes at its first run only: here after every change of the inputs, weights too.
void launch_once(backend::Stream& stream, const Arguments& arguments) {
  for (const backend::RecordedLaunch& launch : arguments.launches(true)) stream.launch(launch);
}

// What the timed launches left, and what they make of other inputs: none of their inputs changed while they
// were timed, so a kernel that keeps its answer passes the first look. The answers are those of the check.
//  1. The outputs of the last timed execution.
//  2. Other inputs in the same buffers, nothing poisoned: an old answer, kept anywhere, is wrong now.
//  3. The first inputs again, outputs at other addresses, poisoned: an answer that is tied to an address.
// `prepared` is the round whose fill the arguments were prepared with. Empty = right.
std::string judge_repeats(backend::Stream& stream, Arguments& arguments, backend::Replay& replay,
                          const ir::Workload& workload, Oracle& oracle, uint64_t seed, size_t prepared,
                          const PhaseListener& entered) {
  const auto enter = [&](Phase phase) {
    if (entered) entered(phase);
  };
  const auto judged = [&](ir::InputKind kind, uint64_t with_seed, size_t round, const char* when) {
    stream.synchronize();
    enter(Phase::kHost);
    const Judgement j = judge(arguments, workload, oracle, kind, with_seed, fill_of(round).poison, false);
    return j.reason.empty() ? std::string() : fmt::format("{}: {}", when, j.reason);
  };
  std::string reason = judged(kTimed, seed, prepared, "after timing");
  if (!reason.empty()) return reason;

  // Integers do not depend on the kind: another seed where that is all there is.
  bool has_float = false;
  for (const ir::ValueId id : workload.graph.inputs)
    has_float = has_float || is_float(workload.graph.value(id).type.dtype);
  const ir::InputKind kind = has_float ? ir::InputKind::kUniform : kTimed;
  const uint64_t other = has_float ? seed : seed + 1;
  const std::vector<ir::Tensor>& others = oracle.inputs(kind, other);
  enter(Phase::kDevice);
  arguments.exchange_inputs(others);
  launch_once(stream, arguments);
  stream.replay(replay);
  reason = judged(kind, other, prepared, "other inputs after timing");
  if (!reason.empty()) return reason;

  enter(Phase::kDevice);
  arguments.exchange_inputs(oracle.inputs(kTimed, seed));
  launch_once(stream, arguments);
  arguments.move_outputs(replay, fill_of(prepared + 1));
  stream.replay(replay);
  return judged(kTimed, seed, prepared + 1, "outputs at other addresses after timing");
}

Outcome outcome_of(Code code) {
  switch (code) {
    case Code::kCompileFailed:
      return Outcome::kCompileFailed;
    case Code::kUnsupported:
      return Outcome::kIllegal;
    case Code::kTimedOut:
      return Outcome::kTimedOut;
    case Code::kWrongResult:
      return Outcome::kWrong;
    case Code::kOutOfMemory:
      return Outcome::kOutOfMemory;
    default:
      return Outcome::kLaunchFailed;
  }
}

class PlaceHere : public TrialPlace {
 public:
  PlaceHere(backend::DevicePtr device, std::shared_ptr<jit::KernelCache> cache, PlaceOptions options)
      : device_(std::move(device)),
        cache_(std::move(cache)),
        options_(std::move(options)),
        stream_(device_->make_stream()) {}

  TrialResult run(const ir::Workload& workload, Oracle& oracle, const Job& job) override {
    TrialResult result;
    result.source_key = job.source.key;
    try {
      measure(workload, oracle, job, result);
    } catch (const Error& error) {
      set_failure(result, error);
    }
    return result;
  }

  std::vector<Timing> compare(const ir::Workload& workload, Oracle& oracle,
                              const std::vector<Contender>& contenders,
                              const TimingOptions& options) override {
    std::vector<std::unique_ptr<Arguments>> arguments;
    std::vector<std::unique_ptr<backend::Replay>> replays;
    std::vector<std::unique_ptr<Rotation>> rotations;
    std::vector<Timed> all;
    for (const Contender& contender : contenders) {
      enter(Phase::kBuild);
      const auto built = cache_->build(contender.source);
      arguments.push_back(std::make_unique<Arguments>(*device_, *stream_, built.program, workload,
                                                      contender.launches, oracle.facts()));
      arguments.back()->prepare(oracle.inputs(kTimed, 1), fill_of(0));
      enter(first_launch());
      launch_once(*stream_, *arguments.back());
      replays.push_back(stream_->record(arguments.back()->launches(false)));
      stream_->replay(*replays.back());
      stream_->synchronize();
      if (options.cold) {
        rotations.push_back(std::make_unique<Rotation>(*device_, *stream_, *arguments.back(), flush_));
        all.push_back(rotations.back()->timed());
      } else {
        all.emplace_back([this, replay = replays.back().get()] { stream_->replay(*replay); });
      }
    }
    enter(Phase::kTiming);
    TimingOptions timing = options;
    timing.state = options_.state;
    return time_interleaved(*device_, *stream_, all, timing);
  }

  target::DeviceSpec probe() override { return probe_peaks(*device_, *cache_); }

 private:
  void enter(Phase phase) const {
    if (options_.entered) options_.entered(phase);
  }
  Phase first_launch() const { return first_launch_phase(device_->spec()); }
  void measure(const ir::Workload& workload, Oracle& oracle, const Job& job, TrialResult& result);
  Timing time(Arguments& arguments, backend::Replay& replay, const TrialOptions& options, Measurement& m);

  backend::DevicePtr device_;
  std::shared_ptr<jit::KernelCache> cache_;
  PlaceOptions options_;
  std::unique_ptr<backend::Stream> stream_;
  backend::BufferPtr flush_;  // of the rotations
};

// The state of the caches that is asked for, and the other one where that is wanted and the first was not
// given up.
Timing PlaceHere::time(Arguments& arguments, backend::Replay& replay, const TrialOptions& options,
                       Measurement& m) {
  TimingOptions timing = options.timing;
  timing.state = options_.state;
  if (options.give_up_us > 0) timing.give_up_us = options.give_up_us;
  const bool can_chill = device_->spec().l2_bytes > 0;
  std::optional<Timing> warm, cold;
  std::unique_ptr<Rotation> rotation;
  const auto time_warm = [&](const TimingOptions& how) {
    warm = time_one(
        *device_, *stream_, [&] { stream_->replay(replay); }, how);
    m.warm_us = warm->median_us;
  };
  const auto time_cold = [&](const TimingOptions& how) {
    try {
      rotation = std::make_unique<Rotation>(*device_, *stream_, arguments, flush_);
    } catch (const Error& error) {
      if (error.code() != Code::kOutOfMemory) throw;
      return;  // no room for copies is not the candidate's fault
    }
    cold = time_one(*device_, *stream_, rotation->timed(), how);
    m.cold_us = cold->median_us;
  };
  TimingOptions few = timing;
  few.max_total_us = 0;  // three samples
  if (timing.cold && can_chill) time_cold(timing);
  const bool is_cold = cold.has_value();
  if (!is_cold) time_warm(timing);
  const Timing asked = is_cold ? *cold : *warm;
  const bool given_up = timing.give_up_us > 0 && asked.median_us > timing.give_up_us;
  if (options.both_caches && can_chill && !given_up) {
    if (is_cold)
      time_warm(few);
    else
      time_cold(few);
  }
  // The copies are judged; the buffers that were warm are launched again on other inputs.
  if (cold) rotation->bring_back();
  return asked;
}

void PlaceHere::measure(const ir::Workload& workload, Oracle& oracle, const Job& job, TrialResult& result) {
  Measurement& m = result.measurement;
  const TrialOptions& options = job.options;
  enter(Phase::kBuild);
  const jit::KernelCache::Built built = [&] {
    const Spent spent(result.cost.build);
    return cache_->build(job.source);
  }();
  m.build_ms = built.build_ms;
  m.registers = built.binary->registers;
  m.spill_bytes = built.binary->spill_bytes;
  for (const artifact::Launch& launch : job.launches.launches)
    m.shared_bytes = std::max(m.shared_bytes,
                              launch.dynamic_shared_bytes + std::max(built.binary->static_shared_bytes, 0));
  const CheckResult checked = [&] {
    const Spent spent(result.cost.check);
    return check(*device_, *stream_, built.program, workload, job.launches, oracle,
                 {options.gate, options.seed, options_.fences, options_.entered, {}});
  }();
  m.error = checked.error;
  m.error_limit = checked.error_limit;
  m.message = checked.reason;
  m.outcome = Outcome::kWrong;
  result.failure = Code::kWrongResult;
  if (!checked.ok) return;
  const bool runs = device_->spec().api != target::Api::kNull;
  if (options.gate == Gate::kFull && runs && job.elsewhere) {
    const Spent spent(result.cost.other_extents);
    if (const auto other = other_extents(workload, oracle.facts(), oracle.bindings())) {
      Oracle there(workload, other->facts);
      CheckOptions how{Gate::kScreening, options.seed, options_.fences, options_.entered, {}};
      CheckResult elsewhere = check(*device_, *stream_, built.program, workload, *job.elsewhere, there, how);
      for (const auto& shares : family::share_choices(job.shares)) {
        if (!elsewhere.ok) break;
        how.shares = shares;
        elsewhere = check(*device_, *stream_, built.program, workload, *job.elsewhere, there, how);
        elsewhere.reason = "in place: " + elsewhere.reason;
      }
      if (!elsewhere.ok) {
        m.message = fmt::format("at {}: {}", other->text, elsewhere.reason);
        return;
      }
    }
  }
  for (const auto& shares : family::share_choices(job.shares)) {
    if (options.gate != Gate::kFull || !runs) break;
    const Spent spent(result.cost.check);
    const CheckResult in_place =
        check(*device_, *stream_, built.program, workload, job.launches, oracle,
              {options.gate, options.seed, options_.fences, options_.entered, shares});
    if (!in_place.ok) {
      m.message = fmt::format("in place: {}", in_place.reason);
      return;
    }
  }

  constexpr size_t kRound = 2;  // a third kind of guard after the two rounds of screening
  Arguments arguments(*device_, *stream_, built.program, workload, job.launches, oracle.facts());
  m.temporary_bytes = arguments.temporary_bytes();
  arguments.prepare(oracle.inputs(kTimed, options.seed), fill_of(kRound));
  enter(Phase::kDevice);
  launch_once(*stream_, arguments);
  const auto replay = stream_->record(arguments.launches(false));
  const Timing timed = [&] {
    const Spent spent(result.cost.timing);
    enter(Phase::kTiming);
    return time(arguments, *replay, options, m);
  }();
  enter(Phase::kHost);
  if (runs) {
    const Spent spent(result.cost.after);
    m.message =
        judge_repeats(*stream_, arguments, *replay, workload, oracle, options.seed, kRound, options_.entered);
    if (!m.message.empty()) return;
  }
  if (timed.median_us < job.least_us) {
    m.warm_us = m.cold_us = -1;
    m.message =
        fmt::format("measuring error: {:.3g} us is less than the device's peaks allow ({:.3g} us, {})",
                    timed.median_us, job.least_us, job.peaks_source);
    return;
  }
  m.time_us = timed.median_us;
  m.spread_us = timed.spread_us;
  m.samples = timed.samples;
  m.conditions = timed.conditions;
  if (runs && timed.median_us <= options.concurrent_below_us) {
    const Spent spent(result.cost.timing);
    enter(Phase::kTiming);
    m.concurrent_us = time_concurrent(*device_, built.program, workload, job.launches, oracle, options.seed,
                                      timed.median_us);
    enter(Phase::kHost);
  }
  if (options.gate == Gate::kFull) oracle.forget_answers();  // large, and nobody asks for them again
  if (timed.throttled) m.message = "timed below full clocks, the spread is doubled";
  m.outcome = Outcome::kOk;
  result.failure = Code::kOk;
}

}  // namespace

void set_failure(TrialResult& result, const Error& error) {
  if (error.code() == Code::kCancelled || error.code() == Code::kInvalidModel) throw error;
  result.measurement.outcome = outcome_of(error.code());
  result.measurement.message = error.what();
  result.failure = error.code();
}

std::unique_ptr<TrialPlace> place_here(backend::DevicePtr device, std::shared_ptr<jit::KernelCache> cache,
                                       const PlaceOptions& options) {
  return std::make_unique<PlaceHere>(std::move(device), std::move(cache), options);
}

}  // namespace thrice::measure
