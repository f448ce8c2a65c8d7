// Source: NVML API reference (signatures, structures of version 1 and 2, values of the constants).
#include "hardware/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace thrice::hardware {
namespace {

using Handle = struct NvmlDevice*;
using Result = int;  // 0 = success
constexpr Result kSuccess = 0;
constexpr unsigned kTemperatureGpu = 0, kClockSm = 1, kClockMemory = 2;
constexpr unsigned kMostProcesses = 64;

struct Utilization {
  unsigned gpu, memory;  // percent
};
struct Memory {
  unsigned long long total, free, used;
};
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance, compute_instance;
};

struct Functions {
  Result (*Init_v2)() = nullptr;
  Result (*Shutdown)() = nullptr;
  Result (*DeviceGetCount_v2)(unsigned*) = nullptr;
  Result (*DeviceGetHandleByIndex_v2)(unsigned, Handle*) = nullptr;
  // The rest may be missing in an old driver: what it would tell is unknown then.
  Result (*DeviceGetName)(Handle, char*, unsigned) = nullptr;
  Result (*DeviceGetTemperature)(Handle, unsigned, unsigned*) = nullptr;
  Result (*DeviceGetClockInfo)(Handle, unsigned, unsigned*) = nullptr;
  Result (*DeviceGetPowerUsage)(Handle, unsigned*) = nullptr;
  Result (*DeviceGetUtilizationRates)(Handle, Utilization*) = nullptr;
  Result (*DeviceGetMemoryInfo)(Handle, Memory*) = nullptr;
  Result (*DeviceGetCurrentClocksThrottleReasons)(Handle, unsigned long long*) = nullptr;
  Result (*DeviceGetComputeRunningProcesses_v3)(Handle, unsigned*, ProcessInfo*) = nullptr;
};

class LoadedNvml : public Nvml {
 public:
  explicit LoadedNvml(const Functions& functions) : f_(functions) {}
  ~LoadedNvml() override { f_.Shutdown(); }

  std::vector<DeviceState> read() override {
    unsigned count = 0;
    if (f_.DeviceGetCount_v2(&count) != kSuccess) return {};
    std::vector<DeviceState> states;
    for (unsigned i = 0; i < count; ++i) {
      Handle device = nullptr;
      if (f_.DeviceGetHandleByIndex_v2(i, &device) != kSuccess) continue;
      states.push_back(read_one(i, device));
    }
    return states;
  }

 private:
  DeviceState read_one(unsigned index, Handle device) const {
    DeviceState s;
    s.id = fmt::format("cuda:{}", index);
    char name[96] = {};
    if (f_.DeviceGetName && f_.DeviceGetName(device, name, sizeof(name)) == kSuccess) s.name = name;
    unsigned value = 0;
    if (f_.DeviceGetTemperature && f_.DeviceGetTemperature(device, kTemperatureGpu, &value) == kSuccess)
      s.temperature_c = value;
    if (f_.DeviceGetClockInfo && f_.DeviceGetClockInfo(device, kClockSm, &value) == kSuccess)
      s.sm_clock_mhz = value;
    if (f_.DeviceGetClockInfo && f_.DeviceGetClockInfo(device, kClockMemory, &value) == kSuccess)
      s.memory_clock_mhz = value;
    if (f_.DeviceGetPowerUsage && f_.DeviceGetPowerUsage(device, &value) == kSuccess)
      s.power_w = value * 1e-3;
    Utilization used{};
    if (f_.DeviceGetUtilizationRates && f_.DeviceGetUtilizationRates(device, &used) == kSuccess)
      s.busy = used.gpu * 0.01;
    Memory memory{};
    if (f_.DeviceGetMemoryInfo && f_.DeviceGetMemoryInfo(device, &memory) == kSuccess) {
      s.memory_total_bytes = static_cast<int64_t>(memory.total);
      s.memory_free_bytes = static_cast<int64_t>(memory.free);
    }
    unsigned long long reasons = 0;
    if (f_.DeviceGetCurrentClocksThrottleReasons &&
        f_.DeviceGetCurrentClocksThrottleReasons(device, &reasons) == kSuccess)
      s.throttle_reasons = throttle_words(reasons);
    ProcessInfo processes[kMostProcesses];
    unsigned held = kMostProcesses;
    if (f_.DeviceGetComputeRunningProcesses_v3 &&
        f_.DeviceGetComputeRunningProcesses_v3(device, &held, processes) == kSuccess)
      for (unsigned p = 0; p < held && p < kMostProcesses; ++p) {
        const bool told = processes[p].used_memory != ~0ull;  // not available inside a container or MIG slice
        s.processes.push_back({static_cast<int64_t>(processes[p].pid),
                               told ? static_cast<int64_t>(processes[p].used_memory) : -1});
      }
    return s;
  }

  Functions f_;
};

template <class F>
void find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
}

}  // namespace

std::unique_ptr<Nvml> Nvml::open(std::string* reason) {
  void* library =
      dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);  // stays open: drivers do not unload well
  if (!library) {
    if (reason) *reason = "libnvidia-ml.so.1 not found; it comes with the NVIDIA driver";
    return nullptr;
  }
  Functions f;
#define THRICE_NVML_FIND(name) find(library, "nvml" #name, f.name)
  THRICE_NVML_FIND(Init_v2);
  THRICE_NVML_FIND(Shutdown);
  THRICE_NVML_FIND(DeviceGetCount_v2);
  THRICE_NVML_FIND(DeviceGetHandleByIndex_v2);
  THRICE_NVML_FIND(DeviceGetName);
  THRICE_NVML_FIND(DeviceGetTemperature);
  THRICE_NVML_FIND(DeviceGetClockInfo);
  THRICE_NVML_FIND(DeviceGetPowerUsage);
  THRICE_NVML_FIND(DeviceGetUtilizationRates);
  THRICE_NVML_FIND(DeviceGetMemoryInfo);
  THRICE_NVML_FIND(DeviceGetCurrentClocksThrottleReasons);
  THRICE_NVML_FIND(DeviceGetComputeRunningProcesses_v3);
#undef THRICE_NVML_FIND
  if (!f.Init_v2 || !f.Shutdown || !f.DeviceGetCount_v2 || !f.DeviceGetHandleByIndex_v2) {
    if (reason) *reason = "libnvidia-ml.so.1 lacks functions of driver 525; update the NVIDIA driver";
    return nullptr;
  }
  const Result code = f.Init_v2();
  if (code != kSuccess) {
    if (reason)
      *reason = fmt::format("NVML does not start (code {}): no card, or driver and library differ", code);
    return nullptr;
  }
  return std::make_unique<LoadedNvml>(f);
}

std::vector<std::string> throttle_words(uint64_t bits) {
  constexpr struct {
    uint64_t bit;
    const char* words;
  } kReasons[] = {{0x4, "power cap"},
                  {0x8, "hardware slowdown"},
                  {0x20, "hot (software limit)"},
                  {0x40, "hot (hardware limit)"},
                  {0x80, "external power brake"},
                  {0x10, "sync boost group"}};
  std::vector<std::string> words;
  for (const auto& reason : kReasons)
    if (bits & reason.bit) words.emplace_back(reason.words);
  return words;
}

}  // namespace thrice::hardware
