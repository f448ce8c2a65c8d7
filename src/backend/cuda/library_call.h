// Calls into vendors' libraries that stand among a program's kernels (docs/decisions/0007).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "artifact/kernel.h"
#include "backend/cuda/context.h"

namespace thrice::backend::cuda {

// One call of a program, for any extents. Thread-safe.
class LibraryCall {
 public:
  virtual ~LibraryCall() = default;
  // Puts the call on the stream, which may be capturing; `addresses` and `workspace_bytes` are of the
  // launch's buffers. The context is current. Throws kLaunchFailed. Chooses the algorithm when it meets
  // extents for the first time; after that it asks the library for nothing but the launch.
  virtual void enqueue(const artifact::Launch& launch, const std::vector<CUdeviceptr>& addresses,
                       size_t workspace_bytes, CUstream stream) const = 0;
  virtual bool uses(int buffer) const = 0;
  virtual int workspace() const = 0;  // position among the buffers
};

// The call that a symbol describes; nullptr for a kernel of ours. The context is current. Throws kCorrupt,
// and kUnsupported where there is no such library.
std::shared_ptr<const LibraryCall> make_library_call(const ContextPtr& context, const std::string& symbol);

// Address of buffer `position` of a launch; throws kInternal where it has none.
CUdeviceptr buffer_at(const std::vector<CUdeviceptr>& addresses, int position, const std::string& symbol);
// The largest power of two, at most `most` bytes, that all addresses are multiples of.
int64_t alignment_of(std::initializer_list<CUdeviceptr> addresses, int64_t most);

}  // namespace thrice::backend::cuda
