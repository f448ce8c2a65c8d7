// Scratch that outlives a run: what launches with `once` made of a model's weights (packed copies). Made at
// the first run that needs it, shared by all executors of an Executable.
#pragma once
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "backend/backend.h"

namespace thrice::exec {

class KeptBuffers {
 public:
  using Make = std::function<backend::BufferPtr()>;
  // The buffer called `key`. `make` allocates and fills it, and waits until it is filled; it is called by the
  // first who asks, while others wait. When it throws nothing is kept. Threads: safe.
  backend::BufferPtr get(const std::string& key, const Make& make);
  int64_t bytes() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, backend::BufferPtr> buffers_;
};

}  // namespace thrice::exec
