#include "backend/opencl/stream.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include "backend/opencl/buffer.h"
#include "backend/opencl/program.h"

namespace thrice::backend::opencl {
namespace {

class ClEventPoint : public Event {
 public:
  ClEventPoint(ContextPtr context, cl_event handle) : context_(std::move(context)), handle_(handle) {}
  ~ClEventPoint() override { context_->api.ReleaseEvent(handle_); }
  void wait() override {
    check(context_->api.WaitForEvents(1, &handle_), context_->spec.id + ": waiting for an event");
  }
  double microseconds_since(const Event& earlier) override {
    wait();
    return (nanoseconds() - static_cast<const ClEventPoint&>(earlier).nanoseconds()) * 1e-3;
  }

 private:
  double nanoseconds() const {
    check(context_->api.WaitForEvents(1, &handle_), context_->spec.id + ": waiting for an event");
    cl_ulong at = 0;
    check(context_->api.GetEventProfilingInfo(handle_, kProfilingCommandEnd, sizeof(at), &at, nullptr),
          "reading an event's time");
    return static_cast<double>(at);
  }

  ContextPtr context_;
  cl_event handle_;
};

struct Sizes {
  size_t global[3], local[3];
  bool empty = false;
};

// Global and local sizes after checking them against the limits of our own description.
Sizes sizes_of(const Context& c, const ClProgram::Kernel& kernel, const artifact::Launch& launch) {
  Sizes sizes{};
  int64_t threads = 1;
  for (size_t i = 0; i < 3; ++i) {
    const int64_t grid = launch.grid[i], block = launch.block[i];
    if (grid < 0 || block < 1 || block > c.spec.max_threads_per_block || grid > INT32_MAX)
      throw Error(Code::kLaunchFailed,
                  fmt::format("{}: kernel {}: a grid of {} blocks of {} threads on axis {} is out of range",
                              c.spec.id, kernel.name, grid, block, i));
    sizes.empty |= grid == 0;
    threads *= block;
    sizes.global[i] = static_cast<size_t>(grid * block);
    sizes.local[i] = static_cast<size_t>(block);
  }
  if (threads > c.spec.max_threads_per_block)
    throw Error(Code::kLaunchFailed,
                fmt::format("{}: kernel {}: {} threads a block, but the limit is {}", c.spec.id, kernel.name,
                            threads, c.spec.max_threads_per_block));
  if (kernel.local_bytes + launch.dynamic_shared_bytes > c.spec.max_shared_bytes)
    throw Error(
        Code::kLaunchFailed,
        fmt::format("{}: kernel {}: {} bytes of local memory, but the limit is {}", c.spec.id, kernel.name,
                    kernel.local_bytes + launch.dynamic_shared_bytes, c.spec.max_shared_bytes));
  return sizes;
}

void set_buffer_argument(const Context& c, cl_kernel kernel, const std::string& name, size_t index,
                         const BufferSpan& span) {
  cl_mem memory = argument(c, span);
  check(c.api.SetKernelArg(kernel, static_cast<cl_uint>(index), sizeof(memory), &memory),
        fmt::format("{}: setting argument {} of kernel {}", c.spec.id, index, name));
}

// Buffers, then the extents, then (only where the launch asks for it) dynamic local memory.
void set_arguments(const Context& c, cl_kernel handle, const ClProgram::Kernel& kernel,
                   const RecordedLaunch& launch) {
  const size_t dynamic = launch.launch.dynamic_shared_bytes > 0 ? 1 : 0;
  if (kernel.num_args != launch.buffers.size() + 1 + dynamic)
    throw Error(
        Code::kLaunchFailed,
        fmt::format("{}: kernel {} takes {} arguments, but the launch has {} buffers and the extents{}",
                    c.spec.id, kernel.name, kernel.num_args, launch.buffers.size(),
                    dynamic ? " and local memory" : ""));
  for (size_t i = 0; i < launch.buffers.size(); ++i)
    set_buffer_argument(c, handle, kernel.name, i, launch.buffers[i]);
  set_buffer_argument(c, handle, kernel.name, launch.buffers.size(), launch.extents);
  if (dynamic)
    check(c.api.SetKernelArg(handle, kernel.num_args - 1,
                             static_cast<size_t>(launch.launch.dynamic_shared_bytes), nullptr),
          "setting the local memory of kernel " + kernel.name);
}

const ClProgram& program_of(const RecordedLaunch& launch) {
  const auto* program = dynamic_cast<const ClProgram*>(launch.program.get());
  if (!program) throw Error(Code::kInternal, "launching a program that is not of an OpenCL device");
  return *program;
}

void enqueue(const Context& c, cl_command_queue queue, cl_kernel handle, const std::string& name,
             const Sizes& sizes) {
  const cl_int code =
      c.api.EnqueueNDRangeKernel(queue, handle, 3, nullptr, sizes.global, sizes.local, 0, nullptr, nullptr);
  if (code != kClSuccess)
    throw Error(Code::kLaunchFailed,
                fmt::format("{}: launching kernel {} ({} x {} x {} items in groups of {} x {} x {}): {}",
                            c.spec.id, name, sizes.global[0], sizes.global[1], sizes.global[2],
                            sizes.local[0], sizes.local[1], sizes.local[2], error_name(code)));
}

class ClReplay : public Replay {
 public:
  ClReplay(ContextPtr context, std::vector<RecordedLaunch> launches)
      : context_(std::move(context)), launches_(std::move(launches)) {
    kernels_.reserve(launches_.size());
    try {
      for (const RecordedLaunch& launch : launches_) {
        const ClProgram& program = program_of(launch);
        sizes_.push_back(sizes_of(*context_, program.kernel(launch.launch.kernel), launch.launch));
        kernels_.push_back(program.make_kernel(launch.launch.kernel));
        set_arguments(*context_, kernels_.back(), program.kernel(launch.launch.kernel), launch);
      }
    } catch (...) {
      release();
      throw;
    }
  }
  ~ClReplay() override { release(); }

