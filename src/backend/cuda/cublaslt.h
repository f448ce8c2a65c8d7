// cuBLASLt, opened at run time: matrix products that stand among a program's kernels
// (artifact/library_product.h).
#pragma once
#include <map>
#include <mutex>

#include "artifact/library_product.h"
#include "backend/cuda/library_call.h"

namespace thrice::backend::cuda {

// "13.1.0" of the library that a driver of this version (12080 = 12.8) can serve; "" = none, `reason` says
// why. Searched: THRICE_CUBLASLT (a file, read once; "off" = use none), else the loader's path and the
// toolkit's usual folder; libcublasLt.so.13, then .12.
std::string cublaslt_version(int driver_version, std::string* reason = nullptr);

class CublasltProduct : public LibraryCall {
 public:
  // Throws kUnsupported where there is no library. The context is current.
  CublasltProduct(const ContextPtr& context, const artifact::LibraryProduct& product);
  ~CublasltProduct() override;
  void enqueue(const artifact::Launch& launch, const std::vector<CUdeviceptr>& addresses,
               size_t workspace_bytes, CUstream stream) const override;
  bool uses(int buffer) const override { return product_.uses(buffer); }
  int workspace() const override { return product_.workspace; }

 private:
  struct Handle;
  struct Choice;
  std::shared_ptr<const Choice> choice(const std::vector<int64_t>& key) const;

  ContextPtr context_;
  artifact::LibraryProduct product_;
  std::shared_ptr<Handle> handle_;
  mutable std::mutex mutex_;
  mutable std::map<std::vector<int64_t>, std::shared_ptr<const Choice>> choices_;
};

}  // namespace thrice::backend::cuda
