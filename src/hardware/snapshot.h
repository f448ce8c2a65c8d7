// Live state of host and devices, and where it comes from.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace thrice::hardware {

// A number that a source could not tell. Compare with is_known.
constexpr double kUnknown = -1;
constexpr bool is_known(double value) { return value >= 0; }

struct HostState {
  double cpu_busy = kUnknown;       // 0..1 over all cores since the sample before; unknown in the first
  double load_average = kUnknown;   // of the last minute
  double temperature_c = kUnknown;  // hottest thermal zone
  double clock_mhz = kUnknown;      // mean of the cores
  int64_t memory_total_bytes = -1, memory_free_bytes = -1;       // free: what programs could still get
  int64_t network_received_bytes = -1, network_sent_bytes = -1;  // since boot, without loopback
};

struct Process {
  int64_t pid = 0;
  int64_t memory_bytes = -1;
};
struct DeviceState {
  std::string id;    // "cuda:0", numbered as the CUDA driver numbers the cards that it may use
  std::string name;  // as the driver calls it
  std::string uuid;
  std::string problem;  // "" = none; why nothing could be read, e.g. a card that fell off the bus
  double sm_clock_mhz = kUnknown, memory_clock_mhz = kUnknown;
  double temperature_c = kUnknown, power_w = kUnknown, power_limit_w = kUnknown;
  double busy = kUnknown;  // 0..1: some kernel ran in this share of the driver's window; not use of the SMs
  double memory_busy = kUnknown;  // 0..1: device memory was read or written in this share of that window
  double sm_use = kUnknown;  // 0..1: mean share of the SMs at work since the sample before, by the counters
                             // of newer cards (GPM); unknown in the first sample
  int64_t memory_total_bytes = -1, memory_free_bytes = -1;
  std::vector<std::string>
      throttle_reasons;            // "power cap", "hot": why clocks are below their highest; idle is none
  std::vector<Process> processes;  // that hold memory on the device
};

struct Snapshot {
  double time_us = 0;     // monotonic
  int64_t unix_time = 0;  // seconds
  HostState host;
  std::vector<DeviceState> devices;
};

// One thread at a time.
class Source {
 public:
  virtual ~Source() = default;
  virtual Snapshot sample() = 0;  // never throws: what cannot be read is unknown
};
// This machine: /proc and /sys below `root`, and NVML where a driver brings it.
// `nvml`: path of NVML's library; "" = libnvidia-ml.so.1 by the loader.
std::unique_ptr<Source> system_source(const std::string& root = "", const std::string& nvml = "");
// For tests: the given snapshots in turn, then the last one again and again (an empty one where none are
// given).
std::unique_ptr<Source> scripted_source(std::vector<Snapshot> snapshots);

}  // namespace thrice::hardware
