// Kernels that cheat or are broken, one or more for each way in which tuners have been fooled. Written in the
// portable language: the same text runs on OpenCL and CUDA.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace thrice::testing {

struct Cheat {
  std::string name;  // in the results file
  enum Task { kRelu, kRowSums } task = kRelu;
  std::string text;
  int64_t temporary_bytes = -1;  // of scratch `t`; -1 = none
};

constexpr int64_t kReluExtent = 5000;  // at which relu is tuned
constexpr int64_t kRows = 96, kRowLength = 8192;

std::vector<Cheat> cheats();
// Right ones, one a task: what passes must pass.
std::vector<Cheat> honest_kernels();

}  // namespace thrice::testing
