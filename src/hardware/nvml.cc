// Source: NVML API reference (signatures, structures of version 1 and 2, values of the constants).
#include "hardware/nvml.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>

#include "base/shared_library.h"

namespace thrice::hardware {
namespace {

using Handle = struct NvmlDevice*;
using Result = int;  // 0 = success
constexpr Result kSuccess = 0, kInsufficientSize = 7, kGpuIsLost = 15, kResetRequired = 16;
constexpr unsigned kTemperatureGpu = 0, kClockSm = 1, kClockMemory = 2;
constexpr unsigned kGpmSmUse = 2, kGpmVersion = 1, kGpmMostMetrics = 1024;

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
struct GpmMetric {
  unsigned id;
  Result result;
  double value;  // percent
  const char *short_name, *long_name, *unit;
};
using GpmSample = struct NvmlGpmSample*;
struct GpmMetrics {
  unsigned version, count;
  GpmSample first, second;
  GpmMetric metrics[kGpmMostMetrics];  // more than any version of the library has
};
struct GpmSupport {
  unsigned version, is_supported;
};

struct Functions {
  Result (*Init_v2)() = nullptr;
  Result (*Shutdown)() = nullptr;
  Result (*DeviceGetCount_v2)(unsigned*) = nullptr;
  Result (*DeviceGetHandleByIndex_v2)(unsigned, Handle*) = nullptr;
  // The rest may be missing in an old driver: what it would tell is unknown then.
  Result (*DeviceGetUUID)(Handle, char*, unsigned) = nullptr;
  Result (*DeviceGetName)(Handle, char*, unsigned) = nullptr;
  Result (*DeviceGetTemperature)(Handle, unsigned, unsigned*) = nullptr;
  Result (*DeviceGetClockInfo)(Handle, unsigned, unsigned*) = nullptr;
  Result (*DeviceGetPowerUsage)(Handle, unsigned*) = nullptr;
  Result (*DeviceGetEnforcedPowerLimit)(Handle, unsigned*) = nullptr;
  Result (*DeviceGetUtilizationRates)(Handle, Utilization*) = nullptr;
  Result (*DeviceGetMemoryInfo)(Handle, Memory*) = nullptr;
  Result (*DeviceGetCurrentClocksThrottleReasons)(Handle, unsigned long long*) = nullptr;
  Result (*DeviceGetComputeRunningProcesses_v3)(Handle, unsigned*, ProcessInfo*) = nullptr;
  Result (*GpmQueryDeviceSupport)(Handle, GpmSupport*) = nullptr;
  Result (*GpmSampleAlloc)(GpmSample*) = nullptr;
  Result (*GpmSampleFree)(GpmSample) = nullptr;
  Result (*GpmSampleGet)(Handle, GpmSample) = nullptr;
  Result (*GpmMetricsGet)(GpmMetrics*) = nullptr;
};

// Use of the SMs of one card between two looks at its counters. Cards before Hopper have none.
class SmUse {
 public:
  SmUse(const Functions& f, Handle device) : f_(f), device_(device) {
    GpmSupport support{kGpmVersion, 0};
    if (!f.GpmQueryDeviceSupport || !f.GpmSampleAlloc || !f.GpmSampleFree || !f.GpmSampleGet ||
        !f.GpmMetricsGet || f.GpmQueryDeviceSupport(device, &support) != kSuccess || !support.is_supported)
      return;
    if (f.GpmSampleAlloc(&before_) != kSuccess) before_ = nullptr;
    if (f.GpmSampleAlloc(&now_) != kSuccess) now_ = nullptr;
  }
  ~SmUse() {
    if (before_) f_.GpmSampleFree(before_);
    if (now_) f_.GpmSampleFree(now_);
  }
  SmUse(const SmUse&) = delete;
  SmUse& operator=(const SmUse&) = delete;

  double read() {
    if (!before_ || !now_) return kUnknown;
    std::swap(before_, now_);
    const bool had_one = has_one_;
    has_one_ = f_.GpmSampleGet(device_, now_) == kSuccess;
    if (!had_one || !has_one_) return kUnknown;
    const auto metrics = std::make_unique<GpmMetrics>();
    metrics->version = kGpmVersion;
    metrics->count = 1;
    metrics->first = before_;
    metrics->second = now_;
    metrics->metrics[0].id = kGpmSmUse;
    if (f_.GpmMetricsGet(metrics.get()) != kSuccess || metrics->metrics[0].result != kSuccess)
      return kUnknown;
    return std::clamp(metrics->metrics[0].value * 0.01, 0.0, 1.0);
  }

