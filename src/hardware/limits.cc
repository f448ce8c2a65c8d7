#include "hardware/limits.h"

#include <fmt/format.h>

namespace thrice::hardware {

Verdict check_limits(const Snapshot& snapshot, const std::string& device_id, const Limits& limits) {
  std::string name = "host";
  double temperature = snapshot.host.temperature_c;
  int64_t free = snapshot.host.memory_free_bytes;
  if (device_id.rfind("cuda:", 0) == 0) {  // a card that the snapshot lacks is unknown, not the host
    name = device_id;
    temperature = kUnknown;
    free = -1;
  }
  for (const DeviceState& device : snapshot.devices)
    if (device.id == device_id) {
      temperature = device.temperature_c;
      free = device.memory_free_bytes;
    }
  Verdict verdict;
  if (limits.max_temperature_c) {
    if (!is_known(temperature))
      verdict.notes.push_back(name + ": temperature unknown, max_temp not checked");
    else if (!(temperature <= *limits.max_temperature_c))
      verdict.reasons.push_back(fmt::format("{}: {:.0f} °C is above max_temp {:.0f} °C", name, temperature,
                                            *limits.max_temperature_c));
  }
  if (limits.min_free_memory_bytes) {
    if (free < 0)
      verdict.notes.push_back(name + ": free memory unknown, min_free_memory not checked");
    else if (free < *limits.min_free_memory_bytes)
      verdict.reasons.push_back(fmt::format("{}: {:.2f} GB free is below min_free_memory {:.2f} GB", name,
                                            static_cast<double>(free) * 1e-9,
                                            static_cast<double>(*limits.min_free_memory_bytes) * 1e-9));
  }
  verdict.ok = verdict.reasons.empty();
  return verdict;
}

}  // namespace thrice::hardware
