#include "backend/cuda/buffer.h"

#include <fmt/format.h>
#include <thrice/status.h>

namespace thrice::backend::cuda {
namespace {

class CudaBuffer : public Buffer {
 public:
  CudaBuffer(ContextPtr context, CUdeviceptr address, size_t bytes, bool owned = false)
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

// Physical memory at the beginning of a range of addresses that is one granule longer.
class Fenced : public CudaBuffer {
 public:
  struct Range {
    CUdeviceptr begin = 0;
    size_t mapped = 0, reserved = 0;
  };
  Fenced(ContextPtr context, CUdeviceptr address, size_t bytes, const Range& range)
      : CudaBuffer(context, address, bytes), context_(std::move(context)), range_(range) {}
  ~Fenced() override {
    if (context_->api.CtxPushCurrent_v2(context_->handle) != kCuSuccess) return;
    context_->api.CtxSynchronize();  // unmapping does not wait for work that uses it
    context_->api.MemUnmap(range_.begin, range_.mapped);
    context_->api.MemAddressFree(range_.begin, range_.reserved);
    CUcontext popped = nullptr;
    context_->api.CtxPopCurrent_v2(&popped);
  }

 private:
  ContextPtr context_;
  Range range_;
};

}  // namespace

BufferPtr allocate_fenced(const ContextPtr& context, size_t bytes) {
  const Api& a = context->api;
  if (!a.has_virtual_memory || bytes == 0) return nullptr;
  const Use use(*context);
  MemAllocationProp physical{};
  physical.type = 1;
  physical.location = {1, context->device};
  size_t granule = 0;
  if (a.MemGetAllocationGranularity(&granule, &physical, 0) != kCuSuccess || granule == 0) return nullptr;
  const size_t held = (bytes + kFenceAlignment - 1) / kFenceAlignment * kFenceAlignment;
  Fenced::Range range;
  range.mapped = (held + granule - 1) / granule * granule;
  range.reserved = range.mapped + granule;
  if (a.MemAddressReserve(&range.begin, range.reserved, 0, 0, 0) != kCuSuccess) return nullptr;
  unsigned long long handle = 0;
  const CUresult created = a.MemCreate(&handle, range.mapped, &physical, 0);
  CUresult code = created;
  if (code == kCuSuccess) code = a.MemMap(range.begin, range.mapped, 0, handle, 0);
  if (created == kCuSuccess) a.MemRelease(handle);  // the mapping keeps the memory
  if (code == kCuSuccess) {
    const MemAccess access{physical.location, 3};
    code = a.MemSetAccess(range.begin, range.mapped, &access, 1);
    if (code != kCuSuccess) a.MemUnmap(range.begin, range.mapped);
  }
  if (code != kCuSuccess) {
    a.MemAddressFree(range.begin, range.reserved);
    if (code != kCuOutOfMemory) return nullptr;
    a.check(code, fmt::format("{}: allocating {} bytes before a fence", context->spec.id, bytes));
  }
  return std::make_shared<Fenced>(context, range.begin + range.mapped - held, held, range);
}

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