 private:
  const Functions& f_;
  Handle device_;
  GpmSample before_ = nullptr, now_ = nullptr;
  bool has_one_ = false;  // now_ holds a sample
};

// Readers of different threads take turns: two that ask for the counters' metrics at the same time end the
// process (nvmlGpmMetricsGet of driver 580 on an H200), though the library is said to be safe for threads.
std::mutex& turn() {
  static std::mutex one;
  return one;
}

class LoadedNvml : public Nvml {
 public:
  explicit LoadedNvml(const Functions& functions) : f_(functions) {}
  ~LoadedNvml() override {
    const std::lock_guard<std::mutex> lock(turn());
    sm_use_.clear();
    f_.Shutdown();
  }

  std::vector<DeviceState> read() override {
    const std::lock_guard<std::mutex> lock(turn());
    unsigned count = 0;
    if (f_.DeviceGetCount_v2(&count) != kSuccess) return {};
    std::vector<Handle> devices(count);
    std::vector<std::string> uuids(count), problems(count);
    for (unsigned i = 0; i < count; ++i) {
      const Result code = f_.DeviceGetHandleByIndex_v2(i, &devices[i]);
      if (code != kSuccess) {
        devices[i] = nullptr;
        problems[i] = problem_of(code);
        continue;
      }
      char uuid[96] = {};
      if (f_.DeviceGetUUID && f_.DeviceGetUUID(devices[i], uuid, sizeof(uuid)) == kSuccess) uuids[i] = uuid;
    }
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    std::vector<DeviceState> states;
    for (const size_t i :
         visible_cards(uuids, visible ? std::optional<std::string>(visible) : std::nullopt)) {
      DeviceState s;
      s.id = fmt::format("cuda:{}", states.size());
      s.uuid = uuids[i];
      s.problem = problems[i];
      if (devices[i]) read_one(devices[i], s);
      states.push_back(std::move(s));
    }
    return states;
  }

 private:
  static std::string problem_of(Result code) {
    if (code == kGpuIsLost) return "the card fell off the bus (NVML code 15); the machine must be restarted";
    if (code == kResetRequired) return "the card must be reset (NVML code 16)";
    return fmt::format("NVML gives no access to the card (code {})", code);
  }

  void read_one(Handle device, DeviceState& s) {
    char name[96] = {};
    if (f_.DeviceGetName && f_.DeviceGetName(device, name, sizeof(name)) == kSuccess) s.name = name;
    unsigned value = 0;
    if (f_.DeviceGetTemperature) {
      const Result code = f_.DeviceGetTemperature(device, kTemperatureGpu, &value);
      if (code == kSuccess) s.temperature_c = value;
      if (code == kGpuIsLost || code == kResetRequired) {
        s.problem = problem_of(code);  // nothing that else is told of it means anything
        return;
      }
    }
    if (f_.DeviceGetClockInfo && f_.DeviceGetClockInfo(device, kClockSm, &value) == kSuccess)
      s.sm_clock_mhz = value;
    if (f_.DeviceGetClockInfo && f_.DeviceGetClockInfo(device, kClockMemory, &value) == kSuccess)
      s.memory_clock_mhz = value;
    if (f_.DeviceGetPowerUsage && f_.DeviceGetPowerUsage(device, &value) == kSuccess)
      s.power_w = value * 1e-3;
    if (f_.DeviceGetEnforcedPowerLimit && f_.DeviceGetEnforcedPowerLimit(device, &value) == kSuccess)
      s.power_limit_w = value * 1e-3;
    Utilization used{};
    if (f_.DeviceGetUtilizationRates && f_.DeviceGetUtilizationRates(device, &used) == kSuccess) {
      s.busy = used.gpu * 0.01;
      s.memory_busy = used.memory * 0.01;
    }
    Memory memory{};
    if (f_.DeviceGetMemoryInfo && f_.DeviceGetMemoryInfo(device, &memory) == kSuccess) {
      s.memory_total_bytes = static_cast<int64_t>(memory.total);
      s.memory_free_bytes = static_cast<int64_t>(memory.free);
    }
    unsigned long long reasons = 0;
    if (f_.DeviceGetCurrentClocksThrottleReasons &&
        f_.DeviceGetCurrentClocksThrottleReasons(device, &reasons) == kSuccess)
      s.throttle_reasons = throttle_words(reasons);
    s.processes = processes_of(device);
    auto& counters = sm_use_[device];
    if (!counters) counters = std::make_unique<SmUse>(f_, device);
    s.sm_use = counters->read();
  }

