// Device buffers that come back: no allocation once a run's sizes have been seen.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "backend/backend.h"

namespace thrice::exec {

// What a buffer of the pool takes: sizes are rounded so that neighbouring lengths share buffers, to
// kAlignment up to 128 KiB, beyond that to between a 128th and a 256th of the size.
size_t pooled_bytes(size_t bytes);

// Hands out buffers of at least the asked size; a buffer returns to the pool when its last owner lets go.
// Reuse is safe on one in-order stream only: one pool a stream. Threads: safe. The pool may die before its
// buffers.
class BufferPool {
 public:
  explicit BufferPool(backend::DevicePtr device);
  // A span of exactly `bytes` (zero is legal). Throws kOutOfMemory.
  backend::BufferSpan take(size_t bytes);
  int64_t peak_bytes() const;  // most bytes in use at one time

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace thrice::exec
