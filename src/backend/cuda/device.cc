#include "backend/cuda/device.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <fstream>

#include "backend/cuda/buffer.h"
#include "backend/cuda/cublaslt.h"
#include "backend/cuda/cudnn.h"
#include "backend/cuda/nvrtc.h"
#include "backend/cuda/program.h"
#include "backend/cuda/stream.h"

namespace thrice::backend::cuda {
namespace {

int attribute(const Api& a, CUdevice device, int what) {
  int value = 0;
  return a.DeviceGetAttribute(&value, what, device) == kCuSuccess ? value : 0;
}

// Cards from Hopper on have instructions that only code for exactly their architecture may use ("a").
std::string architecture_of(int major, int minor) {
  return fmt::format("sm_{}{}{}", major, minor, major >= 9 ? "a" : "");
}

// As nvidia-smi writes it. A slice (MIG) is told from a card by its name, which ends in its profile.
std::string uuid_of(const Api& a, CUdevice device, const std::string& name) {
  unsigned char b[16] = {};
  if (a.DeviceGetUuid_v2(b, device) != kCuSuccess) return "";
  std::string text = name.find(" MIG ") != std::string::npos ? "MIG" : "GPU";
  for (size_t i = 0; i < sizeof(b); ++i)
    text += fmt::format("{}{:02x}", i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", b[i]);
  return text;
}

// What a datasheet says, from the clocks and widths that the driver tells. Memory moves two words a clock; a
// multiprocessor has 64 float32 units on sm_80 and 128 on all others from there on.
void add_peaks(const Api& a, CUdevice device, target::DeviceSpec& spec) {
  const double memory_khz = attribute(a, device, kMemoryClockKhz),
               bus_bits = attribute(a, device, kMemoryBusBits), khz = attribute(a, device, kClockKhz);
  if (memory_khz <= 0 || bus_bits <= 0 || khz <= 0) return;
  spec.bandwidth_gbs = 2 * memory_khz * 1e3 * bus_bits / 8 * 1e-9;
  const double units = spec.architecture == "sm_80" ? 64 : 128;
  spec.f32_gflops = 2 * units * spec.compute_units * khz * 1e3 * 1e-9;
  spec.peaks_source = "clocks and widths that the driver tells";
}

target::DeviceSpec describe(const Api& a, CUdevice device, int index) {
  target::DeviceSpec spec;
  spec.id = fmt::format("cuda:{}", index);
  spec.api = target::Api::kCuda;
  char name[128] = {};
  if (a.DeviceGetName(name, sizeof(name), device) == kCuSuccess) spec.name = name;
  spec.uuid = uuid_of(a, device, spec.name);
  int version = 0;
  a.DriverGetVersion(&version);
  std::string driver;
  std::ifstream("/sys/module/nvidia/version") >> driver;
  spec.driver =
      fmt::format("{}CUDA {}.{}", driver.empty() ? "" : driver + " ", version / 1000, version % 1000 / 10);
  spec.architecture = architecture_of(attribute(a, device, kComputeCapabilityMajor),
                                      attribute(a, device, kComputeCapabilityMinor));
  spec.compute_units = attribute(a, device, kMultiprocessorCount);
  spec.max_threads_per_block =
      std::min(spec.max_threads_per_block, attribute(a, device, kMaxThreadsPerBlock));
  size_t bytes = 0;
  if (a.DeviceTotalMem_v2(&bytes, device) == kCuSuccess) spec.memory_bytes = static_cast<int64_t>(bytes);
  spec.max_alloc_bytes = spec.memory_bytes;
  spec.l2_bytes = attribute(a, device, kL2CacheSize);
  spec.warp_size = attribute(a, device, kWarpSize);
  spec.registers_per_block = attribute(a, device, kMaxRegistersPerBlock);
  spec.optin_shared_bytes = attribute(a, device, kMaxSharedPerBlockOptin);
  spec.cublaslt = cublaslt_version(version);
  spec.cudnn = cudnn_version(version);
  spec.has_f64 = spec.has_f16_arithmetic = spec.has_int64_atomics = true;
  add_peaks(a, device, spec);
  return spec;
}

// NVRTC, and the registers and spills that the driver tells once the program is loaded.
class DeviceCompiler : public Compiler {
 public:
  explicit DeviceCompiler(ContextPtr context)
      : context_(std::move(context)), nvrtc_(make_nvrtc(context_->spec.architecture)) {}
  bool available() const { return nvrtc_ != nullptr; }
  std::string version() const override { return nvrtc_->version(); }
  artifact::KernelBinary compile(const artifact::KernelSource& source) override {
    artifact::KernelBinary binary = nvrtc_->compile(source);
    const auto program = cuda::load(context_, binary, source.kernels);
    const Program::Resources told = program->resources();
    binary.registers = told.registers;
    binary.spill_bytes = told.spill_bytes;
    binary.static_shared_bytes = std::max(binary.static_shared_bytes, told.static_shared_bytes);
    return binary;
  }

 private:
  ContextPtr context_;
  std::unique_ptr<Compiler> nvrtc_;
};

class CudaDevice : public Device {
 public:
  explicit CudaDevice(ContextPtr context) : context_(std::move(context)), compiler_(context_) {}
  const target::DeviceSpec& spec() const override { return context_->spec; }
  BufferPtr allocate(size_t bytes) override { return cuda::allocate(context_, bytes); }
  BufferPtr allocate_fenced(size_t bytes) override { return cuda::allocate_fenced(context_, bytes); }
  BufferPtr wrap(void* native, size_t bytes) override { return cuda::wrap(context_, native, bytes); }
  std::unique_ptr<Stream> make_stream(void* native) override { return cuda::make_stream(context_, native); }
  ProgramPtr load(const artifact::KernelBinary& binary, const std::vector<std::string>& kernels) override {
    return cuda::load(context_, binary, kernels);
  }
  Compiler* compiler() override { return compiler_.available() ? &compiler_ : nullptr; }
  int64_t free_memory_bytes() override {
    const Use use(*context_);
    size_t free = 0, total = 0;
    return context_->api.MemGetInfo_v2(&free, &total) == kCuSuccess ? static_cast<int64_t>(free) : -1;
  }

 private:
  ContextPtr context_;
  DeviceCompiler compiler_;
};

int count_devices(const Api& a) {
  int count = 0;
  return a.DeviceGetCount(&count) == kCuSuccess ? count : 0;
}

}  // namespace

BackendReport report() {
  BackendReport r;
  r.name = "cuda";
  const Api* a = find_api(&r.reason);
  if (!a) return r;
  const int count = count_devices(*a);
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    if (a->DeviceGet(&device, i) == kCuSuccess) r.devices.push_back(describe(*a, device, i));
  }
  r.available = !r.devices.empty();
  int version = 0;
  std::string missing;
  a->DriverGetVersion(&version);
  if (r.available && cublaslt_version(version, &missing).empty()) r.without["cuBLASLt"] = missing;
  if (r.available && cudnn_version(version, &missing).empty()) r.without["cuDNN"] = missing;
  r.reason = r.available ? nvrtc_missing() : "the NVIDIA driver is there, but shows no card";
  return r;
}

DevicePtr open(int index) {
  std::string reason;
  const Api* a = find_api(&reason);
  if (!a) throw Error(Code::kNotFound, "cuda: " + reason);
  CUdevice device = 0;
  if (index < 0 || index >= count_devices(*a) || a->DeviceGet(&device, index) != kCuSuccess)
    throw Error(Code::kNotFound,
                fmt::format("cuda:{} is not there; there are {} cards", index, count_devices(*a)));
  auto context = std::make_shared<Context>(*a);
  context->device = device;
  context->spec = describe(*a, device, index);
  context->shared_optin_bytes = attribute(*a, device, kMaxSharedPerBlockOptin);
  a->check(a->DevicePrimaryCtxRetain(&context->handle, device), context->spec.id + ": taking its context");
  const Use use(*context);
  a->check(a->MemAlloc_v2(&context->empty, kAlignment),
           context->spec.id + ": allocating the stand-in of empty arguments");
  return std::make_shared<CudaDevice>(context);
}

}  // namespace thrice::backend::cuda
