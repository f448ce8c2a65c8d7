// Source: NVRTC documentation (signatures, options).
#include "backend/cuda/nvrtc.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <thrice/status.h>

#include <cstdlib>

#include "backend/cuda/api.h"
#include "base/shared_library.h"
#include "target/architecture.h"

namespace thrice::backend::cuda {
namespace {

using Program = struct NvrtcProgram*;
constexpr int kSuccess = 0;
// As family/prelude.h: no contraction, so that fused and unfused plans agree; nothing relaxes IEEE
// arithmetic.
constexpr const char* kOptions[] = {"--std=c++17", "--fmad=false"};
constexpr size_t kLogBytes = 1500;  // of a failed build, in the error's message

struct NvrtcApi {
  int (*Version)(int*, int*) = nullptr;
  const char* (*GetErrorString)(int) = nullptr;
  int (*CreateProgram)(Program*, const char*, const char*, int, const char* const*,
                       const char* const*) = nullptr;
  int (*CompileProgram)(Program, int, const char* const*) = nullptr;
  int (*DestroyProgram)(Program*) = nullptr;
  int (*GetProgramLogSize)(Program, size_t*) = nullptr;
  int (*GetProgramLog)(Program, char*) = nullptr;
  int (*GetCUBINSize)(Program, size_t*) = nullptr;
  int (*GetCUBIN)(Program, char*) = nullptr;
  int (*GetPTXSize)(Program, size_t*) = nullptr;
  int (*GetPTX)(Program, char*) = nullptr;
};

// Drivers load code of their own major version of CUDA and of older ones: an NVRTC newer than the driver is
// passed over, by the number at the end of its name. Without a driver nothing has to run, and any is taken.
bool driver_takes(const std::string& path) {
  std::string reason;
  const cuda::Api* driver = find_api(&reason);
  int version = 0;
  if (!driver || driver->DriverGetVersion(&version) != kSuccess) return true;
  const size_t dot = path.rfind(".so.");
  const int major = dot == std::string::npos ? 0 : std::atoi(path.c_str() + dot + 4);
  return major <= version / 1000;
}

struct Opened {
  NvrtcApi a;
  int major = 0, minor = 0;
  std::string reason =
      "no NVRTC found (libnvrtc.so.13 or .12) that the driver understands; install CUDA's run-time compiler, "
      "or set "
      "THRICE_NVRTC to the library";

  Opened() {
    const char* named = getenv("THRICE_NVRTC");
    SharedLibrary library;
    for (const char* path : {named, "libnvrtc.so.13", "libnvrtc.so.12",
                             "/usr/local/cuda/lib64/libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.12"})
      if (path && *path && !library && driver_takes(path)) library = SharedLibrary(path);
    if (!library) return;
#define THRICE_NVRTC_FIND(name) library.find("nvrtc" #name, a.name)
    if (THRICE_NVRTC_FIND(Version) && THRICE_NVRTC_FIND(GetErrorString) && THRICE_NVRTC_FIND(CreateProgram) &&
        THRICE_NVRTC_FIND(CompileProgram) && THRICE_NVRTC_FIND(DestroyProgram) &&
        THRICE_NVRTC_FIND(GetProgramLogSize) && THRICE_NVRTC_FIND(GetProgramLog) &&
        THRICE_NVRTC_FIND(GetCUBINSize) && THRICE_NVRTC_FIND(GetCUBIN) && THRICE_NVRTC_FIND(GetPTXSize) &&
        THRICE_NVRTC_FIND(GetPTX) && a.Version(&major, &minor) == kSuccess)
      reason.clear();
    else
      reason = fmt::format("the NVRTC that was found is older than 11.1{}; update it",
                           library.missing().empty() ? "" : ": it has no " + library.missing());
#undef THRICE_NVRTC_FIND
  }
};

const Opened& opened() {
  static const Opened one;
  return one;
}

class Nvrtc : public Compiler {
 public:
  explicit Nvrtc(std::string architecture) : architecture_(std::move(architecture)) {}

  std::string version() const override {
    std::string text = fmt::format("NVRTC {}.{} {}", opened().major, opened().minor, architecture_);
    for (const char* option : kOptions) text += fmt::format(" {}", option);
    return text;
  }

  artifact::KernelBinary compile(const artifact::KernelSource& source) override {
    const NvrtcApi& a = opened().a;
    if (source.language != artifact::Language::kCuda)
      throw Error(Code::kInternal, "NVRTC: the source is not CUDA C++");
    struct Held {
      const NvrtcApi& a;
      Program handle = nullptr;
      ~Held() {
        if (handle) a.DestroyProgram(&handle);
      }
    } program{a};
    check(a.CreateProgram(&program.handle, source.text.c_str(), "kernel.cu", 0, nullptr, nullptr),
          "taking the source");
    const std::string architecture = "--gpu-architecture=" + architecture_;
    std::vector<const char*> options{architecture.c_str()};
    options.insert(options.end(), std::begin(kOptions), std::end(kOptions));
    const int code = a.CompileProgram(program.handle, static_cast<int>(options.size()), options.data());
    artifact::KernelBinary binary;
    size_t bytes = 0;
    if (a.GetProgramLogSize(program.handle, &bytes) == kSuccess && bytes > 1) {
      binary.log.resize(bytes);
      check(a.GetProgramLog(program.handle, binary.log.data()), "reading the log");
      binary.log.resize(bytes - 1);  // ends with a zero
    }
    if (code != kSuccess && binary.log.find("gpu-architecture") != std::string::npos)
      throw Error(
          Code::kInvalidArgument,
          fmt::format("'{}' is no architecture that NVRTC {}.{} knows; name another ({}), or install a newer "
                      "NVRTC and set THRICE_NVRTC to it",
                      architecture_, opened().major, opened().minor, target::kTestedArchitectures));
    if (code != kSuccess)
      throw Error(Code::kCompileFailed, fmt::format("{}: kernel source did not build ({}):\n{}", version(),
                                                    a.GetErrorString(code), binary.log.substr(0, kLogBytes)));
    const bool is_virtual = architecture_.rfind("compute_", 0) == 0;  // for a driver to finish
    check((is_virtual ? a.GetPTXSize : a.GetCUBINSize)(program.handle, &bytes), "asking for the code's size");
    binary.bytes.resize(bytes);
    check((is_virtual ? a.GetPTX : a.GetCUBIN)(program.handle, reinterpret_cast<char*>(binary.bytes.data())),
          "reading the code");
    binary.format = is_virtual ? artifact::BinaryFormat::kPtx : artifact::BinaryFormat::kCubin;
    binary.architecture = architecture_;
    binary.key = source.key;
    return binary;
  }

 private:
  static void check(int code, const char* doing) {
    if (code != kSuccess)
      throw Error(Code::kCompileFailed, fmt::format("NVRTC: {}: {}", doing, opened().a.GetErrorString(code)));
  }

  std::string architecture_;
};

}  // namespace

std::string nvrtc_missing() { return opened().reason; }

std::unique_ptr<Compiler> make_nvrtc(const std::string& architecture) {
  if (!nvrtc_missing().empty()) return nullptr;
  return std::make_unique<Nvrtc>(architecture);
}

}  // namespace thrice::backend::cuda
