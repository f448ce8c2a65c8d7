#include "backend/opencl/device.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <fstream>

#include "backend/opencl/buffer.h"
#include "backend/opencl/program.h"
#include "backend/opencl/stream.h"

namespace thrice::backend::opencl {
namespace {

template <class T>
T number(const Api& a, cl_device_id device, cl_uint what, T otherwise) {
  T value{};
  return a.GetDeviceInfo(device, what, sizeof(value), &value, nullptr) == kClSuccess ? value : otherwise;
}

std::string text(const Api& a, cl_device_id device, cl_uint what) {
  size_t bytes = 0;
  if (a.GetDeviceInfo(device, what, 0, nullptr, &bytes) != kClSuccess || bytes == 0) return {};
  std::string value(bytes, '\0');
  if (a.GetDeviceInfo(device, what, bytes, value.data(), nullptr) != kClSuccess) return {};
  while (!value.empty() && (value.back() == '\0' || value.back() == ' ')) value.pop_back();
  return value;
}

struct Found {
  cl_platform_id platform;
  cl_device_id device;
  bool is_cpu;
};

std::vector<Found> find_devices(const Api& a, std::string& reason) {
  cl_uint count = 0;
  const cl_int code = a.GetPlatformIDs(0, nullptr, &count);
  if (code != kClSuccess || count == 0) {
    reason = "no OpenCL platform; install a device's OpenCL driver, or pocl-opencl-icd for the CPU";
    return {};
  }
  std::vector<cl_platform_id> platforms(count);
  check(a.GetPlatformIDs(count, platforms.data(), nullptr), "listing OpenCL platforms");
  std::vector<Found> found;
  for (cl_platform_id platform : platforms) {
    cl_uint devices = 0;
    if (a.GetDeviceIDs(platform, kDeviceTypeAll, 0, nullptr, &devices) != kClSuccess || devices == 0)
      continue;
    std::vector<cl_device_id> ids(devices);
    if (a.GetDeviceIDs(platform, kDeviceTypeAll, devices, ids.data(), nullptr) != kClSuccess) continue;
    for (cl_device_id id : ids) {
      if (!number<cl_bool>(a, id, kDeviceAvailable, 0)) continue;
      // Spans begin at multiples of kAlignment; a device that wants more would refuse them.
      if (number<cl_uint>(a, id, kDeviceMemBaseAddrAlign, 0) > 8 * kAlignment) continue;
      found.push_back({platform, id, (number<cl_bitfield>(a, id, kDeviceType, 0) & kDeviceTypeCpu) != 0});
    }
  }
  if (found.empty()) reason = "OpenCL is installed, but no platform offers a device that is available";
  std::stable_partition(found.begin(), found.end(), [](const Found& f) { return !f.is_cpu; });
  return found;
}

target::DeviceSpec describe(const Api& a, const Found& f, size_t index) {
  const auto wide = [&](cl_uint what) {
    return static_cast<int64_t>(std::min<cl_ulong>(number<cl_ulong>(a, f.device, what, 0), INT64_MAX));
  };
  target::DeviceSpec spec;
  spec.id = fmt::format("opencl:{}", index);
  spec.api = target::Api::kOpenCL;
  spec.name = text(a, f.device, kDeviceName);
  spec.driver = text(a, f.device, kDeviceVersion) + " driver " + text(a, f.device, kDriverVersion);
  spec.architecture = spec.name + " | " + spec.driver;
  spec.is_cpu = f.is_cpu;
  spec.compute_units = static_cast<int>(number<cl_uint>(a, f.device, kDeviceMaxComputeUnits, 1));
  const auto threads = static_cast<int64_t>(number<size_t>(a, f.device, kDeviceMaxWorkGroupSize, 1));
  spec.max_threads_per_block = static_cast<int>(std::min<int64_t>(spec.max_threads_per_block, threads));
  const int64_t local = wide(kDeviceLocalMemSize);
  if (local > 0) spec.max_shared_bytes = std::min(spec.max_shared_bytes, local);
  spec.max_alloc_bytes = wide(kDeviceMaxMemAllocSize);
  spec.memory_bytes = wide(kDeviceGlobalMemSize);
  spec.l2_bytes = wide(kDeviceGlobalMemCacheSize);
  if (f.is_cpu)
    spec.warp_size =
        std::max(1, static_cast<int>(number<cl_uint>(a, f.device, kDevicePreferredVectorWidthFloat, 4)));
  const std::string extensions = " " + text(a, f.device, kDeviceExtensions) + " ";
  const auto has = [&](const char* name) {
    return extensions.find(fmt::format(" {} ", name)) != std::string::npos;
  };
  spec.has_f64 = number<cl_bitfield>(a, f.device, kDeviceDoubleFpConfig, 0) != 0 && has("cl_khr_fp64");
  spec.has_f16_arithmetic = has("cl_khr_fp16");
  spec.has_int64_atomics = has("cl_khr_int64_base_atomics");
  return spec;
}

class ClDeviceHandle : public Device {
 public:
  explicit ClDeviceHandle(ContextPtr context) : context_(std::move(context)), compiler_(context_) {
    can_compile_ = number<cl_bool>(context_->api, context_->device, kDeviceCompilerAvailable, 0) != 0;
  }
  const target::DeviceSpec& spec() const override { return context_->spec; }
  BufferPtr allocate(size_t bytes) override { return opencl::allocate(context_, bytes); }
  BufferPtr allocate_fenced(size_t bytes) override { return opencl::allocate_fenced(context_, bytes); }
  BufferPtr wrap(void* native, size_t bytes) override { return opencl::wrap(context_, native, bytes); }
  std::unique_ptr<Stream> make_stream(void* native) override { return opencl::make_stream(context_, native); }
  ProgramPtr load(const artifact::KernelBinary& binary, const std::vector<std::string>& kernels) override {
    return compiler_.load(binary, kernels);
  }
  Compiler* compiler() override { return can_compile_ ? &compiler_ : nullptr; }
  int64_t free_memory_bytes() override {
    if (!context_->spec.is_cpu) return -1;  // OpenCL 1.2 does not tell
    std::ifstream file("/proc/meminfo");
    for (std::string line; std::getline(file, line);)
      if (line.rfind("MemAvailable:", 0) == 0) return std::stoll(line.substr(13)) * 1024;
    return -1;
  }

