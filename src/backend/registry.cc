// Every back end by name, in the order of preference.
#include <fmt/format.h>
#include <thrice/status.h>

#include <map>
#include <mutex>

#include "backend/backend.h"
#include "backend/cuda/device.h"
#include "backend/cuda/nvrtc.h"
#include "backend/null/device.h"
#include "backend/opencl/device.h"

namespace thrice::backend {
namespace {

struct Entry {
  const char* name;
  BackendReport (*report)();
  DevicePtr (*open)(int index);
};
const Entry kEntries[] = {{"cuda", cuda::report, cuda::open},
                          {"opencl", opencl::report, opencl::open},
                          {"null", null::report, null::open}};

// One open device an id, shared by all who ask while anyone holds it.
DevicePtr open_shared(const Entry& entry, int index) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<Device>> held;
  const std::lock_guard<std::mutex> lock(mutex);
  std::weak_ptr<Device>& slot = held[fmt::format("{}:{}", entry.name, index)];
  if (DevicePtr device = slot.lock()) return device;
  DevicePtr device = entry.open(index);
  slot = device;
  return device;
}

// "cuda:GPU-5e1f" names a card by the beginning of its UUID, "cuda:MIG-..." a slice of one.
bool has_uuid(const target::DeviceSpec& spec, const std::string& id) {
  constexpr size_t kPrefix = 5, kLeast = 8;  // "cuda:"; "GPU-" and four digits
  return spec.api == target::Api::kCuda && id.size() >= kPrefix + kLeast &&
         spec.uuid.rfind(id.substr(kPrefix), 0) == 0;
}

}  // namespace

std::vector<BackendReport> list_backends() {
  std::vector<BackendReport> reports;
  for (const Entry& entry : kEntries) reports.push_back(entry.report());
  return reports;
}

DevicePtr open_device(const std::string& id) {
  std::string known;
  if (id.rfind("cuda:sm", 0) == 0)
    throw Error(Code::kInvalidArgument,
                fmt::format("'{}' names architectures, not a device: only optimize --target takes it", id));
  for (const Entry& entry : kEntries) {
    const std::string prefix = fmt::format("{}:", entry.name);
    const bool any = id.empty() || id == entry.name;
    if (!any && id.rfind(prefix, 0) != 0) continue;
    const BackendReport report = entry.report();
    if (!report.available) {
      if (id.empty()) continue;
      throw Error(Code::kNotFound, fmt::format("device '{}': {}", id, report.reason));
    }
    if (any) return open_shared(entry, 0);
    for (size_t i = 0; i < report.devices.size(); ++i)
      if (report.devices[i].id == id || has_uuid(report.devices[i], id))
        return open_shared(entry, static_cast<int>(i));
  }
  for (const BackendReport& report : list_backends())
    for (const target::DeviceSpec& device : report.devices)
      known += " " + device.id + (device.uuid.empty() ? "" : " (" + device.uuid + ")");
  throw Error(Code::kNotFound, fmt::format("no device '{}'; there is:{}", id, known));
}

std::unique_ptr<Compiler> cross_compiler(const std::string& architecture) {
  auto compiler = cuda::make_nvrtc(architecture);
  if (!compiler) throw Error(Code::kNotFound, cuda::nvrtc_missing());
  return compiler;
}

}  // namespace thrice::backend
