// Compiles CUDA texts with NVRTC where a library is found, so that every kernel text is known to be CUDA C++
// too.
#pragma once
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "family/prelude.h"

namespace thrice::testing {

class Nvrtc {
 public:
  static const Nvrtc& instance() {
    static const Nvrtc kOne;
    return kOne;
  }
  bool available() const { return handle_ != nullptr; }
  static const char* reason() {
    return "no NVRTC library found (set THRICE_NVRTC to the path of libnvrtc.so)";
  }

  // "" when `text` builds for `architecture` ("sm_90a"); else the head of the log.
  std::string compile(const std::string& text, const std::string& architecture) const {
    void* program = nullptr;
    if (create_(&program, text.c_str(), "kernel.cu", 0, nullptr, nullptr) != 0)
      return "nvrtcCreateProgram failed";
    const std::string arch = "--gpu-architecture=" + architecture;
    std::vector<const char*> options{arch.c_str()};
    for (const char* option : family::kNvrtcOptions) options.push_back(option);
    const int result = build_(program, static_cast<int>(options.size()), options.data());
    std::string log;
    if (result != 0) {
      size_t size = 0;
      log_size_(program, &size);
      log.resize(size + 1);
      log_(program, log.data());
      log = fmt::format("NVRTC error {} for {}: {}", result, architecture, log.substr(0, 2000));
    }
    destroy_(&program);
    return log;
  }

 private:
  Nvrtc() {
    const char* named = std::getenv("THRICE_NVRTC");
    for (const char* name :
         {named, "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"}) {
      if (name == nullptr || handle_ != nullptr) continue;
      handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (handle_ == nullptr) return;
    load("nvrtcCreateProgram", create_);
    load("nvrtcCompileProgram", build_);
    load("nvrtcGetProgramLogSize", log_size_);
    load("nvrtcGetProgramLog", log_);
    load("nvrtcDestroyProgram", destroy_);
  }
  template <class F>
  void load(const char* name, F& function) {
    function = reinterpret_cast<F>(dlsym(handle_, name));
  }
  void* handle_ = nullptr;
  int (*create_)(void**, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*build_)(void*, int, const char* const*) = nullptr;
  int (*log_size_)(void*, size_t*) = nullptr;
  int (*log_)(void*, char*) = nullptr;
  int (*destroy_)(void**) = nullptr;
};

}  // namespace thrice::testing
