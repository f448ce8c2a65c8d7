#include "measure/probe.h"

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "family/kernel_text.h"
#include "family/prelude.h"
#include "measure/timing.h"

namespace thrice::measure {

namespace {

constexpr int64_t kCopyElements = 16 << 20;  // 64 MiB each way: beyond the last-level cache of what we run on
constexpr int64_t kThreads = 256, kRounds = 2048, kChains = 16;

double best_us(backend::Device& device, backend::Stream& stream, const backend::RecordedLaunch& launch) {
  const Timing timing = time_one(device, stream, [&] { stream.launch(launch); }, {1000, 5, 200e3});
  return timing.median_us;
}

}  // namespace

target::DeviceSpec probe_peaks(backend::Device& device, jit::KernelCache& cache) {
  target::DeviceSpec spec = device.spec();
  if (spec.api == target::Api::kNull || (spec.bandwidth_gbs > 0 && spec.f32_gflops > 0)) return spec;
  artifact::KernelSource source;
  source.language = spec.api == target::Api::kCuda ? artifact::Language::kCuda : artifact::Language::kOpenCL;
  source.text = family::prelude(source.language) + family::kernel_text("portable/probe.h");
  source.kernels = {"probe_copy", "probe_copy_runs", "probe_madd"};
  source.key = hash_hex(source.text);
  const backend::ProgramPtr program = cache.build(source).program;

  const auto stream = device.make_stream();
  const size_t bytes = static_cast<size_t>(kCopyElements) * sizeof(float);
  const backend::BufferPtr from = device.allocate(bytes), to = device.allocate(bytes),
                           extents = device.allocate(2 * backend::kAlignment);
  stream->fill({from, 0, bytes}, std::byte{0});
  const int64_t blocks = std::max(1, spec.compute_units) * (spec.is_cpu ? 4 : 16);
  const int64_t run = (kCopyElements + blocks * kThreads - 1) / (blocks * kThreads);
  const std::vector<int32_t> copy_count{static_cast<int32_t>(kCopyElements), static_cast<int32_t>(run)},
      rounds{static_cast<int32_t>(kRounds)};
  const backend::BufferSpan copy_extents{extents, 0, 2 * sizeof(int32_t)},
      madd_extents{extents, backend::kAlignment, sizeof(int32_t)};
  stream->copy_to_device(copy_extents, std::as_bytes(std::span(copy_count)));
  stream->copy_to_device(madd_extents, std::as_bytes(std::span(rounds)));

  const auto launch = [&](int kernel, const std::vector<int32_t>& ints, const backend::BufferSpan& where) {
    backend::RecordedLaunch recorded;
    recorded.program = program;
    recorded.launch.kernel = kernel;
    recorded.launch.grid = {blocks, 1, 1};
    recorded.launch.block = {kThreads, 1, 1};
    recorded.launch.extents = ints;
    recorded.buffers = {{from, 0, bytes}, {to, 0, bytes}};
    recorded.extents = where;
    return recorded;
  };
  spec.bandwidth_gbs =
      2.0 * static_cast<double>(bytes) /
      (best_us(device, *stream, launch(spec.is_cpu ? 1 : 0, copy_count, copy_extents)) * 1e3);
  const double flops = 2.0 * static_cast<double>(blocks * kThreads * kRounds * kChains);
  spec.f32_gflops = flops / (best_us(device, *stream, launch(2, rounds, madd_extents)) * 1e3);
  spec.peaks_source = "probe";
  return spec;
}

}  // namespace thrice::measure
