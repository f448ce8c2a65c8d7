#include "exec/kept_buffers.h"

namespace thrice::exec {

backend::BufferPtr KeptBuffers::get(const std::string& key, const Make& make) {
  const std::lock_guard lock(mutex_);
  const auto it = buffers_.find(key);
  if (it != buffers_.end()) return it->second;
  backend::BufferPtr made = make();
  buffers_[key] = made;
  return made;
}

int64_t KeptBuffers::bytes() const {
  const std::lock_guard lock(mutex_);
  int64_t total = 0;
  for (const auto& [key, buffer] : buffers_) total += static_cast<int64_t>(buffer->bytes());
  return total;
}

}  // namespace thrice::exec
