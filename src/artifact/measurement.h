// What one trial told.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "artifact/schedule.h"

namespace thrice::artifact {

enum class Outcome { kOk, kIllegal, kCompileFailed, kLaunchFailed, kTimedOut, kWrong, kOutOfMemory };
const char* outcome_name(Outcome outcome);
Outcome parse_outcome(const std::string& name);

// What the device was like while a time was taken; -1 = not told.
struct Conditions {
  int throttled_samples = 0;                                 // taken while clocks were held down
  double sm_mhz = -1, least_sm_mhz = -1;                     // median and lowest over the samples
  double memory_mhz = -1, temperature_c = -1, power_w = -1;  // median, highest, median
};

struct Measurement {
  Outcome outcome = Outcome::kIllegal;
  std::string message;   // why, when not ok
  double time_us = 0;    // median of samples, one execution of the region
  double spread_us = 0;  // median absolute deviation
  int samples = 0;
  double warm_us = -1,
         cold_us = -1;  // L2 warm and cold; time_us is the one that was asked for; -1 = not timed
  Conditions conditions;
  double error = -1, error_limit = -1;  // numerics.md; -1 = not checked
  double build_ms = 0;
  int registers = -1, spill_bytes = -1;  // -1 = not told
  int64_t shared_bytes = -1;             // of a block, the largest launch's; not kept in the store
  int64_t temporary_bytes = 0;
  // Of one execution while several run at once, each on buffers and a stream of its own; 1e6 over it is the
  // throughput. 0 = not measured.
  double concurrent_us = 0;
};

// One row kept: a trial with all that identifies it.
struct TuningRecord {
  std::string workload;     // structural hash
  std::string shape;        // bindings it was timed at, "s0=1 s1=320"
  std::string environment;  // key of the environment row (device, driver, compiler, product)
  Schedule schedule;
  Measurement measurement;
  std::string source_key;  // KernelSource::key
  int64_t unix_time = 0;
};

}  // namespace thrice::artifact
