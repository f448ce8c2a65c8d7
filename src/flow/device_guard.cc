#include "flow/device_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.h"

namespace thrice::flow {

DeviceGuard::DeviceGuard(std::unique_ptr<hardware::Source> source, std::string device_id,
                         const HardwareConstraints& constraints, const GuardOptions& options)
    : sampler_(std::move(source), options.interval_ms),
      device_id_(std::move(device_id)),
      constraints_(constraints),
      options_(options) {}

void DeviceGuard::remember_unchecked(const hardware::Verdict& verdict) {
  unchecked_.insert(verdict.notes.begin(), verdict.notes.end());
}

bool DeviceGuard::wait_until_cool(const Listener& listener, Progress progress, double deadline_us) {
  hardware::Limits limits{constraints_.max_temp_c, std::nullopt};
  const double begin = monotonic_us();
  const double give_up = std::min(deadline_us, begin + 1e6 * options_.longest_pause_s);
  hardware::Verdict verdict = hardware::check_limits(sampler_.latest(), device_id_, limits);
  remember_unchecked(verdict);
  if (verdict.ok) return true;
  ++pauses_;
  limits.max_temperature_c = constraints_.max_temp_c - options_.cooled_by_c;
  while (!verdict.ok && !listener.stop() && monotonic_us() < give_up) {
    hot_ = verdict.reasons.front();
    progress.phase = "paused";  // a phase of its own: shown at once where there is no terminal
    progress.region = hot_;
    progress.seconds_left = std::max(0.0, (deadline_us - monotonic_us()) / 1e6);
    listener.tell(progress);
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(options_.interval_ms));
    verdict = hardware::check_limits(sampler_.latest(), device_id_, limits);
  }
  paused_s_ += (monotonic_us() - begin) / 1e6;
  if (!verdict.ok && !listener.stop()) gave_up_ = true;
  return verdict.ok;
}

std::optional<std::string> DeviceGuard::refuse(int64_t bytes) {
  // What the trial takes is asked for on top of the limit, so that the limit still holds while it runs.
  const hardware::Limits limits{std::nullopt, constraints_.min_free_memory_bytes + bytes};
  const hardware::Verdict verdict = hardware::check_limits(sampler_.latest(), device_id_, limits);
  remember_unchecked(verdict);
  if (verdict.ok) return std::nullopt;
  ++refusals_;
  refusal_ = fmt::format("{} with the {:.2f} GB of the trial", verdict.reasons.front(),
                         static_cast<double>(bytes) * 1e-9);
  return refusal_;
}

std::vector<std::string> DeviceGuard::notes() const {
  std::vector<std::string> notes;
  if (pauses_ > 0)
    notes.push_back(fmt::format("tuning paused {} times, {:.0f} s in all: {}", pauses_, paused_s_, hot_));
  if (gave_up_)
    notes.push_back(
        fmt::format("tuning ended early, with the best so far: the device stayed hot ({}). Cool it, or raise "
                    "hardware_constraints.max_temp",
                    hot_));
  if (refusals_ > 0)
    notes.push_back(fmt::format("{} trials were refused for memory: {}", refusals_, refusal_));
  for (const std::string& note : unchecked_) notes.push_back(note);
  return notes;
}

}  // namespace thrice::flow
