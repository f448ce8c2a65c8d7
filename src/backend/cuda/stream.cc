#include "backend/cuda/stream.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include "backend/cuda/buffer.h"
#include "backend/cuda/program.h"
#include "backend/cuda/tensor_map.h"

namespace thrice::backend::cuda {
namespace {

constexpr int64_t kMostBlocksX = INT32_MAX, kMostBlocksYZ = 65535;

class CudaEvent : public Event {
 public:
  CudaEvent(ContextPtr context, CUstream stream) : context_(std::move(context)) {
    const Use use(*context_);
    context_->api.check(context_->api.EventCreate(&handle_, 0), context_->spec.id + ": making an event");
    if (const CUresult code = context_->api.EventRecord(handle_, stream); code != kCuSuccess) {
      context_->api.EventDestroy_v2(handle_);
      context_->api.check(code, context_->spec.id + ": recording an event");
    }
  }
  ~CudaEvent() override { context_->api.EventDestroy_v2(handle_); }
  void wait() override {
    const Use use(*context_);
    context_->api.check(context_->api.EventSynchronize(handle_),
                        context_->spec.id + ": waiting for an event");
  }
  double microseconds_since(const Event& earlier) override {
    wait();
    const Use use(*context_);
    float milliseconds = 0;
    context_->api.check(context_->api.EventElapsedTime(
                            &milliseconds, static_cast<const CudaEvent&>(earlier).handle_, handle_),
                        context_->spec.id + ": reading the time between events");
    return milliseconds * 1e3;
  }

 private:
  ContextPtr context_;
  CUevent handle_ = nullptr;
};

const CudaProgram& program_of(const RecordedLaunch& launch) {
  const auto* program = dynamic_cast<const CudaProgram*>(launch.program.get());
  if (!program) throw Error(Code::kInternal, "launching a program that is not of a CUDA device");
  return *program;
}

// One launch with the memory that its arguments lie in: a kernel, or a call into a library.
struct Prepared {
  const CudaProgram::Kernel* kernel = nullptr;
  KernelNodeParams node{};
  std::vector<CUdeviceptr> values;  // buffers, then the extents
  std::vector<EncodedMap> maps;     // arguments after the extents
  std::vector<void*> pointers;
  bool empty = false;
  const artifact::Launch* launch = nullptr;  // of the record
  size_t workspace_bytes = 0;                // of a call

