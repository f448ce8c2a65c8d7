#include "measure/trial.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>

#include "base/clock.h"
#include "codegen/generate.h"
#include "measure/arguments.h"
#include "measure/judge.h"
#include "measure/other_extents.h"

namespace thrice::measure {
namespace {

using artifact::Measurement;
using artifact::Outcome;

// The least time that the device's peaks allow, in us; 0 where they are unknown. A set of buffers that fits
// into the L2 cache may be faster than memory.
double speed_of_light_us(const target::DeviceSpec& spec, const family::Work& work) {
  constexpr double kDatasheetSlack = 1.02;
  // Tensor cores do at most 16 times the multiply-adds of float32 units (16-bit operands, sm_90).
  const double arithmetic = spec.api == target::Api::kCuda ? 16 : 1;
  double floor = 0;
  if (spec.bandwidth_gbs > 0 && work.bytes > static_cast<double>(spec.l2_bytes))
    floor = work.bytes / (kDatasheetSlack * spec.bandwidth_gbs * 1e3);
  if (spec.f32_gflops > 0) floor = std::max(floor, work.flops / (arithmetic * spec.f32_gflops * 1e3));
  return floor;
}

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
                          const ir::Workload& workload, Oracle& oracle, uint64_t seed, size_t prepared) {
  const auto judged = [&](ir::InputKind kind, uint64_t with_seed, size_t round, const char* when) {
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
  arguments.exchange_inputs(oracle.inputs(kind, other));
  launch_once(stream, arguments);
  stream.replay(replay);
  reason = judged(kind, other, prepared, "other inputs after timing");
  if (!reason.empty()) return reason;

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

}  // namespace

struct TrialRunner::State {
  backend::DevicePtr device;
  std::shared_ptr<jit::KernelCache> cache;
  std::unique_ptr<backend::Stream> stream;

  artifact::KernelSource generate(const ir::Workload& workload, const family::Family& family,
                                  const artifact::Schedule& schedule) const {
    const auto language =
        device->spec().api == target::Api::kCuda ? artifact::Language::kCuda : artifact::Language::kOpenCL;
    return codegen::generate(workload, family, schedule, device->spec(), language);
  }
  void measure(const ir::Workload& workload, const family::Family& family, const artifact::Schedule& schedule,
               Oracle& oracle, const TrialOptions& options, TrialResult& result);
};

TrialRunner::TrialRunner(backend::DevicePtr device, std::shared_ptr<jit::KernelCache> cache)
    : state_(std::make_unique<State>()) {
  state_->stream = device->make_stream();
  state_->device = std::move(device);
  state_->cache = std::move(cache);
}
TrialRunner::~TrialRunner() = default;

void TrialRunner::State::measure(const ir::Workload& workload, const family::Family& family,
                                 const artifact::Schedule& schedule, Oracle& oracle,
                                 const TrialOptions& options, TrialResult& result) {
  Measurement& m = result.measurement;
  const artifact::KernelSource source = generate(workload, family, schedule);
  result.source_key = source.key;
  const jit::KernelCache::Built built = [&] {
    const Spent spent(result.cost.build);
    return cache->build(source);
  }();
  result.program = built.program;
  m.build_ms = built.build_ms;
  m.registers = built.binary->registers;
  m.spill_bytes = built.binary->spill_bytes;
  const artifact::LaunchPlan launches = family.launch(workload, schedule, oracle.facts());
  for (const artifact::Launch& launch : launches.launches)
    m.shared_bytes = std::max(m.shared_bytes,
                              launch.dynamic_shared_bytes + std::max(built.binary->static_shared_bytes, 0));
  const CheckResult checked = [&] {
    const Spent spent(result.cost.check);
    return check(*device, *stream, built.program, workload, launches, oracle, options.gate, options.seed);
  }();
  m.error = checked.error;
  m.error_limit = checked.error_limit;
  m.message = checked.reason;
  m.outcome = Outcome::kWrong;
  result.failure = Code::kWrongResult;
  if (!checked.ok) return;
  const bool runs = device->spec().api != target::Api::kNull;
  if (options.gate == Gate::kFull && runs) {
    const Spent spent(result.cost.other_extents);
    if (const auto other = other_extents(workload, oracle.facts(), oracle.bindings())) {
      Oracle there(workload, other->facts);
      const CheckResult elsewhere =
          check(*device, *stream, built.program, workload, family.launch(workload, schedule, other->facts),
                there, Gate::kScreening, options.seed);
      if (!elsewhere.ok) {
        m.message = fmt::format("at {}: {}", other->text, elsewhere.reason);
        return;
      }
    }
  }

  constexpr size_t kRound = 2;  // a third kind of guard after the two rounds of screening
  Arguments arguments(*device, *stream, built.program, workload, launches, oracle.facts());
  m.temporary_bytes = arguments.temporary_bytes();
  arguments.prepare(oracle.inputs(kTimed, options.seed), fill_of(kRound));
  launch_once(*stream, arguments);
  const auto replay = stream->record(arguments.launches(false));
  TimingOptions timing = options.timing;
  if (options.give_up_us > 0) timing.give_up_us = options.give_up_us;
  const Timing timed = [&] {
    const Spent spent(result.cost.timing);
    return time_one(
        *device, *stream, [&] { stream->replay(*replay); }, timing);
  }();
  if (runs) {
    const Spent spent(result.cost.after);
    m.message = judge_repeats(*stream, arguments, *replay, workload, oracle, options.seed, kRound);
    if (!m.message.empty()) return;
  }
  const double floor = speed_of_light_us(device->spec(), family::count_work(workload, oracle.facts()));
  if (timed.median_us < floor) {
    m.message =
        fmt::format("measuring error: {:.3g} us is less than the device's peaks allow ({:.3g} us, {})",
                    timed.median_us, floor, device->spec().peaks_source);
    return;
  }
  m.time_us = timed.median_us;
  m.spread_us = timed.spread_us;
  m.samples = timed.samples;
  m.outcome = Outcome::kOk;
  result.failure = Code::kOk;
}

TrialResult TrialRunner::run(const ir::Workload& workload, const family::Family& family,
                             const artifact::Schedule& schedule, Oracle& oracle,
                             const TrialOptions& options) {
  TrialResult result;
  Measurement& m = result.measurement;
  if (const auto refusal = family.illegal(workload, schedule, state_->device->spec())) {
    m.outcome = Outcome::kIllegal;
    m.message = *refusal;
    result.failure = Code::kInternal;  // nobody should have asked for it
    return result;
  }
  try {
    state_->measure(workload, family, schedule, oracle, options, result);
  } catch (const Error& error) {
    if (error.code() == Code::kCancelled || error.code() == Code::kInvalidModel)
      throw;  // not the candidate's
    m.outcome = outcome_of(error.code());
    result.failure = error.code();
    m.message = error.what();
  }
  return result;
}

std::vector<Timing> TrialRunner::compare(const ir::Workload& workload, const family::Family& family,
                                         const std::vector<artifact::Schedule>& schedules, Oracle& oracle,
                                         const TimingOptions& options) {
  std::vector<std::unique_ptr<Arguments>> arguments;
  std::vector<std::unique_ptr<backend::Replay>> replays;
  std::vector<std::function<void()>> executes;
  for (const artifact::Schedule& schedule : schedules) {
    const auto built = state_->cache->build(state_->generate(workload, family, schedule));
    arguments.push_back(std::make_unique<Arguments>(*state_->device, *state_->stream, built.program, workload,
                                                    family.launch(workload, schedule, oracle.facts()),
                                                    oracle.facts()));
    arguments.back()->prepare(oracle.inputs(kTimed, 1), fill_of(0));
    launch_once(*state_->stream, *arguments.back());
    replays.push_back(state_->stream->record(arguments.back()->launches(false)));
    executes.emplace_back([this, replay = replays.back().get()] { state_->stream->replay(*replay); });
  }
  return time_interleaved(*state_->device, *state_->stream, executes, options);
}

}  // namespace thrice::measure