 private:
  ContextPtr context_;
  ClCompiler compiler_;
  bool can_compile_;
};

}  // namespace

BackendReport report() {
  BackendReport r;
  r.name = "opencl";
  const Api* a = find_api(&r.reason);
  if (!a) return r;
  const std::vector<Found> found = find_devices(*a, r.reason);
  for (size_t i = 0; i < found.size(); ++i) r.devices.push_back(describe(*a, found[i], i));
  r.available = !found.empty();
  return r;
}

DevicePtr open(int index) {
  const Api& a = api();
  std::string reason;
  const std::vector<Found> found = find_devices(a, reason);
  if (found.empty()) throw Error(Code::kNotFound, "opencl: " + reason);
  if (index < 0 || static_cast<size_t>(index) >= found.size())
    throw Error(Code::kNotFound, fmt::format("opencl:{} is not there; there are opencl:0 to opencl:{}", index,
                                             found.size() - 1));
  const Found& f = found[static_cast<size_t>(index)];
  auto context = std::make_shared<Context>(a);
  context->device = f.device;
  context->spec = describe(a, f, static_cast<size_t>(index));
  context->correct_divide =
      (number<cl_bitfield>(a, f.device, kDeviceSingleFpConfig, 0) & kFpCorrectlyRoundedDivideSqrt) != 0;
  const cl_properties properties[] = {kContextPlatform, reinterpret_cast<cl_properties>(f.platform), 0};
  cl_int code = kClSuccess;
  context->handle = a.CreateContext(properties, 1, &f.device, nullptr, nullptr, &code);
  check(code, context->spec.id + ": making a context");
  context->empty = a.CreateBuffer(context->handle, kMemReadWrite, kAlignment, nullptr, &code);
  check(code, context->spec.id + ": allocating the stand-in of empty arguments");
  return std::make_shared<ClDeviceHandle>(context);
}

}  // namespace thrice::backend::opencl