  std::vector<Process> processes_of(Handle device) const {
    if (!f_.DeviceGetComputeRunningProcesses_v3) return {};
    std::vector<ProcessInfo> found(64);
    unsigned held = 0;
    Result code = kInsufficientSize;
    for (int attempt = 0; attempt < 3 && code == kInsufficientSize; ++attempt) {
      if (held >= found.size()) found.resize(held + 16);  // more may start meanwhile
      held = static_cast<unsigned>(found.size());
      code = f_.DeviceGetComputeRunningProcesses_v3(device, &held, found.data());
    }
    if (code != kSuccess || held > found.size()) return {};
    std::vector<Process> processes;
    for (unsigned p = 0; p < held; ++p) {
      const bool told = found[p].used_memory != ~0ull;  // not available inside a container or MIG slice
      processes.push_back(
          {static_cast<int64_t>(found[p].pid), told ? static_cast<int64_t>(found[p].used_memory) : -1});
    }
    return processes;
  }

  Functions f_;
  std::map<Handle, std::unique_ptr<SmUse>> sm_use_;
};

}  // namespace

std::unique_ptr<Nvml> Nvml::open(std::string* reason, const std::string& path) {
  const std::string file = path.empty() ? "libnvidia-ml.so.1" : path;
  SharedLibrary library(file);
  if (!library) {
    if (reason) *reason = file + " not found; it comes with the NVIDIA driver";
    return nullptr;
  }
  Functions f;
#define THRICE_NVML_FIND(name) library.find("nvml" #name, f.name)
  THRICE_NVML_FIND(Init_v2);
  THRICE_NVML_FIND(Shutdown);
  THRICE_NVML_FIND(DeviceGetCount_v2);
  THRICE_NVML_FIND(DeviceGetHandleByIndex_v2);
  THRICE_NVML_FIND(DeviceGetName);
  THRICE_NVML_FIND(DeviceGetTemperature);
  THRICE_NVML_FIND(DeviceGetClockInfo);
  THRICE_NVML_FIND(DeviceGetPowerUsage);
  THRICE_NVML_FIND(DeviceGetEnforcedPowerLimit);
  THRICE_NVML_FIND(DeviceGetUtilizationRates);
  THRICE_NVML_FIND(DeviceGetMemoryInfo);
  THRICE_NVML_FIND(DeviceGetCurrentClocksThrottleReasons);
  THRICE_NVML_FIND(DeviceGetComputeRunningProcesses_v3);
  THRICE_NVML_FIND(DeviceGetUUID);
  THRICE_NVML_FIND(GpmQueryDeviceSupport);
  THRICE_NVML_FIND(GpmSampleAlloc);
  THRICE_NVML_FIND(GpmSampleFree);
  THRICE_NVML_FIND(GpmSampleGet);
  THRICE_NVML_FIND(GpmMetricsGet);
#undef THRICE_NVML_FIND
  if (!f.Init_v2 || !f.Shutdown || !f.DeviceGetCount_v2 || !f.DeviceGetHandleByIndex_v2) {
    if (reason) *reason = "libnvidia-ml.so.1 lacks functions of driver 525; update the NVIDIA driver";
    return nullptr;
  }
  const std::lock_guard<std::mutex> lock(turn());
  const Result code = f.Init_v2();
  if (code != kSuccess) {
    if (reason)
      *reason = fmt::format("NVML does not start (code {}): no card, or driver and library differ", code);
    return nullptr;
  }
  return std::make_unique<LoadedNvml>(f);
}

std::vector<size_t> visible_cards(const std::vector<std::string>& uuids,
                                  const std::optional<std::string>& visible) {
  std::vector<size_t> cards;
  if (!visible) {
    for (size_t i = 0; i < uuids.size(); ++i) cards.push_back(i);
    return cards;
  }
  std::istringstream list(*visible);
  for (std::string word; std::getline(list, word, ',');) {
    std::vector<size_t> found;
    if (!word.empty() && word.find_first_not_of("0123456789") == std::string::npos) {
      const size_t index = word.size() > 4 ? uuids.size() : std::stoul(word);
      if (index < uuids.size()) found.push_back(index);
    } else if (word.size() > 4) {  // "GPU-" and more
      for (size_t i = 0; i < uuids.size(); ++i)
        if (uuids[i].rfind(word, 0) == 0) found.push_back(i);
    }
    if (found.size() != 1 || std::find(cards.begin(), cards.end(), found[0]) != cards.end()) break;
    cards.push_back(found[0]);
  }
  return cards;
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
