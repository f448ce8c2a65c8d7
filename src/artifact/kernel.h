// Generated code on its way to the device: source, binary, and launches.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "artifact/tensor_map.h"

namespace thrice::artifact {

enum class Language { kOpenCL, kCuda };
const char* language_name(Language language);

// One program of a region: text with one or more kernels. Argument order of every kernel: buffers (inputs
// that are not shape inputs, outputs, temporaries; see Launch), then `const int* E` (extents in the parameter
// block; E already points at this launch's first integer).
struct KernelSource {
  Language language = Language::kOpenCL;
  std::string text;                  // complete: prelude and template included, nothing to include
  std::vector<std::string> kernels;  // symbols, indexed by Launch::kernel
  std::string key;                   // hash of language and text; equal keys are the same program
};

enum class BinaryFormat { kOpenCLBinary, kPtx, kCubin, kNone };
struct KernelBinary {
  BinaryFormat format = BinaryFormat::kNone;
  std::string architecture;  // "sm_90a", or the OpenCL device's name and driver version
  std::string key;           // the source's key
  std::vector<std::byte> bytes;
  std::string log;                                                 // compiler output, kept on success too
  int registers = -1, spill_bytes = -1, static_shared_bytes = -1;  // -1: not told
};

// One launch with concrete numbers, made when a region is bound.
struct Launch {
  int kernel = 0;                         // index into KernelSource::kernels
  std::array<int64_t, 3> grid{1, 1, 1};   // blocks (work-groups); a zero anywhere = nothing to launch
  std::array<int64_t, 3> block{1, 1, 1};  // threads of a block (work-items of a work-group)
  int64_t dynamic_shared_bytes = 0;
  std::vector<int32_t> extents;  // the integers that E points at
  std::vector<TensorMap> maps;   // arguments after E; CUDA, sm_90 and newer
  bool once = false;  // reads nothing but weights and writes nothing but kept scratch buffers: needed once
};
struct LaunchPlan {
  std::vector<Launch> launches;          // in order
  std::vector<int64_t> temporary_bytes;  // scratch buffers, alive only within the region ...
  std::vector<bool> temporary_kept;      // ... but those marked here (index-aligned), which outlive the run
};

}  // namespace thrice::artifact
