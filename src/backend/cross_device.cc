#include "backend/cross_device.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include "backend/null/device.h"

namespace thrice::backend {
namespace {

// Streaming multiprocessors of the usual card, for default schedules: they say how much work fills a card.
int usual_units(const std::string& architecture) {
  const std::string number = architecture.substr(3, architecture.find_last_of("0123456789") - 2);
  if (number == "80") return 108;
  if (number == "86") return 84;
  if (number == "89") return 128;
  if (number == "90") return 132;
  return 148;  // sm_100 and later
}

// Most shared memory a block (CUDA C++ Programming Guide, compute capabilities); 99 KiB is the least since
// sm_80.
int64_t shared_limit(const std::string& architecture) {
  const std::string number = architecture.substr(3, architecture.find_last_of("0123456789") - 2);
  if (number == "80" || number == "87") return 163 * 1024;
  return number == "90" || number == "100" || number == "103" ? 227 * 1024 : 99 * 1024;
}

target::DeviceSpec describe(const std::string& architecture) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  target::DeviceSpec spec;
  spec.id = "cuda:" + architecture;
  spec.api = target::Api::kCuda;
  spec.name = architecture + " (no card)";
  spec.driver = "none";
  spec.architecture = architecture;
  spec.compute_units = usual_units(architecture);
  spec.max_alloc_bytes = spec.memory_bytes = 8192 * kMiB;  // few cards of these architectures have less
  spec.l2_bytes = 32 * kMiB;
  spec.optin_shared_bytes = shared_limit(architecture);
  spec.has_f64 = spec.has_f16_arithmetic = spec.has_int64_atomics = true;
  return spec;
}

class CrossDevice : public Device {
 public:
  explicit CrossDevice(const std::string& architecture)
      : spec_(describe(architecture)), compiler_(cross_compiler(architecture)), memory_(null::open(0)) {}
  const target::DeviceSpec& spec() const override { return spec_; }
  BufferPtr allocate(size_t bytes) override { return memory_->allocate(bytes); }
  BufferPtr wrap(void* native, size_t bytes) override { return memory_->wrap(native, bytes); }
  std::unique_ptr<Stream> make_stream(void* native) override { return memory_->make_stream(native); }
  ProgramPtr load(const artifact::KernelBinary& binary, const std::vector<std::string>& kernels) override {
    if (binary.architecture != spec_.architecture)
      throw Error(Code::kUnsupported, spec_.id + ": the program was built for " + binary.architecture);
    artifact::KernelBinary nothing;
    nothing.architecture = memory_->spec().architecture;
    return memory_->load(nothing, kernels);
  }
  Compiler* compiler() override { return compiler_.get(); }
  int64_t free_memory_bytes() override { return -1; }

 private:
  target::DeviceSpec spec_;
  std::unique_ptr<Compiler> compiler_;
  DevicePtr memory_;
};

}  // namespace

DevicePtr open_cross_device(const std::string& architecture) {
  auto device = std::make_shared<CrossDevice>(architecture);
  artifact::KernelSource probe;
  probe.language = artifact::Language::kCuda;
  probe.text = "extern \"C\" __global__ void k() {}\n";
  probe.kernels = {"k"};
  try {
    device->compiler()->compile(probe);
  } catch (const Error& error) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{} does not build for '{}': {}", device->compiler()->version(), architecture,
                            error.what()));
  }
  return device;
}

}  // namespace thrice::backend
