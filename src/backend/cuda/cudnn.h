// cuDNN's graph interface, opened at run time: convolutions that stand among a program's kernels
// (artifact/library_convolution.h).
#pragma once
#include <map>

#include "artifact/library_convolution.h"
#include "backend/cuda/library_call.h"

namespace thrice::backend::cuda {

// "9.10.2" of the library that a driver of this version (12080 = 12.8) can serve; "" = none, `reason` says
// why. Searched: THRICE_CUDNN (a file, read once; "off" = use none), else libcudnn.so.9 by the loader and in
// the toolkit's usual folder.
std::string cudnn_version(int driver_version, std::string* reason = nullptr);

class CudnnConvolution : public LibraryCall {
 public:
  // Throws kUnsupported where there is no library. The context is current.
  CudnnConvolution(const ContextPtr& context, const artifact::LibraryConvolution& convolution);
  ~CudnnConvolution() override;
  void enqueue(const artifact::Launch& launch, const std::vector<CUdeviceptr>& addresses,
               size_t workspace_bytes, CUstream stream) const override;
  bool uses(int buffer) const override { return convolution_.uses(buffer); }
  int workspace() const override { return convolution_.workspace; }

 private:
  struct Handle;
  struct Plan;
  std::shared_ptr<const Plan> plan(const std::vector<int64_t>& key) const;

  ContextPtr context_;
  artifact::LibraryConvolution convolution_;
  std::shared_ptr<Handle> handle_;
  mutable std::map<std::vector<int64_t>, std::shared_ptr<const Plan>> plans_;  // under the handle's lock
};

}  // namespace thrice::backend::cuda
