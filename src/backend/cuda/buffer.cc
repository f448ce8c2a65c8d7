#include "backend/cuda/buffer.h"

#include <fmt/format.h>
#include <thrice/status.h>

namespace thrice::backend::cuda {
namespace {

class CudaBuffer : public Buffer {
 public:
  CudaBuffer(ContextPtr context, CUdeviceptr address, size_t bytes, bool owned)
      : context_(std::move(context)), address_(address), bytes_(bytes), owned_(owned) {}
  ~CudaBuffer() override {
    if (!owned_ || context_->api.CtxPushCurrent_v2(context_->handle) != kCuSuccess) return;
    context_->api.MemFree_v2(address_);  // waits for work that uses it
    CUcontext popped = nullptr;
    context_->api.CtxPopCurrent_v2(&popped);
  }
  size_t bytes() const override { return bytes_; }
  void* native() const override { return reinterpret_cast<void*>(address_); }

 private:
  ContextPtr context_;
  CUdeviceptr address_;
  size_t bytes_;
  bool owned_;
};

}  // namespace

BufferPtr allocate(const ContextPtr& context, size_t bytes) {
  const Use use(*context);
  CUdeviceptr address = 0;
  context->api.check(context->api.MemAlloc_v2(&address, bytes ? bytes : kAlignment),
                     fmt::format("{}: allocating {} bytes", context->spec.id, bytes));
  return std::make_shared<CudaBuffer>(context, address, bytes, true);
}

BufferPtr wrap(const ContextPtr& context, void* native, size_t bytes) {
  return std::make_shared<CudaBuffer>(context, reinterpret_cast<CUdeviceptr>(native), bytes, false);
}

CUdeviceptr address(const Context& context, const BufferSpan& span) {
  if (span.bytes == 0) return context.empty;
  const auto* buffer = dynamic_cast<const CudaBuffer*>(span.buffer.get());
  // A buffer that a pool lends is the same object behind another owner, so the type still tells.
  if (!buffer) throw Error(Code::kInternal, context.spec.id + ": not a buffer of a CUDA device");
  if (span.offset > buffer->bytes() || span.bytes > buffer->bytes() - span.offset)
    throw Error(Code::kInternal, fmt::format("{}: bytes {} to {} of a buffer of {}", context.spec.id,
                                             span.offset, span.offset + span.bytes, buffer->bytes()));
  return reinterpret_cast<CUdeviceptr>(buffer->native()) + span.offset;
}

}  // namespace thrice::backend::cuda
