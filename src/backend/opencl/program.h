// Building, loading and keeping OpenCL programs.
#pragma once
#include <mutex>

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

class ClCompiler : public Compiler {
 public:
  explicit ClCompiler(ContextPtr context) : context_(std::move(context)) {}
  artifact::KernelBinary compile(const artifact::KernelSource& source) override;
  std::string version() const override;

 private:
  ContextPtr context_;
};

ProgramPtr load(const ContextPtr& context, const artifact::KernelBinary& binary,
                const std::vector<std::string>& kernels);

}  // namespace thrice::backend::opencl
