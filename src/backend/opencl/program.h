// Building, loading and keeping OpenCL programs.
#pragma once
#include <deque>
#include <mutex>
#include <utility>

#include "backend/backend.h"
#include "backend/opencl/context.h"

namespace thrice::backend::opencl {

class ClProgram : public Program {
 public:
  // Takes `handle` over. Throws kUnsupported when a kernel needs more local memory than the spec allows.
  ClProgram(ContextPtr context, cl_program handle, std::vector<std::string> names);
  ~ClProgram() override;

  struct Kernel {
    std::string name;
    cl_kernel handle = nullptr;
    int64_t local_bytes = 0;  // static local memory
    cl_uint num_args = 0;
  };
  const Kernel& kernel(int index) const;        // throws kInternal out of range
  cl_kernel make_kernel(int index) const;       // another object of the same kernel, owned by the caller
  std::mutex& mutex() const { return mutex_; }  // held from setting arguments to the enqueue

 private:
  void release();

  ContextPtr context_;
  cl_program handle_;
  std::vector<Kernel> kernels_;
  mutable std::mutex mutex_;
};

// Options of every build: OpenCL C 1.2; no fast-math option of any kind (numerics.md).
std::string build_options(const Context& context);

// Compiles and loads. On CPU devices compile() gives the source text as the "binary": PoCL makes a binary by
// compiling every kernel once more for any group size, which costs six times the build, and a load from it
// still compiles for the group size at hand; its own cache makes a second build of one text cheap.
// Threads: safe.
class ClCompiler : public Compiler {
 public:
  explicit ClCompiler(ContextPtr context) : context_(std::move(context)) {}
  ~ClCompiler() override;
  artifact::KernelBinary compile(const artifact::KernelSource& source) override;
  artifact::KernelBinary compile_to_ship(const artifact::KernelSource& source) override;
  std::string version() const override;
  // Throws kUnsupported (another device's), kCorrupt.
  ProgramPtr load(const artifact::KernelBinary& binary, const std::vector<std::string>& kernels);

 private:
  cl_program build_text(const std::string& text,
                        std::string* log);  // built, or kept from just before; owned by the caller
  artifact::KernelBinary compile(const artifact::KernelSource& source, bool as_text);

  ContextPtr context_;
  std::mutex mutex_;                                       // guards recent_
  std::deque<std::pair<std::string, cl_program>> recent_;  // what was just built is loaded next
};

}  // namespace thrice::backend::opencl