  void set_buffer(size_t index, size_t at, const BufferSpan& span) override {
    if (index >= launches_.size() || at >= launches_[index].buffers.size())
      throw Error(Code::kInternal, fmt::format("no argument {} of recorded launch {}", at, index));
    const ClProgram& program = program_of(launches_[index]);
    set_buffer_argument(*context_, kernels_[index], program.kernel(launches_[index].launch.kernel).name, at,
                        span);
    launches_[index].buffers[at] = span;
  }

  void enqueue_all(cl_command_queue queue) const {
    for (size_t i = 0; i < launches_.size(); ++i)
      if (!sizes_[i].empty)
        enqueue(*context_, queue, kernels_[i],
                program_of(launches_[i]).kernel(launches_[i].launch.kernel).name, sizes_[i]);
  }

 private:
  void release() {
    for (cl_kernel kernel : kernels_) context_->api.ReleaseKernel(kernel);
    kernels_.clear();
  }

  ContextPtr context_;
  std::vector<RecordedLaunch> launches_;
  std::vector<cl_kernel> kernels_;  // one each: arguments stay set between replays
  std::vector<Sizes> sizes_;
};

class ClStream : public Stream {
 public:
  ClStream(ContextPtr context, cl_command_queue queue) : context_(std::move(context)), queue_(queue) {}
  ~ClStream() override {
    context_->api.Finish(queue_);
    context_->api.ReleaseCommandQueue(queue_);
  }

  void copy_to_device(const BufferSpan& to, std::span<const std::byte> from) override {
    if (from.empty()) return;
    same_size(to.bytes, from.size());
    check(api().EnqueueWriteBuffer(queue_, memory(to), 1, to.offset, from.size(), from.data(), 0, nullptr,
                                   nullptr),
          fmt::format("{}: copying {} bytes to the device", context_->spec.id, from.size()));
  }
  void copy_to_host(std::span<std::byte> to, const BufferSpan& from) override {
    if (to.empty()) return;
    same_size(from.bytes, to.size());
    check(api().EnqueueReadBuffer(queue_, memory(from), 1, from.offset, to.size(), to.data(), 0, nullptr,
                                  nullptr),
          fmt::format("{}: copying {} bytes to the host", context_->spec.id, to.size()));
  }
  void copy(const BufferSpan& to, const BufferSpan& from) override {
    if (from.bytes == 0) return;
    same_size(to.bytes, from.bytes);
    check(api().EnqueueCopyBuffer(queue_, memory(from), memory(to), from.offset, to.offset, from.bytes, 0,
                                  nullptr, nullptr),
          fmt::format("{}: copying {} bytes on the device", context_->spec.id, from.bytes));
  }
  void fill(const BufferSpan& to, std::byte value) override {
    if (to.bytes == 0) return;
    check(api().EnqueueFillBuffer(queue_, memory(to), &value, 1, to.offset, to.bytes, 0, nullptr, nullptr),
          fmt::format("{}: filling {} bytes", context_->spec.id, to.bytes));
  }
  void launch(const RecordedLaunch& launch) override {
    const ClProgram& program = program_of(launch);
    const ClProgram::Kernel& kernel = program.kernel(launch.launch.kernel);
    const Sizes sizes = sizes_of(*context_, kernel, launch.launch);
    if (sizes.empty) return;
    const std::lock_guard<std::mutex> lock(program.mutex());  // kernel objects hold arguments
    set_arguments(*context_, kernel.handle, kernel, launch);
    enqueue(*context_, queue_, kernel.handle, kernel.name, sizes);
  }
  std::unique_ptr<Replay> record(std::vector<RecordedLaunch> launches) override {
    return std::make_unique<ClReplay>(context_, std::move(launches));
  }
  void replay(Replay& replay) override {
    auto* recorded = dynamic_cast<ClReplay*>(&replay);
    if (!recorded) throw Error(Code::kInternal, "replaying a record of another back end");
    recorded->enqueue_all(queue_);
  }
  std::unique_ptr<Event> record_event() override {
    cl_event event = nullptr;
    check(api().EnqueueMarkerWithWaitList(queue_, 0, nullptr, &event),
          context_->spec.id + ": recording an event");
    auto point = std::make_unique<ClEventPoint>(context_, event);
    check(api().Flush(queue_), context_->spec.id + ": flushing the queue");
    return point;
  }
  void synchronize() override {
    const cl_int code = api().Finish(queue_);
    if (code != kClSuccess)
      throw Error(Code::kLaunchFailed, context_->spec.id + ": waiting for the device: " + error_name(code));
  }

 private:
  const Api& api() const { return context_->api; }
  static cl_mem memory(const BufferSpan& span) {
    return static_cast<cl_mem>(checked(span, "moving memory").native());
  }
  static void same_size(size_t device, size_t host) {
    if (device != host)
      throw Error(Code::kInternal, fmt::format("a copy of {} bytes with a span of {}", host, device));
  }

  ContextPtr context_;
  cl_command_queue queue_;
};

}  // namespace

std::unique_ptr<Stream> make_stream(const ContextPtr& context, void* native) {
  cl_int code = kClSuccess;
  auto queue = static_cast<cl_command_queue>(native);
  if (queue)
    code = context->api.RetainCommandQueue(queue);
  else
    queue = context->api.CreateCommandQueue(context->handle, context->device, kQueueProfiling, &code);
  check(code, context->spec.id + ": making a queue");
  return std::make_unique<ClStream>(context, queue);
}

}  // namespace thrice::backend::opencl
