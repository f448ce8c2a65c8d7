#include "backend/null/device.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <chrono>
#include <cstring>
#include <new>

namespace thrice::backend::null {
namespace {

constexpr int64_t kMemoryBytes = int64_t{1}
                                 << 34;  // so that limits of memory have something to be tested against

target::DeviceSpec describe() {
  target::DeviceSpec spec;
  spec.id = "null:0";
  spec.name = "null device";
  spec.driver = "none";
  spec.architecture = "null";
  spec.is_cpu = true;
  spec.max_alloc_bytes = spec.memory_bytes = kMemoryBytes;
  spec.warp_size = 8;
  spec.has_f64 = true;
  return spec;
}

class HostBuffer : public Buffer {
 public:
  HostBuffer(std::byte* data, size_t bytes, bool owned) : data_(data), bytes_(bytes), owned_(owned) {}
  ~HostBuffer() override {
    if (owned_) ::operator delete[](data_, std::align_val_t{kAlignment});
  }
  size_t bytes() const override { return bytes_; }
  void* native() const override { return data_; }

 private:
  std::byte* data_;
  size_t bytes_;
  bool owned_;
};

class NullProgram : public Program {
 public:
  explicit NullProgram(std::vector<std::string> names) : kernels(std::move(names)) {}
  std::vector<std::string> kernels;
};

class NullEvent : public Event {
 public:
  void wait() override {}
  double microseconds_since(const Event& earlier) override {
    return std::chrono::duration<double, std::micro>(at_ - static_cast<const NullEvent&>(earlier).at_)
        .count();
  }

 private:
  std::chrono::steady_clock::time_point at_ = std::chrono::steady_clock::now();
};

std::byte* checked(const BufferSpan& span) {
  if (span.bytes == 0) return nullptr;
  if (!span.buffer || !dynamic_cast<HostBuffer*>(span.buffer.get()))
    throw Error(Code::kInternal, "a span without a buffer of the null device");
  if (span.offset > span.buffer->bytes() || span.bytes > span.buffer->bytes() - span.offset)
    throw Error(Code::kInternal, fmt::format("bytes {} to {} of a buffer of {}", span.offset,
                                             span.offset + span.bytes, span.buffer->bytes()));
  return static_cast<std::byte*>(span.buffer->native()) + span.offset;
}

// Checks all that a real device would check, and launches nothing.
void check_launch(const RecordedLaunch& launch) {
  const auto* program = dynamic_cast<const NullProgram*>(launch.program.get());
  if (!program) throw Error(Code::kInternal, "launching a program that is not of the null device");
  if (launch.launch.kernel < 0 || static_cast<size_t>(launch.launch.kernel) >= program->kernels.size())
    throw Error(Code::kInternal,
                fmt::format("kernel {} of a program with {}", launch.launch.kernel, program->kernels.size()));
  const target::DeviceSpec limits = describe();
  int64_t threads = 1;
  for (size_t i = 0; i < 3; ++i) {
    if (launch.launch.grid[i] < 0 || launch.launch.block[i] < 1)
      throw Error(Code::kLaunchFailed,
                  fmt::format("null:0: a grid of {} blocks of {} threads on axis {} is out of range",
                              launch.launch.grid[i], launch.launch.block[i], i));
    threads *= launch.launch.block[i];
  }
  if (threads > limits.max_threads_per_block || launch.launch.dynamic_shared_bytes > limits.max_shared_bytes)
    throw Error(Code::kLaunchFailed,
                fmt::format("null:0: {} threads and {} bytes of shared memory a block are over the limits",
                            threads, launch.launch.dynamic_shared_bytes));
  for (const BufferSpan& span : launch.buffers) checked(span);
  checked(launch.extents);
}

class NullReplay : public Replay {
 public:
  explicit NullReplay(std::vector<RecordedLaunch> launches) : launches_(std::move(launches)) {
    for (const RecordedLaunch& launch : launches_) check_launch(launch);
  }
  void set_buffer(size_t index, size_t argument, const BufferSpan& span) override {
    if (index >= launches_.size() || argument >= launches_[index].buffers.size())
      throw Error(Code::kInternal, fmt::format("no argument {} of recorded launch {}", argument, index));
    checked(span);
    launches_[index].buffers[argument] = span;
  }