  // Refers to `recorded`.
  Prepared(const Context& c, const RecordedLaunch& recorded) : launch(&recorded.launch) {
    kernel = &program_of(recorded).kernel(launch->kernel);
    const artifact::Launch& l = *launch;
    int64_t threads = 1;
    for (size_t i = 0; i < 3; ++i) {
      if (l.grid[i] < 0 || l.grid[i] > (i == 0 ? kMostBlocksX : kMostBlocksYZ) || l.block[i] < 1 ||
          l.block[i] > c.spec.max_threads_per_block)
        throw Error(Code::kLaunchFailed,
                    fmt::format("{}: kernel {}: a grid of {} blocks of {} threads on axis {} is out of range",
                                c.spec.id, kernel->name, l.grid[i], l.block[i], i));
      empty |= l.grid[i] == 0;
      threads *= l.block[i];
    }
    if (threads > c.spec.max_threads_per_block)
      throw Error(Code::kLaunchFailed,
                  fmt::format("{}: kernel {}: {} threads a block, but the limit is {}", c.spec.id,
                              kernel->name, threads, c.spec.max_threads_per_block));
    if (l.dynamic_shared_bytes + kernel->static_shared_bytes > c.shared_optin_bytes)
      throw Error(Code::kLaunchFailed,
                  fmt::format("{}: kernel {}: {} bytes of shared memory, but the limit is {}", c.spec.id,
                              kernel->name, l.dynamic_shared_bytes + kernel->static_shared_bytes,
                              c.shared_optin_bytes));
    for (const BufferSpan& span : recorded.buffers) values.push_back(address(c, span));
    if (kernel->call) {
      const auto workspace = static_cast<size_t>(kernel->call->workspace());
      if (workspace < recorded.buffers.size()) workspace_bytes = recorded.buffers[workspace].bytes;
      return;
    }
    values.push_back(address(c, recorded.extents));
    for (CUdeviceptr& value : values) pointers.push_back(&value);
    maps.resize(empty ? 0 : l.maps.size());
    for (EncodedMap& map : maps) pointers.push_back(map.bytes);
    for (size_t i = 0; i < maps.size(); ++i) encode(c, i);
    const auto u = [](int64_t v) { return static_cast<unsigned>(v); };
    node = {kernel->handle,  u(l.grid[0]),  u(l.grid[1]),  u(l.grid[2]),
            u(l.block[0]),   u(l.block[1]), u(l.block[2]), u(l.dynamic_shared_bytes),
            pointers.data(), nullptr};
  }
  // Maps that describe the buffer of this argument, for the memory it lies in now.
  void encode_of(const Context& c, size_t argument) {
    for (size_t i = 0; i < maps.size(); ++i)
      if (launch->maps[i].buffer == static_cast<int>(argument)) encode(c, i);
  }
  void encode(const Context& c, size_t i) {
    const artifact::TensorMap& map = launch->maps[i];
    maps[i].encode(c, map, values.at(static_cast<size_t>(map.buffer)), kernel->name);
  }
  void enqueue(const Context& c, CUstream stream) const {
    if (kernel->call) return kernel->call->enqueue(*launch, values, workspace_bytes, stream);
    const CUresult code =
        c.api.LaunchKernel(node.func, node.grid_x, node.grid_y, node.grid_z, node.block_x, node.block_y,
                           node.block_z, node.shared_bytes, stream, node.params, nullptr);
    if (code != kCuSuccess)
      throw Error(Code::kLaunchFailed,
                  fmt::format("{}: launching kernel {}: {}", c.spec.id, kernel->name, c.api.error(code)));
  }
  Prepared(Prepared&&) = default;  // moving vectors keeps their elements where they are
  Prepared(const Prepared&) = delete;
};

// A chain of nodes. An exchanged buffer changes its node's parameters before the next launch. What a library
// launches is its own affair: it is captured, becomes one node, and is captured anew for another buffer.
class CudaReplay : public Replay {
 public:
  CudaReplay(ContextPtr context, std::vector<RecordedLaunch> launches)
      : context_(std::move(context)), launches_(std::move(launches)) {
    for (const RecordedLaunch& launch : launches_) prepared_.emplace_back(*context_, launch);
    nodes_.resize(prepared_.size(), nullptr);
    changed_.resize(prepared_.size(), 0);
    const Use use(*context_);
    try {
      build();
    } catch (...) {
      clear();
      throw;
    }
  }
  ~CudaReplay() override { clear(); }

  void set_buffer(size_t index, size_t argument, const BufferSpan& span) override {
    if (index >= launches_.size() || argument >= launches_[index].buffers.size())
      throw Error(Code::kInternal, fmt::format("no argument {} of recorded launch {}", argument, index));
    const CUdeviceptr value = address(*context_, span);
    launches_[index].buffers[argument] = span;
    if (prepared_[index].values[argument] == value) return;
    prepared_[index].values[argument] = value;
    prepared_[index].encode_of(*context_, argument);
    const auto& call = prepared_[index].kernel->call;
    if (!call || call->uses(static_cast<int>(argument))) changed_[index] = 1;
  }

