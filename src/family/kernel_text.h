// The hand-read kernel texts of kernels/, embedded at build (cmake/embed.cmake).
#pragma once
#include <string>
#include <vector>

namespace thrice::family {
struct KernelText {
  std::string path;  // below kernels/: "portable/matmul_tiled.h"
  std::string text;
};
const std::vector<KernelText>& kernel_texts();
const std::string& kernel_text(const std::string& path);  // throws kInternal when there is none
}  // namespace thrice::family
