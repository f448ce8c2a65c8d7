// The five small interfaces a device offers: Device, Buffer, Program, Stream (with Event), Compiler. OpenCL,
// null and CUDA stand behind them alike.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "artifact/kernel.h"
#include "target/device_spec.h"

namespace thrice::backend {

// Device memory. Freed by its destructor, which may wait for work that uses it.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual size_t bytes() const = 0;
  virtual void* native() const = 0;  // cl_mem, or a CUdeviceptr as a pointer
};
using BufferPtr = std::shared_ptr<Buffer>;

// A part of a buffer as kernels see it. Offsets are multiples of kAlignment.
struct BufferSpan {
  BufferPtr buffer;
  size_t offset = 0, bytes = 0;
};
constexpr size_t kAlignment = 512;  // bytes: CUDA's allocations are aligned so, and it is the largest
                                    // CL_DEVICE_MEM_BASE_ADDR_ALIGN known (NVIDIA's OpenCL: 4096 bits)

constexpr size_t kFenceAlignment = 64;  // bytes: the widest vector that a kernel may load at once

// A loaded program; kernels by index of KernelSource::kernels.
class Program {
 public:
  virtual ~Program() = default;
  struct Resources {
    int registers = -1, spill_bytes = -1,
        static_shared_bytes = -1;  // the largest of any kernel; -1: not told
  };
  virtual Resources resources() const { return {}; }
};
using ProgramPtr = std::shared_ptr<Program>;

class Event {
 public:
  virtual ~Event() = default;
  virtual void wait() = 0;
  virtual double microseconds_since(
      const Event& earlier) = 0;  // device time between two recorded points; waits for both
};

// A recorded list of launches that is replayed with one call (CUDA graph; a plain list elsewhere).
struct RecordedLaunch {
  ProgramPtr program;
  artifact::Launch launch;
  std::vector<BufferSpan> buffers;  // in argument order; a span of zero bytes may have no buffer
  BufferSpan extents;               // where the launch's integers lie in the parameter block: the caller has
                                    // put them there. A multiple of kAlignment like every span, since OpenCL
                                    // 1.2 has no pointer offsets. May be empty when there are none
};
class Replay {
 public:
  virtual ~Replay() = default;
  // Exchanges the buffer that argument `argument` of launch `index` refers to (an input or output of the
  // caller).
  virtual void set_buffer(size_t index, size_t argument, const BufferSpan& span) = 0;
};

// An in-order queue. One thread at a time.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void copy_to_device(const BufferSpan& to,
                              std::span<const std::byte> from) = 0;  // `from` may be reused on return
  virtual void copy_to_host(std::span<std::byte> to, const BufferSpan& from) = 0;  // waits
  virtual void copy(const BufferSpan& to, const BufferSpan& from) = 0;
  virtual void fill(const BufferSpan& to, std::byte value) = 0;
  virtual void launch(const RecordedLaunch& launch) = 0;  // throws kLaunchFailed
  virtual std::unique_ptr<Replay> record(std::vector<RecordedLaunch> launches) = 0;
  virtual void replay(Replay& replay) = 0;
  virtual std::unique_ptr<Event> record_event() = 0;
  virtual void synchronize() = 0;  // throws kLaunchFailed when something before failed
};

class Compiler {
 public:
  virtual ~Compiler() = default;
  virtual artifact::KernelBinary compile(
      const artifact::KernelSource& source) = 0;  // throws kCompileFailed with the log's first lines
  // As compile, but what comes back is the driver's own binary, for a release. Where compile() keeps the text
  // because the driver builds faster from it (PoCL: 0.07 s against 0.4 s a program), this is slower.
  virtual artifact::KernelBinary compile_to_ship(const artifact::KernelSource& source) {
    return compile(source);
  }
  virtual std::string version() const = 0;  // part of every cache key
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const target::DeviceSpec& spec() const = 0;
  virtual BufferPtr allocate(size_t bytes) = 0;  // throws kOutOfMemory with the number of bytes
  // As allocate, but the buffer's end, rounded up to kFenceAlignment, is followed by memory that is not
  // mapped: whoever reads or writes there faults. bytes() is the rounded number. nullptr: not offered here.
  virtual BufferPtr allocate_fenced(size_t bytes) {
    (void)bytes;
    return nullptr;
  }
  virtual BufferPtr wrap(void* native, size_t bytes) = 0;  // the caller's memory; not freed by us
  virtual std::unique_ptr<Stream> make_stream(void* native = nullptr) = 0;  // nullptr: an own one
  virtual ProgramPtr load(
      const artifact::KernelBinary& binary,
      const std::vector<std::string>& kernels) = 0;  // throws kCorrupt, kUnsupported (another device's)
  virtual Compiler* compiler() = 0;                  // nullptr where there is none: releases still run
  virtual int64_t free_memory_bytes() = 0;           // -1 = not known
};
using DevicePtr = std::shared_ptr<Device>;

// A back end that is missing is a line in `thrice devices`, never an error at start.
struct BackendReport {
  std::string name;  // "opencl", "cuda", "null"
  bool available = false;
  std::string reason;  // why not, and what to do
  std::map<std::string, std::string>
      without;  // optional libraries that an available one lacks, and why: "cuDNN"
  std::vector<target::DeviceSpec> devices;
};
std::vector<BackendReport> list_backends();  // in the order of preference: cuda, opencl, null
// Builds CUDA C++ into a cubin for an architecture ("sm_90a") without a card. Throws kNotFound where there is
// no NVRTC. The result may be used by one thread at a time.
std::unique_ptr<Compiler> cross_compiler(const std::string& architecture);
// Where a driver that keeps compiled kernels itself (PoCL) puts them. Call before anything else here; a
// POCL_CACHE_DIR of the user wins. Default: thrice/pocl below $XDG_CACHE_HOME or ~/.cache.
void set_driver_cache(const std::string& folder);
// "opencl:0", "null:0", "cuda:0", or "" = the best found (cuda, else opencl, else null). Throws kNotFound
// with what there is.
DevicePtr open_device(const std::string& id);

}  // namespace thrice::backend
