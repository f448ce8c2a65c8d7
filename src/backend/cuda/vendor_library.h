// A library of NVIDIA's beside the driver (cuBLASLt, cuDNN), opened once: its functions and version, or the
// reason why it is not used.
#pragma once
#include <fmt/format.h>

#include <string>

#include "base/shared_library.h"

namespace thrice::backend::cuda {

// Api: a struct of function pointers with size_t GetVersion() and size_t GetCudartVersion() among them.
template <class Api>
struct VendorLibrary {
  using FindAll = bool (*)(SharedLibrary&, Api&);
  Api a;
  std::string version, reason;

  // `release`: what is needed, for the reason ("cuDNN 9"). `driver_version`: as cuDriverGetVersion gives it;
  // a library of a newer CUDA than the driver serves is left alone.
  VendorLibrary(const LibraryPaths& choice, FindAll find_all, const char* release, int driver_version)
      : reason(choice.reason) {
    for (const std::string& path : choice.paths)
      if (try_open(path, find_all, release, driver_version)) return;
  }

 private:
  bool try_open(const std::string& path, FindAll find_all, const char* release, int driver_version) {
    SharedLibrary library(path);
    if (!library) return false;
    Api found;
    if (!find_all(library, found)) {
      reason = fmt::format("{} lacks {}; update it to {}", path, library.missing(), release);
      return false;
    }
    if (const auto made_for = static_cast<int>(found.GetCudartVersion() / 1000);
        made_for > driver_version / 1000) {
      reason =
          fmt::format("{} is of CUDA {}, the driver serves CUDA {}", path, made_for, driver_version / 1000);
      return false;
    }
    a = found;
    const size_t v = a.GetVersion();
    version = fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
    reason.clear();
    return true;
  }
};

}  // namespace thrice::backend::cuda
