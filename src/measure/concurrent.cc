#include "measure/concurrent.h"

#include <thrice/status.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/clock.h"
#include "measure/arguments.h"

namespace thrice::measure {
namespace {

constexpr double kLongest_us = 20e3, kReplay_us = 50, kBatch_us = 1500;
constexpr int kMostCopies = 16, kSamples = 3;

// One stream with its own buffers, and several executions as one replay.
struct Lane {
  std::unique_ptr<backend::Stream> stream;
  std::unique_ptr<Arguments> arguments;
  std::unique_ptr<backend::Replay> replay;
};

}  // namespace

double time_concurrent(backend::Device& device, const backend::ProgramPtr& program,
                       const ir::Workload& workload, const artifact::LaunchPlan& launches, Oracle& oracle,
                       uint64_t seed, double alone_us) {
  if (!(alone_us > 0) || alone_us > kLongest_us) return 0;
  const auto copies =
      static_cast<size_t>(std::clamp(std::ceil(kReplay_us / alone_us), 1.0, double{kMostCopies}));
  std::array<Lane, kConcurrentStreams> lanes;
  try {
    for (Lane& lane : lanes) {
      lane.stream = device.make_stream();
      lane.arguments =
          std::make_unique<Arguments>(device, *lane.stream, program, workload, launches, oracle.facts());
      lane.arguments->prepare(oracle.inputs(ir::InputKind::kNormal, seed), fill_of(0));
      for (const backend::RecordedLaunch& once : lane.arguments->launches(true)) lane.stream->launch(once);
      std::vector<backend::RecordedLaunch> repeated;
      for (size_t i = 0; i < copies; ++i)
        for (backend::RecordedLaunch& launch : lane.arguments->launches(false))
          repeated.push_back(std::move(launch));
      lane.replay = lane.stream->record(std::move(repeated));
    }
  } catch (const Error& error) {
    if (error.code() == Code::kOutOfMemory) return 0;
    throw;
  }
  const auto batch = [&](int replays) {
    const double begin = monotonic_us();
    for (int i = 0; i < replays; ++i)
      for (Lane& lane : lanes) lane.stream->replay(*lane.replay);
    for (Lane& lane : lanes) lane.stream->synchronize();
    return (monotonic_us() - begin) / (static_cast<double>(copies) * replays * kConcurrentStreams);
  };
  batch(1);
  const double once_us = std::max(batch(1), 1e-3) * static_cast<double>(copies) * kConcurrentStreams;
  const int replays = static_cast<int>(std::clamp(std::ceil(kBatch_us / once_us), 1.0, 200.0));
  std::array<double, kSamples> samples{};
  for (double& sample : samples) sample = batch(replays);
  std::sort(samples.begin(), samples.end());
  return samples[kSamples / 2];
}

}  // namespace thrice::measure
