#include "backend/cuda/program.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>

#include "artifact/library_symbol.h"
#include "target/architecture.h"

namespace thrice::backend::cuda {

namespace {

CUmodule load_module(const Context& c, const artifact::KernelBinary& binary) {
  std::vector<std::byte> image = binary.bytes;
  image.push_back(std::byte{0});  // PTX is text that ends with a zero
  CUmodule module = nullptr;
  const CUresult code = c.api.ModuleLoadData(&module, image.data());
  if (code == kCuNoBinaryForGpu || code == kCuUnsupportedPtxVersion)
    throw Error(Code::kUnsupported, c.spec.id + ": the driver cannot run this program: " + c.api.error(code));
  if (code == kCuInvalidImage || code == kCuInvalidPtx)
    throw Error(Code::kCorrupt, c.spec.id + ": the driver refuses a program binary: " + c.api.error(code));
  c.api.check(code, c.spec.id + ": loading a program");
  return module;
}

}  // namespace

CudaProgram::~CudaProgram() {
  if (context_->api.CtxPushCurrent_v2(context_->handle) != kCuSuccess) return;
  if (module_) context_->api.ModuleUnload(module_);
  CUcontext popped = nullptr;
  context_->api.CtxPopCurrent_v2(&popped);
}

const CudaProgram::Kernel& CudaProgram::kernel(int index) const {
  if (index < 0 || static_cast<size_t>(index) >= kernels.size())
    throw Error(Code::kInternal, fmt::format("kernel {} of a program with {}", index, kernels.size()));
  return kernels[static_cast<size_t>(index)];
}

Program::Resources CudaProgram::resources() const {
  Resources most;
  for (const Kernel& kernel : kernels) {
    most.registers = std::max(most.registers, kernel.registers);
    most.spill_bytes = std::max(most.spill_bytes, kernel.spill_bytes);
    most.static_shared_bytes = std::max(most.static_shared_bytes, kernel.static_shared_bytes);
  }
  return most;
}

std::shared_ptr<CudaProgram> load(const ContextPtr& context, const artifact::KernelBinary& binary,
                                  const std::vector<std::string>& names) {
  const Context& c = *context;
  if (binary.format != artifact::BinaryFormat::kCubin && binary.format != artifact::BinaryFormat::kPtx)
    throw Error(Code::kUnsupported, c.spec.id + ": the binary is no cubin and no PTX");
  if (binary.format == artifact::BinaryFormat::kCubin &&
      !target::cubin_runs_on(binary.architecture, c.spec.architecture))
    throw Error(Code::kUnsupported,
                fmt::format("{}: the program was built for {}, this device is {}; build it again", c.spec.id,
                            binary.architecture, c.spec.architecture));
  if (binary.bytes.empty()) throw Error(Code::kCorrupt, c.spec.id + ": an empty program binary");
  const Use use(c);
  const bool has_kernels = !std::all_of(names.begin(), names.end(), artifact::is_library_symbol);
  CUmodule module = has_kernels ? load_module(c, binary) : nullptr;
  auto program = std::make_shared<CudaProgram>(context, module);
  for (const std::string& name : names) {
    CudaProgram::Kernel kernel;
    kernel.name = name;
    kernel.call = make_library_call(context, name);
    if (kernel.call) {
      program->kernels.push_back(std::move(kernel));
      continue;
    }
    c.api.check(c.api.ModuleGetFunction(&kernel.handle, module, name.c_str()),
                c.spec.id + ": taking kernel " + name);
    const auto ask = [&](int what, int& value) {
      c.api.check(c.api.FuncGetAttribute(&value, what, kernel.handle), "asking about kernel " + name);
    };
    ask(kFuncRegisters, kernel.registers);
    ask(kFuncLocalBytes, kernel.spill_bytes);
    ask(kFuncSharedBytes, kernel.static_shared_bytes);
    // Above 48 KiB dynamic shared memory must be asked for; allowing it costs nothing where it is not used.
    const int64_t most = c.shared_optin_bytes - kernel.static_shared_bytes;
    if (most > 0)
      c.api.check(c.api.FuncSetAttribute(kernel.handle, kFuncMaxDynamicSharedBytes, static_cast<int>(most)),
                  "allowing dynamic shared memory for kernel " + name);
    program->kernels.push_back(std::move(kernel));
  }
  return program;
}

}  // namespace thrice::backend::cuda
