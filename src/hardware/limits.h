// The user's limits (max_temp, min_free_memory) against a snapshot.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "hardware/snapshot.h"

namespace thrice::hardware {

// Defaults: of the settings file's example. Tuning pauses and serving sheds load where a limit does not hold.
struct Limits {
  std::optional<double> max_temperature_c = 85;
  std::optional<int64_t> min_free_memory_bytes = int64_t{1000} * 1000 * 1000;
};
struct Verdict {
  bool ok = true;
  std::vector<std::string> reasons;  // one sentence for each limit that does not hold
  std::vector<std::string> notes;    // limits that could not be checked, since the state is unknown
};
// `device_id`: "cuda:0" for a card of the snapshot; any other id (CPU and null devices) is judged by the
// host.
Verdict check_limits(const Snapshot& snapshot, const std::string& device_id, const Limits& limits);

}  // namespace thrice::hardware
