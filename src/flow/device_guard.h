// The user's limits (max_temp, min_free_memory) while tuning: trials wait until the device is cool, and those
// that would take the last memory are refused.
#pragma once
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "flow/progress.h"
#include "flow/settings.h"
#include "hardware/limits.h"
#include "hardware/sampler.h"

namespace thrice::flow {

struct GuardOptions {
  double longest_pause_s =
      120;  // one wait; a device that does not cool down in two minutes at rest has another load
  double interval_ms = 100;  // of looking at the machine
  double cooled_by_c = 3;  // a pause ends this far below the limit, so that the next trial does not begin one
};

// One thread at a time.
class DeviceGuard {
 public:
  // `device_id` as in hardware::check_limits: a card by its state, anything else by the host's.
  DeviceGuard(std::unique_ptr<hardware::Source> source, std::string device_id,
              const HardwareConstraints& constraints, const GuardOptions& options = {});

  // Waits while the device is above max_temp and tells the listener so: `progress` with the phase "paused"
  // and the reason as its region. False: it stayed hot for the longest pause, or until `deadline_us`
  // (monotonic), or the user stopped; then no trial should follow.
  bool wait_until_cool(const Listener& listener, Progress progress, double deadline_us);

  // Why a trial that takes `bytes` of memory must not be made now; nullopt: it may.
  std::optional<std::string> refuse(int64_t bytes);

  // What a user should know afterwards: pauses, refusals, and limits that could not be checked.
  std::vector<std::string> notes() const;

 private:
  void remember_unchecked(const hardware::Verdict& verdict);

  hardware::Sampler sampler_;
  const std::string device_id_;
  const HardwareConstraints constraints_;
  const GuardOptions options_;
  int pauses_ = 0;
  int64_t refusals_ = 0;
  double paused_s_ = 0;
  bool gave_up_ = false;
  std::string hot_, refusal_;  // sentences of the last pause and refusal
  std::set<std::string> unchecked_;
};

}  // namespace thrice::flow
