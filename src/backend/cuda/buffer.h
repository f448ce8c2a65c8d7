// Device memory of a CUDA context.
#pragma once
#include "backend/backend.h"
#include "backend/cuda/context.h"

namespace thrice::backend::cuda {

BufferPtr allocate(const ContextPtr& context, size_t bytes);
// Mapped memory whose neighbour is reserved and not mapped; nullptr where the driver cannot.
BufferPtr allocate_fenced(const ContextPtr& context, size_t bytes);
BufferPtr wrap(const ContextPtr& context, void* native, size_t bytes);
// The address of a span after checking that it lies inside its buffer; a span of zero bytes gets the
// stand-in.
CUdeviceptr address(const Context& context, const BufferSpan& span);

}  // namespace thrice::backend::cuda