 private:
  std::vector<RecordedLaunch> launches_;
};

void same_size(size_t device, size_t host) {
  if (device != host)
    throw Error(Code::kInternal, fmt::format("a copy of {} bytes with a span of {}", host, device));
}

class NullStream : public Stream {
 public:
  void copy_to_device(const BufferSpan& to, std::span<const std::byte> from) override {
    same_size(to.bytes, from.size());
    if (!from.empty()) std::memcpy(checked(to), from.data(), from.size());
  }
  void copy_to_host(std::span<std::byte> to, const BufferSpan& from) override {
    same_size(from.bytes, to.size());
    if (!to.empty()) std::memcpy(to.data(), checked(from), to.size());
  }
  void copy(const BufferSpan& to, const BufferSpan& from) override {
    same_size(to.bytes, from.bytes);
    if (from.bytes) std::memmove(checked(to), checked(from), from.bytes);
  }
  void fill(const BufferSpan& to, std::byte value) override {
    if (to.bytes) std::memset(checked(to), static_cast<int>(value), to.bytes);
  }
  void launch(const RecordedLaunch& launch) override { check_launch(launch); }
  std::unique_ptr<Replay> record(std::vector<RecordedLaunch> launches) override {
    return std::make_unique<NullReplay>(std::move(launches));
  }
  void replay(Replay&) override {}
  std::unique_ptr<Event> record_event() override { return std::make_unique<NullEvent>(); }
  void synchronize() override {}
};

class NullCompiler : public Compiler {
 public:
  artifact::KernelBinary compile(const artifact::KernelSource& source) override {
    artifact::KernelBinary binary;
    binary.format = artifact::BinaryFormat::kNone;
    binary.architecture = "null";
    binary.key = source.key;
    const auto* text = reinterpret_cast<const std::byte*>(source.text.data());
    binary.bytes.assign(text, text + source.text.size());
    return binary;
  }
  std::string version() const override { return "null"; }
};

class NullDevice : public Device {
 public:
  const target::DeviceSpec& spec() const override { return spec_; }
  BufferPtr allocate(size_t bytes) override {
    const size_t held = bytes ? bytes : 1;
    void* data = bytes > static_cast<size_t>(kMemoryBytes)
                     ? nullptr
                     : ::operator new[](held, std::align_val_t{kAlignment}, std::nothrow);
    if (!data) throw Error(Code::kOutOfMemory, fmt::format("null:0: allocating {} bytes", bytes));
    std::memset(data, 0, held);
    return std::make_shared<HostBuffer>(static_cast<std::byte*>(data), bytes, true);
  }
  BufferPtr wrap(void* native, size_t bytes) override {
    return std::make_shared<HostBuffer>(static_cast<std::byte*>(native), bytes, false);
  }
  std::unique_ptr<Stream> make_stream(void*) override { return std::make_unique<NullStream>(); }
  ProgramPtr load(const artifact::KernelBinary& binary, const std::vector<std::string>& kernels) override {
    if (binary.format != artifact::BinaryFormat::kNone || binary.architecture != "null")
      throw Error(Code::kUnsupported, "null:0: the program was built for '" + binary.architecture + "'");
    return std::make_shared<NullProgram>(kernels);
  }
  Compiler* compiler() override { return &compiler_; }
  int64_t free_memory_bytes() override { return kMemoryBytes; }

 private:
  target::DeviceSpec spec_ = describe();
  NullCompiler compiler_;
};

}  // namespace

BackendReport report() {
  BackendReport r;
  r.name = "null";
  r.available = true;
  r.devices.push_back(describe());
  return r;
}

DevicePtr open(int index) {
  if (index != 0) throw Error(Code::kNotFound, fmt::format("null:{} is not there; there is null:0", index));
  return std::make_shared<NullDevice>();
}

}  // namespace thrice::backend::null
