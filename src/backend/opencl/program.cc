#include "backend/opencl/program.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <string_view>

namespace thrice::backend::opencl {
namespace {

constexpr std::string_view kTextMark = "OpenCL C text\n";  // begins a "binary" that is source
constexpr int kLogLines = 12;                              // of a failed build, in the error's message

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

// -w: PoCL prints the number of warnings (unused functions of the prelude) on the process's own stderr.
std::string build_options(const Context& context) {
  return context.correct_divide ? "-cl-std=CL1.2 -w -cl-fp32-correctly-rounded-divide-sqrt"
                                : "-cl-std=CL1.2 -w";
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

cl_program ClCompiler::build_text(const std::string& text, std::string* log) {
  constexpr size_t kRecent = 32;
  const Context& c = *context_;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [known, handle] : recent_)
      if (known == text) {
        check(c.api.RetainProgram(handle), "taking a program that was just built");
        return handle;
      }
  }
  const char* data = text.data();
  const size_t length = text.size();
  cl_int code = kClSuccess;
  Held program{c.api, c.api.CreateProgramWithSource(c.handle, 1, &data, &length, &code)};
  if (code != kClSuccess) program.handle = nullptr;
  check(code, c.spec.id + ": taking kernel source");
  code = c.api.BuildProgram(program.handle, 1, &c.device, build_options(c).c_str(), nullptr, nullptr);
  const std::string built = build_log(c, program.handle);
  if (code != kClSuccess)
    throw Error(Code::kCompileFailed, fmt::format("{}: kernel source did not build ({}):\n{}", c.spec.id,
                                                  error_name(code), first_lines(built)));
  if (log) *log = built;
  check(c.api.RetainProgram(program.handle), "keeping a built program");
  const std::lock_guard<std::mutex> lock(mutex_);
  recent_.emplace_back(text, program.handle);
  if (recent_.size() > kRecent) {
    c.api.ReleaseProgram(recent_.front().second);
    recent_.pop_front();
  }
  return program.give();
}

ClCompiler::~ClCompiler() {
  for (const auto& [text, handle] : recent_) context_->api.ReleaseProgram(handle);
}

artifact::KernelBinary ClCompiler::compile(const artifact::KernelSource& source, bool as_text) {
  const Context& c = *context_;
  if (source.language != artifact::Language::kOpenCL)
    throw Error(Code::kInternal, c.spec.id + ": the source is not OpenCL C");
  artifact::KernelBinary binary;
  binary.format = artifact::BinaryFormat::kOpenCLBinary;
  binary.architecture = c.spec.architecture;
  binary.key = source.key;
  Held program{c.api, build_text(source.text, &binary.log)};
  if (as_text) {
    const std::string text = std::string(kTextMark) + source.text;
    const auto* data = reinterpret_cast<const std::byte*>(text.data());
    binary.bytes.assign(data, data + text.size());
  } else {
    binary.bytes = program_binary(c, program.handle);
  }
  const ClProgram loaded(context_, program.give(), source.kernels);  // names exist, limits hold
  for (size_t i = 0; i < source.kernels.size(); ++i)
    binary.static_shared_bytes = std::max(binary.static_shared_bytes,
                                          static_cast<int>(loaded.kernel(static_cast<int>(i)).local_bytes));
  return binary;
}

artifact::KernelBinary ClCompiler::compile(const artifact::KernelSource& source) {
  return compile(source, context_->spec.is_cpu);
}
artifact::KernelBinary ClCompiler::compile_to_ship(const artifact::KernelSource& source) {
  return compile(source, false);
}

std::string ClCompiler::version() const {
  return context_->spec.architecture + " " + build_options(*context_);
}

ProgramPtr ClCompiler::load(const artifact::KernelBinary& binary, const std::vector<std::string>& kernels) {
  const Context& c = *context_;
  if (binary.format != artifact::BinaryFormat::kOpenCLBinary)
    throw Error(Code::kUnsupported, c.spec.id + ": the binary is not an OpenCL program");
  if (binary.architecture != c.spec.architecture)
    throw Error(Code::kUnsupported,
                fmt::format("{}: the program was built for '{}', this device is '{}'; build it again here",
                            c.spec.id, binary.architecture, c.spec.architecture));
  const size_t length = binary.bytes.size();
  if (length == 0) throw Error(Code::kCorrupt, c.spec.id + ": an empty program binary");
  const auto* data = reinterpret_cast<const unsigned char*>(binary.bytes.data());
  const std::string_view text(reinterpret_cast<const char*>(data), length);
  if (text.substr(0, kTextMark.size()) == kTextMark)
    return std::make_shared<ClProgram>(
        context_, build_text(std::string(text.substr(kTextMark.size())), nullptr), kernels);
  cl_int status = kClSuccess, code = kClSuccess;
  Held program{c.api, c.api.CreateProgramWithBinary(c.handle, 1, &c.device, &length, &data, &status, &code)};
  if (code != kClSuccess) program.handle = nullptr;
  if (code == kClSuccess) code = status;
  if (code == kClSuccess)
    code = c.api.BuildProgram(program.handle, 1, &c.device, build_options(c).c_str(), nullptr, nullptr);
  if (code != kClSuccess)
    throw Error(Code::kCorrupt, fmt::format("{}: the driver refuses a program binary of {} bytes: {}",
                                            c.spec.id, length, error_name(code)));
  return std::make_shared<ClProgram>(context_, program.give(), kernels);
}

}  // namespace thrice::backend::opencl
