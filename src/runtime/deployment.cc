#include "runtime/deployment.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <map>
#include <set>

#include "runtime/shared_code.h"

namespace thrice::runtime {

using artifact::ManifestTensor;
using exec::Executor;
using exec::Operand;

// One loaded release with the executors that work on it.
struct Deployment::Version {
  // Executor of one caller's stream. Runs on it take turns.
  struct Lane {
    std::mutex mutex;
    std::unique_ptr<Executor> executor;
    ~Lane() {
      // What was enqueued still uses the arena.
      try {
        if (executor) executor->synchronize();
      } catch (const Error&) {  // the caller hears of it when using the stream
      }
    }
  };

  ReleasePtr release;
  std::shared_ptr<const exec::Executable> code;
  std::mutex mutex;                              // guards the two below
  std::vector<std::unique_ptr<Executor>> idle;   // for run(): as many as ever ran at one time
  std::map<void*, std::shared_ptr<Lane>> lanes;  // for run_on()

  std::unique_ptr<Executor> take() {
    {
      const std::lock_guard lock(mutex);
      if (!idle.empty()) {
        auto executor = std::move(idle.back());
        idle.pop_back();
        return executor;
      }
    }
    return std::make_unique<Executor>(code);
  }
  void give_back(std::unique_ptr<Executor> executor) {
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(executor));
  }
  std::shared_ptr<Lane> lane(void* stream) {
    const std::lock_guard lock(mutex);
    std::shared_ptr<Lane>& lane = lanes[stream];
    if (!lane) lane = std::make_shared<Lane>();
    return lane;
  }
};

namespace {

void check_same(const std::vector<ManifestTensor>& now, const std::vector<ManifestTensor>& next,
                const char* what) {
  if (now.size() != next.size())
    throw Error(Code::kInvalidArgument, fmt::format("swap: the release has {} {}s, the one in service {}; "
                                                    "load it by itself",
                                                    next.size(), what, now.size()));
  for (size_t i = 0; i < now.size(); ++i)
    if (now[i].name != next[i].name || now[i].dtype != next[i].dtype || now[i].shape != next[i].shape)
      throw Error(
          Code::kInvalidArgument,
          fmt::format("swap: {} {} of the release is '{}' {} {}, in service it is '{}' {} {}; load it "
                      "by itself",
                      what, i, next[i].name, next[i].dtype, next[i].shape, now[i].name, now[i].dtype,
                      now[i].shape));
}

// Kernels may read vectors of up to 128 bytes; a caller's CUDA pointer into the middle of something may not
// allow that, and is copied then. OpenCL takes whole buffers only.
std::vector<Operand> aligned(Executor& executor, std::vector<Operand> inputs) {
  constexpr uintptr_t kVectorBytes = 128;
  if (executor.code().device->spec().api != target::Api::kCuda) return inputs;
  for (Operand& input : inputs)
    if (input.device.buffer && reinterpret_cast<uintptr_t>(input.device.buffer->native()) % kVectorBytes != 0)
      input.device = executor.copy_to_device(input);
  return inputs;
}

}  // namespace

Deployment::Deployment(backend::DevicePtr device, ReleasePtr release, Builder build)
    : device_(std::move(device)), build_(std::move(build)), current_(std::make_shared<Version>()) {
  current_->release = release;
  current_->code = shared_code(device_, release, build_);
}

Deployment::~Deployment() = default;

std::shared_ptr<Deployment::Version> Deployment::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

ReleasePtr Deployment::release() const { return current()->release; }

std::vector<ir::Tensor> Deployment::run(const std::vector<Operand>& inputs) {
  const std::shared_ptr<Version> version = current();
  std::unique_ptr<Executor> executor = version->take();
  std::vector<ir::Tensor> results;
  try {
    for (const Operand& result : executor->run(aligned(*executor, inputs)))
      results.push_back(executor->to_host(result));
  } catch (...) {
    version->give_back(std::move(executor));
    throw;
  }
  version->give_back(std::move(executor));
  for (ir::Tensor& result : results) result.mutable_data();  // copies what an input or a constant shares
  return results;
}

std::vector<Operand> Deployment::run_on(void* stream, const std::vector<Operand>& inputs) {
  const std::shared_ptr<Version> version = current();
  const std::shared_ptr<Version::Lane> lane = version->lane(stream);
  const std::lock_guard lock(lane->mutex);
  if (!lane->executor) lane->executor = std::make_unique<Executor>(version->code, stream);
  Executor& executor = *lane->executor;
  std::vector<Operand> results = executor.run(aligned(executor, inputs));
  std::set<const void*> taken;
  for (const Operand& input : inputs)
    if (input.device.buffer) taken.insert(input.device.buffer->native());
  for (const backend::BufferSpan& constant : version->code->constants)
    if (constant.buffer) taken.insert(constant.buffer->native());
  for (Operand& result : results) {
    const bool is_shared = result.device.buffer && (result.device.offset != 0 ||
                                                    !taken.insert(result.device.buffer->native()).second);
    if (is_shared || !result.device.buffer) result.device = executor.copy_to_device(result);
    if (is_shared) taken.insert(result.device.buffer->native());
    result.host.reset();
  }
  return results;
}

void Deployment::forget_stream(void* stream) {
  const std::shared_ptr<Version> version = current();
  std::shared_ptr<Version::Lane> lane;  // destroyed after the lock: it waits
  const std::lock_guard lock(version->mutex);
  const auto it = version->lanes.find(stream);
  if (it == version->lanes.end()) return;
  lane = std::move(it->second);
  version->lanes.erase(it);
}

ir::Tensor Deployment::read(void* stream, const Operand& result) {
  const std::shared_ptr<Version> version = current();
  const std::shared_ptr<Version::Lane> lane = version->lane(stream);
  const std::lock_guard lock(lane->mutex);
  // After a swap the result is another version's; any executor on its stream reads it in order.
  if (!lane->executor) lane->executor = std::make_unique<Executor>(version->code, stream);
  return lane->executor->to_host(result);
}

void Deployment::synchronize(void* stream) {
  const std::shared_ptr<Version::Lane> lane = current()->lane(stream);
  const std::lock_guard lock(lane->mutex);
  if (lane->executor) lane->executor->synchronize();
}

void Deployment::swap(ReleasePtr release) {
  const ReleasePtr now = this->release();
  check_same(now->manifest.inputs, release->manifest.inputs, "input");
  check_same(now->manifest.outputs, release->manifest.outputs, "output");
  auto next = std::make_shared<Version>();
  next->release = release;
  next->code = shared_code(device_, release, build_);
  const std::lock_guard lock(mutex_);
  current_.swap(next);
}  // the old version goes when its last run has ended: here, or in that run's thread

}  // namespace thrice::runtime
