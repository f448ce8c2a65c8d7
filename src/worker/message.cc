#include "worker/message.h"

#include <utility>

#include "base/fields.h"
#include "base/hash.h"
#include "ir/check.h"
#include "ir/serialize.h"

namespace thrice::worker {
namespace {

constexpr size_t kMostConstantBytes = 4096;  // operands that decide shapes are short; weights are not sent

void whole(const FieldReader& reader) {
  if (!reader.complete()) throw Error(Code::kCorrupt, "a message between tuner and worker is damaged");
}

void put(FieldWriter& out, const ir::Tensor& tensor) {
  out.integer(static_cast<int64_t>(tensor.dtype()));
  out.integers(tensor.shape());
  out.block({tensor.data(), tensor.bytes()});
}
ir::Tensor take_tensor(FieldReader& in) {
  const auto dtype = static_cast<DType>(in.integer());
  const std::vector<int64_t> shape = in.integers();
  const auto bytes = in.block();
  if (!in.good) return {};
  ir::Tensor tensor(dtype, shape);
  if (tensor.bytes() != bytes.size()) in.good = false;
  if (in.good && !bytes.empty()) std::memcpy(tensor.mutable_data(), bytes.data(), bytes.size());
  return tensor;
}

std::vector<int64_t> numbers(const std::vector<ir::Dim>& dims) {
  std::vector<int64_t> values;
  for (const ir::Dim& d : dims) values.push_back(d.value());
  return values;
}

bool is_sent(const ir::Fact& fact) {
  return fact.constant && fact.constant->dtype() != DType::kString &&
         fact.constant->bytes() <= kMostConstantBytes;
}

void put(FieldWriter& out, const std::vector<ir::Fact>& facts) {
  out.integer(static_cast<int64_t>(facts.size()));
  for (const ir::Fact& fact : facts) {
    out.integer(static_cast<int64_t>(fact.type.dtype));
    out.integers(numbers(fact.type.shape));
    out.integer(fact.known.has_value());
    if (fact.known) out.integers(numbers(*fact.known));
    out.integer(is_sent(fact));
    if (is_sent(fact)) put(out, *fact.constant);
  }
}

void put(FieldWriter& out, const artifact::KernelSource& source) {
  out.integer(static_cast<int64_t>(source.language));
  out.text(source.text);
  out.integer(static_cast<int64_t>(source.kernels.size()));
  for (const std::string& kernel : source.kernels) out.text(kernel);
  out.text(source.key);
}
artifact::KernelSource take_source(FieldReader& in) {
  artifact::KernelSource source;
  source.language = static_cast<artifact::Language>(in.integer());
  source.text = in.text();
  for (int64_t n = in.integer(); in.good && n > 0; --n) source.kernels.push_back(in.text());
  source.key = in.text();
  return source;
}

void put(FieldWriter& out, const artifact::LaunchPlan& plan) {
  out.integer(static_cast<int64_t>(plan.launches.size()));
  for (const artifact::Launch& launch : plan.launches) {
    out.integer(launch.kernel);
    for (const int64_t n : launch.grid) out.integer(n);
    for (const int64_t n : launch.block) out.integer(n);
    out.integer(launch.dynamic_shared_bytes);
    out.integers(launch.extents);
    out.integer(launch.once);
    out.integer(static_cast<int64_t>(launch.maps.size()));
    for (const artifact::TensorMap& map : launch.maps) {
      out.integer(map.buffer);
      for (const int64_t n : map.extents) out.integer(n);
      for (const int64_t n : map.strides) out.integer(n);
      for (const int64_t n : map.box) out.integer(n);
    }
  }
  out.integers(plan.temporary_bytes);
  out.integers(plan.temporary_kept);
}
artifact::LaunchPlan take_plan(FieldReader& in) {
  artifact::LaunchPlan plan;
  for (int64_t n = in.integer(); in.good && n > 0; --n) {
    artifact::Launch& launch = plan.launches.emplace_back();
    launch.kernel = static_cast<int>(in.integer());
    for (int64_t& g : launch.grid) g = in.integer();
    for (int64_t& b : launch.block) b = in.integer();
    launch.dynamic_shared_bytes = in.integer();
    launch.extents = in.integers<int32_t>();
    launch.once = in.integer() != 0;
    for (int64_t left = in.integer(); in.good && left > 0; --left) {
      artifact::TensorMap& map = launch.maps.emplace_back();
      map.buffer = static_cast<int>(in.integer());
      for (int64_t& m : map.extents) m = in.integer();
      for (int64_t& m : map.strides) m = in.integer();
      for (int64_t& m : map.box) m = in.integer();
    }
  }
  plan.temporary_bytes = in.integers();
  plan.temporary_kept = in.integers<bool>();
  return plan;
}

void put(FieldWriter& out, const measure::TimingOptions& t) {
  out.real(t.min_batch_us);
  out.integer(t.min_samples);
  out.real(t.max_total_us);
  out.real(t.give_up_us);
  out.real(t.settle_us);
  out.real(t.rest_us);
  out.integer(t.cold);
}
measure::TimingOptions take_timing(FieldReader& in) {
  measure::TimingOptions t;
  t.min_batch_us = in.real();
  t.min_samples = static_cast<int>(in.integer());
  t.max_total_us = in.real();
  t.give_up_us = in.real();
  t.settle_us = in.real();
  t.rest_us = in.real();
  t.cold = in.integer() != 0;
  return t;
}

void put(FieldWriter& out, const artifact::Conditions& c) {
  out.integer(c.throttled_samples);
  for (const double value : {c.sm_mhz, c.least_sm_mhz, c.memory_mhz, c.temperature_c, c.power_w})
    out.real(value);
}
artifact::Conditions take_conditions(FieldReader& in) {
  artifact::Conditions c;
  c.throttled_samples = static_cast<int>(in.integer());
  for (double* value : {&c.sm_mhz, &c.least_sm_mhz, &c.memory_mhz, &c.temperature_c, &c.power_w})
    *value = in.real();
  return c;
}

}  // namespace

std::vector<std::byte> write_workload(const ir::Workload& workload, const std::vector<ir::Fact>& facts) {
  FieldWriter out;
  const ir::SerializedGraph graph = ir::serialize(workload.graph);
  out.text(workload.hash);
  out.text(graph.json);
  out.integer(static_cast<int64_t>(graph.constants.size()));
  for (const ir::Tensor& constant : graph.constants) put(out, constant);
  put(out, facts);
  return std::move(out.bytes);
}

std::string workload_key(const ir::Workload& workload, const std::vector<ir::Fact>& facts) {
  FieldWriter out;
  out.text(workload.hash);
  put(out, facts);
  return hash_hex(out.bytes);
}

Known read_workload(const std::vector<std::byte>& body) {
  FieldReader in(body);
  Known known;
  known.workload.hash = in.text();
  const std::string json = in.text();
  std::vector<ir::Tensor> constants;
  for (int64_t n = in.integer(); in.good && n > 0; --n) constants.push_back(take_tensor(in));
  std::vector<int64_t> held;  // place of a fact's constant, or -1
  for (int64_t n = in.integer(); in.good && n > 0; --n) {
    ir::Fact& fact = known.facts.emplace_back();
    fact.type.dtype = static_cast<DType>(in.integer());
    fact.type.shape = ir::to_shape(in.integers());
    if (in.integer()) fact.known = ir::to_shape(in.integers());
    held.push_back(-1);
    if (!in.integer()) continue;
    held.back() = static_cast<int64_t>(known.held.size());
    known.held.push_back(take_tensor(in));
  }
  whole(in);
  for (size_t i = 0; i < held.size(); ++i)
    if (held[i] >= 0) known.facts[i].constant = &known.held[static_cast<size_t>(held[i])];
  known.workload.graph = ir::deserialize(json, constants);
  return known;
}

std::vector<std::byte> write_run(const std::string& workload, const measure::Job& job) {
  FieldWriter out;
  out.text(workload);
  put(out, job.source);
  put(out, job.launches);
  out.integer(job.elsewhere.has_value());
  if (job.elsewhere) put(out, *job.elsewhere);
  out.integer(static_cast<int64_t>(job.shares.size()));
  for (const family::Share& share : job.shares) {
    out.integer(static_cast<int64_t>(share.input));
    out.integer(static_cast<int64_t>(share.output));
  }
  out.real(job.least_us);
  out.text(job.peaks_source);
  out.integer(static_cast<int64_t>(job.options.gate));
  out.integer(static_cast<int64_t>(job.options.seed));
  put(out, job.options.timing);
  out.real(job.options.give_up_us);
  out.real(job.options.concurrent_below_us);
  out.integer(job.options.both_caches);
  return std::move(out.bytes);
}
RunRequest read_run(const std::vector<std::byte>& body) {
  FieldReader in(body);
  RunRequest request;
  request.workload = in.text();
  measure::Job& job = request.job;
  job.source = take_source(in);
  job.launches = take_plan(in);
  if (in.integer()) job.elsewhere = take_plan(in);
  for (int64_t left = in.integer(); left > 0; --left) {
    const auto input = static_cast<size_t>(in.integer());
    job.shares.push_back({input, static_cast<size_t>(in.integer())});
  }
  job.least_us = in.real();
  job.peaks_source = in.text();
  job.options.gate = static_cast<measure::Gate>(in.integer());
  job.options.seed = static_cast<uint64_t>(in.integer());
  job.options.timing = take_timing(in);
  job.options.give_up_us = in.real();
  job.options.concurrent_below_us = in.real();
  job.options.both_caches = in.integer() != 0;
  whole(in);
  return request;
}

std::vector<std::byte> write_compare(const std::string& workload,
                                     const std::vector<measure::Contender>& contenders,
                                     const measure::TimingOptions& options) {
  FieldWriter out;
  out.text(workload);
  out.integer(static_cast<int64_t>(contenders.size()));
  for (const measure::Contender& contender : contenders) {
    put(out, contender.source);
    put(out, contender.launches);
  }
  put(out, options);
  return std::move(out.bytes);
}
CompareRequest read_compare(const std::vector<std::byte>& body) {
  FieldReader in(body);
  CompareRequest request;
  request.workload = in.text();
  for (int64_t n = in.integer(); in.good && n > 0; --n) {
    artifact::KernelSource source = take_source(in);
    request.contenders.push_back({std::move(source), take_plan(in)});
  }
  request.options = take_timing(in);
  whole(in);
  return request;
}

std::vector<std::byte> write_source(const artifact::KernelSource& source) {
  FieldWriter out;
  put(out, source);
  return std::move(out.bytes);
}
artifact::KernelSource read_source(const std::vector<std::byte>& body) {
  FieldReader in(body);
  artifact::KernelSource source = take_source(in);
  whole(in);
  return source;
}

std::vector<std::byte> write_result(const measure::TrialResult& result, bool worker_ends) {
  FieldWriter out;
  const artifact::Measurement& m = result.measurement;
  out.integer(static_cast<int64_t>(m.outcome));
  out.text(m.message);
  for (const double value :
       {m.time_us, m.spread_us, m.warm_us, m.cold_us, m.error, m.error_limit, m.build_ms})
    out.real(value);
  put(out, m.conditions);
  for (const int64_t value :
       {int64_t{m.samples}, int64_t{m.registers}, int64_t{m.spill_bytes}, m.shared_bytes, m.temporary_bytes})
    out.integer(value);
  out.real(m.concurrent_us);
  const measure::TrialCost& c = result.cost;
  for (const double value : {c.build, c.check, c.timing, c.after, c.other_extents}) out.real(value);
  out.integer(static_cast<int64_t>(result.failure));
  out.text(result.source_key);
  out.integer(worker_ends);
  return std::move(out.bytes);
}
RunAnswer read_result(const std::vector<std::byte>& body) {
  FieldReader in(body);
  RunAnswer answer;
  artifact::Measurement& m = answer.result.measurement;
  m.outcome = static_cast<artifact::Outcome>(in.integer());
  m.message = in.text();
  for (double* value :
       {&m.time_us, &m.spread_us, &m.warm_us, &m.cold_us, &m.error, &m.error_limit, &m.build_ms})
    *value = in.real();
  m.conditions = take_conditions(in);
  for (int* value : {&m.samples, &m.registers, &m.spill_bytes}) *value = static_cast<int>(in.integer());
  m.shared_bytes = in.integer();
  m.temporary_bytes = in.integer();
  m.concurrent_us = in.real();
  measure::TrialCost& c = answer.result.cost;
  for (double* value : {&c.build, &c.check, &c.timing, &c.after, &c.other_extents}) *value = in.real();
  answer.result.failure = static_cast<Code>(in.integer());
  answer.result.source_key = in.text();
  answer.worker_ends = in.integer() != 0;
  whole(in);
  return answer;
}

std::vector<std::byte> write_timings(const std::vector<measure::Timing>& timings) {
  FieldWriter out;
  out.integer(static_cast<int64_t>(timings.size()));
  for (const measure::Timing& timing : timings) {
    out.real(timing.median_us);
    out.real(timing.spread_us);
    out.integer(timing.samples);
    out.integer(timing.throttled);
    put(out, timing.conditions);
  }
  return std::move(out.bytes);
}
std::vector<measure::Timing> read_timings(const std::vector<std::byte>& body) {
  FieldReader in(body);
  std::vector<measure::Timing> timings;
  for (int64_t n = in.integer(); in.good && n > 0; --n) {
    measure::Timing& timing = timings.emplace_back();
    timing.median_us = in.real();
    timing.spread_us = in.real();
    timing.samples = static_cast<int>(in.integer());
    timing.throttled = in.integer() != 0;
    timing.conditions = take_conditions(in);
  }
  whole(in);
  return timings;
}

std::vector<std::byte> write_peaks(const Peaks& peaks) {
  FieldWriter out;
  out.real(peaks.bandwidth_gbs);
  out.real(peaks.f32_gflops);
  out.text(peaks.source);
  return std::move(out.bytes);
}
Peaks read_peaks(const std::vector<std::byte>& body) {
  FieldReader in(body);
  Peaks peaks;
  peaks.bandwidth_gbs = in.real();
  peaks.f32_gflops = in.real();
  peaks.source = in.text();
  whole(in);
  return peaks;
}

std::vector<std::byte> write_text(const std::string& text) {
  FieldWriter out;
  out.text(text);
  return std::move(out.bytes);
}
std::string read_text(const std::vector<std::byte>& body) {
  FieldReader in(body);
  std::string text = in.text();
  whole(in);
  return text;
}

std::vector<std::byte> write_phase(measure::Phase phase) {
  FieldWriter out;
  out.integer(static_cast<int64_t>(phase));
  return std::move(out.bytes);
}
measure::Phase read_phase(const std::vector<std::byte>& body) {
  FieldReader in(body);
  const auto phase = static_cast<measure::Phase>(in.integer());
  whole(in);
  return phase;
}

std::vector<std::byte> write_error(const Error& error) {
  FieldWriter out;
  out.integer(static_cast<int64_t>(error.code()));
  out.text(error.what());
  return std::move(out.bytes);
}
Error read_error(const std::vector<std::byte>& body) {
  FieldReader in(body);
  const auto code = static_cast<Code>(in.integer());
  const std::string text = in.text();
  whole(in);
  return {code, text};
}

}  // namespace thrice::worker