  void launch(CUstream stream) {
    if (!exec_) return;
    const Api& a = context_->api;
    for (size_t i = 0; i < changed_.size(); ++i) {
      if (!changed_[i] || !nodes_[i]) continue;
      const std::string doing =
          fmt::format("{}: exchanging a buffer of kernel {}", context_->spec.id, prepared_[i].kernel->name);
      if (!prepared_[i].kernel->call) {
        a.check(a.GraphExecKernelNodeSetParams(exec_, nodes_[i], &prepared_[i].node), doing);
      } else if (const Captured child(*this, i);
                 a.GraphExecChildGraphNodeSetParams(exec_, nodes_[i], child.graph) != kCuSuccess) {
        clear();  // the library took another number of kernels
        build();
        break;
      }
      changed_[i] = 0;
    }
    a.check(a.GraphLaunch(exec_, stream), context_->spec.id + ": launching a graph");
  }

 private:
  // Launch i as a graph of its own.
  struct Captured {
    const Api& a;
    CUgraph graph = nullptr;
    Captured(const CudaReplay& replay, size_t i) : a(replay.context_->api) {
      const Context& c = *replay.context_;
      a.check(a.StreamBeginCapture_v2(replay.capturing_, kCaptureRelaxed),
              c.spec.id + ": capturing a library");
      try {
        replay.prepared_[i].enqueue(c, replay.capturing_);
      } catch (...) {
        if (a.StreamEndCapture(replay.capturing_, &graph) == kCuSuccess && graph) a.GraphDestroy(graph);
        throw;
      }
      a.check(a.StreamEndCapture(replay.capturing_, &graph), c.spec.id + ": capturing a library");
    }
    Captured(const Captured&) = delete;
    ~Captured() {
      if (graph) a.GraphDestroy(graph);
    }
  };

  void build() {
    const Api& a = context_->api;
    a.check(a.GraphCreate(&graph_, 0), context_->spec.id + ": making a graph");
    CUgraphNode last = nullptr;
    for (size_t i = 0; i < prepared_.size(); ++i) {
      const Prepared& p = prepared_[i];
      if (p.empty) continue;
      const std::string doing =
          fmt::format("{}: adding kernel {} to a graph", context_->spec.id, p.kernel->name);
      const CUgraphNode* before = last ? &last : nullptr;
      if (p.kernel->call) {
        if (!capturing_)
          a.check(a.StreamCreate(&capturing_, kStreamNonBlocking), context_->spec.id + ": making a stream");
        const Captured child(*this, i);
        a.check(a.GraphAddChildGraphNode(&nodes_[i], graph_, before, last ? 1 : 0, child.graph), doing);
      } else {
        a.check(a.GraphAddKernelNode(&nodes_[i], graph_, before, last ? 1 : 0, &p.node), doing);
      }
      last = nodes_[i];
      changed_[i] = 0;
    }
    if (last)
      a.check(a.GraphInstantiateWithFlags(&exec_, graph_, 0), context_->spec.id + ": instantiating a graph");
  }
  void clear() {
    if (exec_) context_->api.GraphExecDestroy(exec_);  // waits for its last launch by itself
    if (graph_) context_->api.GraphDestroy(graph_);
    if (capturing_) context_->api.StreamDestroy_v2(capturing_);
    exec_ = nullptr;
    graph_ = nullptr;
    capturing_ = nullptr;
  }

  ContextPtr context_;
  std::vector<RecordedLaunch> launches_;  // keeps programs and buffers alive
  std::vector<Prepared> prepared_;
  std::vector<CUgraphNode> nodes_;  // nullptr where there is nothing to launch
  std::vector<char> changed_;
  CUgraph graph_ = nullptr;
  CUgraphExec exec_ = nullptr;
  CUstream capturing_ = nullptr;  // only where a library is called
};

class CudaStream : public Stream {
 public:
  CudaStream(ContextPtr context, CUstream handle, bool owned)
      : context_(std::move(context)), handle_(handle), owned_(owned) {}
  ~CudaStream() override {
    if (context_->api.CtxPushCurrent_v2(context_->handle) != kCuSuccess) return;
    context_->api.StreamSynchronize(handle_);
    if (owned_) context_->api.StreamDestroy_v2(handle_);
    CUcontext popped = nullptr;
    context_->api.CtxPopCurrent_v2(&popped);
  }

