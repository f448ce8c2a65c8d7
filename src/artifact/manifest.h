// What a release says of itself: enough to decide whether it runs here, and what was proved about it.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "artifact/decision.h"

namespace thrice::artifact {

struct ManifestTensor {
  std::string name;
  std::string dtype;  // "f32"
  std::string shape;  // "[1, 3, 48, width]"
};

// Which binary serves which region on which architecture. Several regions may share a source.
struct ManifestProgram {
  std::string workload;  // structural hash
  std::string schedule;  // Schedule::str()
  std::string source_key;
  std::vector<std::string> kernels;  // symbols in the order of Launch::kernel
};
struct ManifestBinary {
  std::string source_key, format, architecture;  // "opencl_binary" | "ptx" | "cubin" | "none"
  int64_t offset = 0, bytes = 0;                 // into the section of binaries
};

// One amount of device memory with the least time of the regions' kernels that was found for it.
struct MemoryPoint {
  int64_t bytes = 0;    // in all
  double time_us = -1;  // of regions with a choice; -1 = not measured, the order of points is by rules
  std::string change;   // schedules that are others than the plan's; "" = it is the plan
};

struct Manifest {
  int format_version = 1;
  std::string product_version;
  std::string model_name, model_digest;  // of the imported graph, weights included
  std::string plan_digest;
  std::string numerics = "strict";                                   // numerics.md
  std::string device_name, device_id, device_key, driver, compiler;  // what it was tuned on
  std::string timed_at;                                              // bindings of the timed run, "width=320"
  bool verified = false;
  double max_error = -1, error_limit = -1;
  double original_us = -1, best_us = -1;  // whole model, as measured at timed_at
  int64_t trials = 0, peak_bytes = 0, original_peak_bytes = 0;
  std::vector<ManifestTensor> inputs, outputs;
  std::vector<ManifestProgram> programs;
  std::vector<ManifestBinary> binaries;
  std::vector<std::string> slow_steps;
  std::map<std::string, std::string> metadata;  // the model's own
  std::vector<FusionDecision> decisions;        // of the planner "dp"; empty for others
  std::vector<MemoryPoint> memory_front;        // ascending bytes; empty where nothing can be exchanged

  std::string to_json() const;                    // stable: equal manifests give equal text
  static Manifest from_json(const std::string&);  // throws kCorrupt, kUnsupported (newer format)
};

}  // namespace thrice::artifact
