#include "backend/opencl/buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <thrice/status.h>

namespace thrice::backend::opencl {
namespace {
// A dynamic shape makes new spans with each length; past this many the kept ones are dropped (the driver
// keeps those in use until their kernels end).
constexpr size_t kMaxParts = 4096;
}  // namespace

ClBuffer::~ClBuffer() {
  release_parts();
  context_->api.ReleaseMemObject(handle_);
}

void ClBuffer::release_parts() {
  for (const auto& [span, part] : parts_) context_->api.ReleaseMemObject(part);
  parts_.clear();
}

cl_mem ClBuffer::part(size_t offset, size_t bytes) {
  if (offset == 0) return handle_;  // kernels know their extents: only the address counts
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = parts_.find({offset, bytes});
  if (found != parts_.end()) return found->second;
  if (parts_.size() >= kMaxParts) release_parts();
  const BufferRegion region{offset, bytes};
  cl_int code = kClSuccess;
  cl_mem part =
      context_->api.CreateSubBuffer(handle_, kMemReadWrite, kBufferCreateTypeRegion, &region, &code);
  check(code, fmt::format("taking bytes {} to {} of a buffer of {}", offset, offset + bytes, held_));
  parts_[{offset, bytes}] = part;
  return part;
}

BufferPtr allocate(const ContextPtr& context, size_t bytes) {
  if (context->spec.max_alloc_bytes > 0 && bytes > static_cast<size_t>(context->spec.max_alloc_bytes))
    throw Error(Code::kOutOfMemory, fmt::format("{}: {} bytes in one buffer, but the device gives at most {}",
                                                context->spec.id, bytes, context->spec.max_alloc_bytes));
  const size_t held = (bytes + kAlignment - 1) / kAlignment * kAlignment + (bytes == 0 ? kAlignment : 0);
  cl_int code = kClSuccess;
  cl_mem handle = context->api.CreateBuffer(context->handle, kMemReadWrite, held, nullptr, &code);
  if (code == kClOutOfResources || code == kClInvalidBufferSize) code = kClMemObjectAllocationFailure;
  check(code, fmt::format("{}: allocating {} bytes", context->spec.id, bytes));
  return std::make_shared<ClBuffer>(context, handle, bytes, held);
}

namespace {

// Pages of a fenced buffer; the driver gives them back, since a kernel that still runs may hold the buffer.
struct Pages {
  void* begin;
  size_t bytes;
};
void unmap(cl_mem, void* pages_pointer) {
  auto* pages = static_cast<Pages*>(pages_pointer);
  munmap(pages->begin, pages->bytes);
  delete pages;
}

}  // namespace

BufferPtr allocate_fenced(const ContextPtr& context, size_t bytes) {
  constexpr size_t kPage = 4096;  // every x86-64
  if (!context->spec.is_cpu) return nullptr;
  const size_t held = (bytes + kFenceAlignment - 1) / kFenceAlignment * kFenceAlignment;
  const size_t usable = (held + kPage - 1) / kPage * kPage;
  void* begin = mmap(nullptr, usable + kPage, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED)
    throw Error(Code::kOutOfMemory, fmt::format("{}: allocating {} bytes", context->spec.id, bytes));
  auto* pages = new Pages{begin, usable + kPage};
  auto* at = static_cast<char*>(begin);
  cl_int code = kClSuccess;
  cl_mem handle = nullptr;
  if (held > 0 && mprotect(at + usable, kPage, PROT_NONE) == 0)
    handle = context->api.CreateBuffer(context->handle, kMemReadWrite | kMemUseHostPtr, held,
                                       at + usable - held, &code);
  if (!handle || code != kClSuccess ||
      context->api.SetMemObjectDestructorCallback(handle, unmap, pages) != kClSuccess) {
    if (handle && code == kClSuccess) context->api.ReleaseMemObject(handle);
    unmap(nullptr, pages);
    return nullptr;
  }
  return std::make_shared<ClBuffer>(context, handle, held, held);
}

BufferPtr wrap(const ContextPtr& context, void* native, size_t bytes) {
  auto handle = static_cast<cl_mem>(native);
  size_t held = 0;
  check(context->api.GetMemObjectInfo(handle, kMemSize, sizeof(held), &held, nullptr),
        "asking the caller's buffer for its size");
  if (held < bytes)
    throw Error(Code::kInvalidArgument,
                fmt::format("the caller's buffer has {} bytes, but {} are needed", held, bytes));
  check(context->api.RetainMemObject(handle), "keeping the caller's buffer");
  return std::make_shared<ClBuffer>(context, handle, bytes, held);
}

ClBuffer& checked(const BufferSpan& span, const char* doing) {
  auto* buffer = dynamic_cast<ClBuffer*>(span.buffer.get());
  if (!buffer) throw Error(Code::kInternal, fmt::format("{}: not a buffer of an OpenCL device", doing));
  if (span.offset > buffer->bytes() || span.bytes > buffer->bytes() - span.offset)
    throw Error(Code::kInternal, fmt::format("{}: bytes {} to {} of a buffer of {}", doing, span.offset,
                                             span.offset + span.bytes, buffer->bytes()));
  return *buffer;
}

cl_mem argument(const Context& context, const BufferSpan& span) {
  if (span.bytes == 0) return context.empty;
  return checked(span, "passing a kernel argument").part(span.offset, span.bytes);
}

}  // namespace thrice::backend::opencl
