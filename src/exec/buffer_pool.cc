#include "exec/buffer_pool.h"

#include <thrice/status.h>

#include <algorithm>

namespace thrice::exec {

using backend::Buffer;
using backend::BufferPtr;

struct BufferPool::State {
  backend::DevicePtr device;
  std::mutex mutex;
  std::multimap<size_t, BufferPtr> free;  // by size
  int64_t in_use = 0, peak = 0;

  // Where the device has no room, buffers that lie idle here are let go of, and it is asked again.
  BufferPtr allocate(size_t bytes) {
    try {
      try {
        return device->allocate(bytes);
      } catch (const Error& error) {
        if (error.code() != Code::kOutOfMemory) throw;
        std::lock_guard lock(mutex);
        if (free.empty()) throw;
        free.clear();
      }
      return device->allocate(bytes);
    } catch (...) {
      std::lock_guard lock(mutex);
      in_use -= static_cast<int64_t>(bytes);
      throw;
    }
  }
};

size_t pooled_bytes(size_t bytes) {
  size_t step = backend::kAlignment;
  while (step * 256 < bytes) step *= 2;
  return std::max<size_t>((bytes + step - 1) / step * step, backend::kAlignment);
}

BufferPool::BufferPool(backend::DevicePtr device) : state_(std::make_shared<State>()) {
  state_->device = std::move(device);
}

backend::BufferSpan BufferPool::take(size_t bytes) {
  const size_t wanted = pooled_bytes(bytes);
  BufferPtr buffer;
  {
    std::lock_guard lock(state_->mutex);
    const auto it = state_->free.find(wanted);
    if (it != state_->free.end()) {
      buffer = std::move(it->second);
      state_->free.erase(it);
    }
    state_->in_use += static_cast<int64_t>(wanted);
    state_->peak = std::max(state_->peak, state_->in_use);
  }
  if (!buffer) buffer = state_->allocate(wanted);
  Buffer* raw = buffer.get();
  const std::weak_ptr<State> state = state_;
  // The deleter keeps the real owner and gives it back to the pool where that still lives.
  BufferPtr lent(raw, [state, buffer, wanted](Buffer*) mutable {
    if (const auto pool = state.lock()) {
      std::lock_guard lock(pool->mutex);
      pool->in_use -= static_cast<int64_t>(wanted);
      pool->free.emplace(wanted, std::move(buffer));
    }
  });
  return {lent, 0, bytes};
}

int64_t BufferPool::peak_bytes() const {
  std::lock_guard lock(state_->mutex);
  return state_->peak;
}

}  // namespace thrice::exec
