// Keeps the CUDA C++ text of a kernel program for tools/cuda_texts.py, which compiles each distinct text for
// every architecture: NVRTC is too slow to run inside the tests.
#pragma once
#include <filesystem>
#include <string>

#include "base/file.h"
#include "base/hash.h"
#include "family/prelude.h"

namespace thrice::testing {

// Writes `text` (without the prelude) to <digest>.cu in the build's folder cuda_texts, and the prelude and
// NVRTC's options beside it. `label` ("matmul/tiled tile_m=64 ...") becomes the first line.
// Nothing is kept where the folder is not there.
inline void keep_cuda_text(const std::string& label, const std::string& text) {
  const std::string folder = THRICE_CUDA_TEXT_DIR;
  if (!std::filesystem::exists(folder)) return;  // the program runs away from its build folder
  std::string options;
  for (const char* option : family::kNvrtcOptions) options += std::string(option) + "\n";
  const auto write = [](const std::string& path, const std::string& content) {
    if (!std::filesystem::exists(path) || read_text(path) != content) write_file_atomic(path, content);
  };
  write(folder + "/options.txt", options);
  write(folder + "/prelude.cuh", family::prelude(artifact::Language::kCuda));
  write(folder + "/" + hash_hex(text) + ".cu", "// " + label + "\n" + text);
}

}  // namespace thrice::testing
