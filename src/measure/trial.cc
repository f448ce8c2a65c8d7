#include "measure/trial.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>

#include "codegen/generate.h"
#include "measure/arguments.h"
#include "measure/judge.h"

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
  const jit::KernelCache::Built built = cache->build(source);
  result.program = built.program;
  m.build_ms = built.build_ms;
  m.registers = built.binary->registers;
  m.spill_bytes = built.binary->spill_bytes;
  const artifact::LaunchPlan launches = family.launch(workload, schedule, oracle.facts());
  const CheckResult checked =
      check(*device, *stream, built.program, workload, launches, oracle, options.gate, options.seed);
  m.error = checked.error;
  m.error_limit = checked.error_limit;
  m.message = checked.reason;
  m.outcome = Outcome::kWrong;
  result.failure = Code::kWrongResult;
  if (!checked.ok) return;

  constexpr std::byte kPoison{0xFF};
  constexpr ir::InputKind kTimed = ir::InputKind::kNormal;
  Arguments arguments(*device, *stream, built.program, workload, launches, oracle.facts());
  m.temporary_bytes = arguments.temporary_bytes();
  arguments.prepare(oracle.inputs(kTimed, options.seed), kPoison);
  const auto replay = stream->record(arguments.launches());
  TimingOptions timing = options.timing;
  if (options.give_up_us > 0) timing.give_up_us = options.give_up_us;
  const Timing timed = time_one(
      *device, *stream, [&] { stream->replay(*replay); }, timing);
  // Again after timing: what is right only at first, or breaks when repeated on its own results.
  if (device->spec().api != target::Api::kNull) {
    const Judgement after = judge(arguments, workload, oracle, kTimed, options.seed, kPoison, false);
    if (!after.reason.empty()) {
      m.message = "after timing: " + after.reason;
      return;
    }
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
    arguments.back()->prepare(oracle.inputs(ir::InputKind::kNormal, 1), std::byte{0xFF});
    replays.push_back(state_->stream->record(arguments.back()->launches()));
    executes.emplace_back([this, replay = replays.back().get()] { state_->stream->replay(*replay); });
  }
  return time_interleaved(*state_->device, *state_->stream, executes, options);
}

}  // namespace thrice::measure
