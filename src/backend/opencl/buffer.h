// Device memory of an OpenCL context, and its parts as kernels see them.
#pragma once
#include <map>
#include <mutex>
#include <utility>

#include "backend/backend.h"
#include "backend/opencl/context.h"

namespace thrice::backend::opencl {

class ClBuffer : public Buffer {
 public:
  ClBuffer(ContextPtr context, cl_mem handle, size_t bytes, size_t held)
      : context_(std::move(context)), handle_(handle), bytes_(bytes), held_(held) {}
  ~ClBuffer() override;
  size_t bytes() const override { return bytes_; }
  void* native() const override { return handle_; }
  // The whole buffer, or a sub-buffer for a part that begins later; sub-buffers are kept, since a plan asks
  // for the same spans again and again. Threads: safe.
  cl_mem part(size_t offset, size_t bytes);

 private:
  void release_parts();

  ContextPtr context_;
  cl_mem handle_;
  size_t bytes_, held_;  // asked for; allocated
  std::mutex mutex_;     // guards parts_
  std::map<std::pair<size_t, size_t>, cl_mem> parts_;
};

BufferPtr allocate(const ContextPtr& context, size_t bytes);
// CPU devices only, whose kernels read host memory where it lies: a page behind the buffer is protected.
BufferPtr allocate_fenced(const ContextPtr& context, size_t bytes);
BufferPtr wrap(const ContextPtr& context, void* native, size_t bytes);

// The buffer behind a span after checking that the span lies inside it and is of OpenCL. Throws kInternal.
ClBuffer& checked(const BufferSpan& span, const char* doing);
// The memory object that a kernel argument gets; a span of zero bytes gets a small stand-in.
cl_mem argument(const Context& context, const BufferSpan& span);

}  // namespace thrice::backend::opencl
