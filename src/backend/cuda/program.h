// Loaded CUDA modules, and the calls into libraries among their kernels.
#pragma once
#include "backend/backend.h"
#include "backend/cuda/context.h"
#include "backend/cuda/library_call.h"

namespace thrice::backend::cuda {

class CudaProgram : public Program {
 public:
  CudaProgram(ContextPtr context, CUmodule module) : context_(std::move(context)), module_(module) {}
  ~CudaProgram() override;

  struct Kernel {
    std::string name;
    CUfunction handle = nullptr;
    int registers = -1, spill_bytes = -1, static_shared_bytes = 0;
    std::shared_ptr<const LibraryCall> call;  // in place of the handle
  };
  const Kernel& kernel(int index) const;  // throws kInternal out of range
  Resources resources() const override;
  std::vector<Kernel> kernels;

 private:
  ContextPtr context_;
  CUmodule module_;
};

// Throws kCorrupt, kUnsupported (another architecture's; a library that is not here).
std::shared_ptr<CudaProgram> load(const ContextPtr& context, const artifact::KernelBinary& binary,
                                  const std::vector<std::string>& kernels);

}  // namespace thrice::backend::cuda
