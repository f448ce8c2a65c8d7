// cuBLASLt, opened at run time: matrix products that stand among a program's kernels
// (artifact/library_product.h).
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "artifact/kernel.h"
#include "artifact/library_product.h"
#include "backend/cuda/context.h"

namespace thrice::backend::cuda {

// "13.1.0" of the library that a driver of this version (12080 = 12.8) can serve; "" = none, `reason` says
// why. Searched: THRICE_CUBLASLT (a file, read once; "off" = use none), else the loader's path and the
// toolkit's usual folder; libcublasLt.so.13, then .12.
std::string cublaslt_version(int driver_version, std::string* reason = nullptr);

// One product of a program, for any extents. Thread-safe.
class CublasltProduct {
 public:
  // Throws kUnsupported where there is no library. The context is current.
  CublasltProduct(const ContextPtr& context, const artifact::LibraryProduct& product);
  ~CublasltProduct();

  // Puts the product on the stream, which may be capturing; `addresses` and `bytes` of the launch's buffers.
  // The context is current. Throws kLaunchFailed. Chooses the algorithm when it meets extents for the first
  // time; after that it asks the library for nothing but the launch.
  void enqueue(const artifact::Launch& launch, const std::vector<CUdeviceptr>& addresses,
               size_t workspace_bytes, CUstream stream) const;
  const artifact::LibraryProduct& what() const { return product_; }

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
