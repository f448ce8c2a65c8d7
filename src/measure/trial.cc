#include "measure/trial.h"

#include <algorithm>

#include "codegen/generate.h"
#include "measure/other_extents.h"

namespace thrice::measure {
namespace {

// The least time that the device's peaks allow, in us; 0 where they are unknown. A set of buffers that fits
// into the L2 cache may be as fast as that: a multiprocessor takes at most 64 bytes a clock from it (128 are
// granted).
double speed_of_light_us(const target::DeviceSpec& spec, const family::Work& work) {
  // A probe is a lower bound of the peak, on CPUs a loose one: what beats it refutes the probe.
  if (spec.peaks_source == "probe") return 0;
  constexpr double kSlack = 1.02;  // of a datasheet
  const bool is_cuda = spec.api == target::Api::kCuda;
  // Tensor cores do at most 16 times the multiply-adds of float32 units (16-bit operands, sm_90).
  const double arithmetic = is_cuda ? 16 : 1;
  double floor = 0;
  if (spec.bandwidth_gbs > 0 && work.bytes > static_cast<double>(spec.l2_bytes))
    floor = work.bytes / (kSlack * spec.bandwidth_gbs * 1e3);
  else if (is_cuda && spec.f32_gflops > 0)  // 128 bytes a clock for 128 units with two operations a clock
    floor = work.bytes / (kSlack * spec.f32_gflops / 2 * 1e3);
  if (spec.f32_gflops > 0)
    floor = std::max(floor, work.flops / (kSlack * arithmetic * spec.f32_gflops * 1e3));
  return floor;
}

}  // namespace

TrialRunner::TrialRunner(backend::DevicePtr device, std::shared_ptr<jit::KernelCache> cache)
    : TrialRunner(device, place_here(device, std::move(cache))) {}
TrialRunner::TrialRunner(backend::DevicePtr device, std::unique_ptr<TrialPlace> place)
    : device_(std::move(device)), place_(std::move(place)), peaks_(device_->spec()) {}
TrialRunner::~TrialRunner() = default;

artifact::KernelSource TrialRunner::generate(const ir::Workload& workload, const family::Family& family,
                                             const artifact::Schedule& schedule) const {
  const auto language =
      device_->spec().api == target::Api::kCuda ? artifact::Language::kCuda : artifact::Language::kOpenCL;
  return codegen::generate(workload, family, schedule, device_->spec(), language);
}

TrialResult TrialRunner::run(const ir::Workload& workload, const family::Family& family,
                             const artifact::Schedule& schedule, Oracle& oracle,
                             const TrialOptions& options) {
  TrialResult result;
  const target::DeviceSpec& spec = device_->spec();
  if (const auto refusal = family.illegal(workload, schedule, spec)) {
    result.measurement.outcome = artifact::Outcome::kIllegal;
    result.measurement.message = *refusal;
    result.failure = Code::kInternal;  // nobody should have asked for it
    return result;
  }
  Job job;
  try {
    job.source = generate(workload, family, schedule);
    job.launches = family.launch(workload, schedule, oracle.facts());
    if (options.gate == Gate::kFull)
      if (const auto other = other_extents(workload, oracle.facts(), oracle.bindings()))
        job.elsewhere = family.launch(workload, schedule, other->facts);
    if (options.gate == Gate::kFull) job.shares = family::shares_of(family, workload, schedule);
  } catch (const Error& error) {
    result.source_key = job.source.key;
    set_failure(result, error);
    return result;
  }
  job.least_us = speed_of_light_us(peaks_, family::count_work(workload, oracle.facts()));
  job.peaks_source = peaks_.peaks_source;
  job.options = options;
  return place_->run(workload, oracle, job);
}

std::vector<Timing> TrialRunner::compare(const ir::Workload& workload, const family::Family& family,
                                         const std::vector<artifact::Schedule>& schedules, Oracle& oracle,
                                         const TimingOptions& options) {
  std::vector<Contender> contenders;
  for (const artifact::Schedule& schedule : schedules)
    contenders.push_back(
        {generate(workload, family, schedule), family.launch(workload, schedule, oracle.facts())});
  return place_->compare(workload, oracle, contenders, options);
}

void TrialRunner::prepare(const ir::Workload& workload, const family::Family& family,
                          const std::vector<ir::Fact>& facts,
                          const std::vector<artifact::Schedule>& schedules) {
  if (place_->lookahead() <= 1) return;
  std::vector<Contender> coming;
  for (const artifact::Schedule& schedule : schedules) try {
      if (!family.illegal(workload, schedule, device_->spec()))
        coming.push_back({generate(workload, family, schedule), family.launch(workload, schedule, facts)});
    } catch (const Error&) {
      // its trial will say so
    }
  place_->prepare(workload, facts, coming);
}

}  // namespace thrice::measure