  void copy_to_device(const BufferSpan& to, std::span<const std::byte> from) override {
    same_size(to.bytes, from.size());
    if (from.empty()) return;
    const Use use(*context_);
    check(api().MemcpyHtoDAsync_v2(address(*context_, to), from.data(), from.size(), handle_),
          "copying to the device", from.size());
    // The driver stages pageable memory before it returns; pinned memory it reads later.
    unsigned type = 0;  // stays 0 for memory that the driver does not know
    int asked = kPointerMemoryType;
    void* answer = &type;
    const bool pinned = api().PointerGetAttributes(
                            1, &asked, &answer, reinterpret_cast<CUdeviceptr>(from.data())) == kCuSuccess &&
                        type == kMemoryTypeHost;
    if (pinned) check(api().StreamSynchronize(handle_), "copying to the device", from.size());
  }
  void copy_to_host(std::span<std::byte> to, const BufferSpan& from) override {
    same_size(from.bytes, to.size());
    const Use use(*context_);
    if (!to.empty())
      check(api().MemcpyDtoHAsync_v2(to.data(), address(*context_, from), to.size(), handle_),
            "copying to the host", to.size());
    check(api().StreamSynchronize(handle_), "copying to the host", to.size());
  }
  void copy(const BufferSpan& to, const BufferSpan& from) override {
    same_size(to.bytes, from.bytes);
    if (from.bytes == 0) return;
    const Use use(*context_);
    check(api().MemcpyDtoDAsync_v2(address(*context_, to), address(*context_, from), from.bytes, handle_),
          "copying on the device", from.bytes);
  }
  void fill(const BufferSpan& to, std::byte value) override {
    if (to.bytes == 0) return;
    const Use use(*context_);
    check(api().MemsetD8Async(address(*context_, to), static_cast<unsigned char>(value), to.bytes, handle_),
          "filling", to.bytes);
  }
  void launch(const RecordedLaunch& launch) override {
    Prepared p(*context_, launch);
    if (p.empty) return;
    const Use use(*context_);
    p.enqueue(*context_, handle_);
  }
  std::unique_ptr<Replay> record(std::vector<RecordedLaunch> launches) override {
    return std::make_unique<CudaReplay>(context_, std::move(launches));
  }
  void replay(Replay& replay) override {
    auto* recorded = dynamic_cast<CudaReplay*>(&replay);
    if (!recorded) throw Error(Code::kInternal, "replaying a record of another back end");
    const Use use(*context_);
    recorded->launch(handle_);
  }
  std::unique_ptr<Event> record_event() override { return std::make_unique<CudaEvent>(context_, handle_); }
  void synchronize() override {
    const Use use(*context_);
    const CUresult code = api().StreamSynchronize(handle_);
    if (code != kCuSuccess)
      throw Error(Code::kLaunchFailed, context_->spec.id + ": waiting for the device: " + api().error(code));
  }

 private:
  const Api& api() const { return context_->api; }
  void check(CUresult code, const char* doing, size_t bytes) const {
    if (code != kCuSuccess)
      api().check(code, fmt::format("{}: {}, {} bytes", context_->spec.id, doing, bytes));
  }
  static void same_size(size_t device, size_t host) {
    if (device != host)
      throw Error(Code::kInternal, fmt::format("a copy of {} bytes with a span of {}", host, device));
  }

  ContextPtr context_;
  CUstream handle_;
  bool owned_;
};

}  // namespace

std::unique_ptr<Stream> make_stream(const ContextPtr& context, void* native) {
  if (native) return std::make_unique<CudaStream>(context, static_cast<CUstream>(native), false);
  const Use use(*context);
  CUstream stream = nullptr;
  context->api.check(context->api.StreamCreate(&stream, kStreamNonBlocking),
                     context->spec.id + ": making a stream");
  return std::make_unique<CudaStream>(context, stream, true);
}

}  // namespace thrice::backend::cuda
