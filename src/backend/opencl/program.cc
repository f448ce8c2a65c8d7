#include "backend/opencl/program.h"

#include <fmt/format.h>
#include <thrice/status.h>

namespace thrice::backend::opencl {
namespace {

constexpr int kLogLines = 12;  // of a failed build, in the error's message

std::string build_log(const Context& c, cl_program program) {
  size_t bytes = 0;
  if (c.api.GetProgramBuildInfo(program, c.device, kProgramBuildLog, 0, nullptr, &bytes) != kClSuccess)
    return {};
  std::string log(bytes, '\0');
  if (bytes && c.api.GetProgramBuildInfo(program, c.device, kProgramBuildLog, bytes, log.data(), nullptr) !=
                   kClSuccess)
    return {};
  while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
  return log;
}

std::string first_lines(const std::string& text) {
  size_t end = 0;
  for (int line = 0; line < kLogLines && end != std::string::npos; ++line) end = text.find('\n', end + 1);
  return text.substr(0, end);
}

// Owns a program until it is handed on.
struct Held {
  const Api& api;
  cl_program handle;
  ~Held() {
    if (handle) api.ReleaseProgram(handle);
  }
  cl_program give() {
    cl_program given = handle;
    handle = nullptr;
    return given;
  }
};

std::vector<std::byte> program_binary(const Context& c, cl_program program) {
  size_t bytes = 0;
  check(c.api.GetProgramInfo(program, kProgramBinarySizes, sizeof(bytes), &bytes, nullptr),
        "asking for the size of a built program");
  std::vector<std::byte> binary(bytes);
  std::byte* data = binary.data();
  check(c.api.GetProgramInfo(program, kProgramBinaries, sizeof(data), &data, nullptr),
        "reading a built program");
  return binary;
}

}  // namespace

std::string build_options(const Context& context) {
  return context.correct_divide ? "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt" : "-cl-std=CL1.2";
}

ClProgram::ClProgram(ContextPtr context, cl_program handle, std::vector<std::string> names)
    : context_(std::move(context)), handle_(handle) {
  try {
    for (std::string& name : names) {
      Kernel kernel;
      kernel.name = std::move(name);
      cl_int code = kClSuccess;
      kernel.handle = context_->api.CreateKernel(handle_, kernel.name.c_str(), &code);
      if (code != kClSuccess) kernel.handle = nullptr;
      kernels_.push_back(kernel);
      Kernel& made = kernels_.back();
      check(code, fmt::format("{}: taking kernel {}", context_->spec.id, made.name));
      cl_ulong local = 0;
      if (context_->api.GetKernelWorkGroupInfo(made.handle, context_->device, kKernelLocalMemSize,
                                               sizeof(local), &local, nullptr) == kClSuccess)
        made.local_bytes = static_cast<int64_t>(local);
      check(context_->api.GetKernelInfo(made.handle, kKernelNumArgs, sizeof(made.num_args), &made.num_args,
                                        nullptr),
            "counting arguments of kernel " + made.name);
      if (made.local_bytes > context_->spec.max_shared_bytes)
        throw Error(
            Code::kUnsupported,
            fmt::format("kernel {} takes {} bytes of local memory, but the limit of {} is {}", made.name,
                        made.local_bytes, context_->spec.id, context_->spec.max_shared_bytes));
    }
  } catch (...) {
    release();
    throw;
  }
}

ClProgram::~ClProgram() { release(); }

void ClProgram::release() {
  for (const Kernel& kernel : kernels_)
    if (kernel.handle) context_->api.ReleaseKernel(kernel.handle);
  kernels_.clear();
  context_->api.ReleaseProgram(handle_);
}

const ClProgram::Kernel& ClProgram::kernel(int index) const {
  if (index < 0 || static_cast<size_t>(index) >= kernels_.size())
    throw Error(Code::kInternal, fmt::format("kernel {} of a program with {}", index, kernels_.size()));
  return kernels_[static_cast<size_t>(index)];
}

cl_kernel ClProgram::make_kernel(int index) const {
  const Kernel& same = kernel(index);
  cl_int code = kClSuccess;
  cl_kernel made = context_->api.CreateKernel(handle_, same.name.c_str(), &code);
  check(code, "taking kernel " + same.name + " for a recorded launch");
  return made;
}

artifact::KernelBinary ClCompiler::compile(const artifact::KernelSource& source) {
  const Context& c = *context_;
  if (source.language != artifact::Language::kOpenCL)
    throw Error(Code::kInternal, c.spec.id + ": the source is not OpenCL C");
  const char* text = source.text.data();
  const size_t length = source.text.size();
  cl_int code = kClSuccess;
  Held program{c.api, c.api.CreateProgramWithSource(c.handle, 1, &text, &length, &code)};
  if (code != kClSuccess) program.handle = nullptr;
  check(code, c.spec.id + ": taking kernel source");
  code = c.api.BuildProgram(program.handle, 1, &c.device, build_options(c).c_str(), nullptr, nullptr);
  artifact::KernelBinary binary;
  binary.log = build_log(c, program.handle);
  if (code != kClSuccess)
    throw Error(Code::kCompileFailed, fmt::format("{}: kernel source did not build ({}):\n{}", c.spec.id,
                                                  error_name(code), first_lines(binary.log)));
  binary.format = artifact::BinaryFormat::kOpenCLBinary;
  binary.architecture = c.spec.architecture;
  binary.key = source.key;
  binary.bytes = program_binary(c, program.handle);
  const ClProgram loaded(context_, program.give(), source.kernels);  // names exist, limits hold
  for (size_t i = 0; i < source.kernels.size(); ++i)
    binary.static_shared_bytes = std::max(binary.static_shared_bytes,
                                          static_cast<int>(loaded.kernel(static_cast<int>(i)).local_bytes));
  return binary;
}

std::string ClCompiler::version() const {
  return context_->spec.architecture + " " + build_options(*context_);
}

ProgramPtr load(const ContextPtr& context, const artifact::KernelBinary& binary,
                const std::vector<std::string>& kernels) {
  const Context& c = *context;
  if (binary.format != artifact::BinaryFormat::kOpenCLBinary)
    throw Error(Code::kUnsupported, c.spec.id + ": the binary is not an OpenCL program");
  if (binary.architecture != c.spec.architecture)
    throw Error(Code::kUnsupported,
                fmt::format("{}: the program was built for '{}', this device is '{}'; build it again here",
                            c.spec.id, binary.architecture, c.spec.architecture));
  const size_t length = binary.bytes.size();
  if (length == 0) throw Error(Code::kCorrupt, c.spec.id + ": an empty program binary");
  const auto* data = reinterpret_cast<const unsigned char*>(binary.bytes.data());
  cl_int status = kClSuccess, code = kClSuccess;
  Held program{c.api, c.api.CreateProgramWithBinary(c.handle, 1, &c.device, &length, &data, &status, &code)};
  if (code != kClSuccess) program.handle = nullptr;
  if (code == kClSuccess) code = status;
  if (code == kClSuccess)
    code = c.api.BuildProgram(program.handle, 1, &c.device, build_options(c).c_str(), nullptr, nullptr);
  if (code != kClSuccess)
    throw Error(Code::kCorrupt, fmt::format("{}: the driver refuses a program binary of {} bytes: {}",
                                            c.spec.id, length, error_name(code)));
  return std::make_shared<ClProgram>(context, program.give(), kernels);
}

}  // namespace thrice::backend::opencl
