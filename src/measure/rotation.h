// Cold caches: copies of a candidate's buffers, of which each execution of a sample takes the next, and a
// copy beside them that drives out what the L2 cache holds.
#pragma once
#include <memory>
#include <vector>

#include "measure/arguments.h"
#include "measure/timing.h"

namespace thrice::measure {

class Rotation {
 public:
  // `first`: prepared, the launches of a model's first run done. `spec().l2_bytes` must be known.
  // `flush`: of the place, made where it is missing. Errors: kOutOfMemory.
  Rotation(backend::Device& device, backend::Stream& stream, const Arguments& first,
           backend::BufferPtr& flush);
  // Valid while this lives.
  Timed timed();
  int sets() const { return static_cast<int>(replays_.size()); }
  // What the last execution left, inputs included, goes into the first set, where it is judged.
  void bring_back();

 private:
  backend::Stream& stream_;
  std::vector<backend::BufferSpan> home_;                // of the first set, by argument
  std::vector<std::vector<backend::BufferSpan>> spans_;  // of each copy
  std::vector<std::unique_ptr<backend::Replay>> replays_;
  backend::BufferPtr flush_;
  size_t next_ = 0, last_ = 0;
};

}  // namespace thrice::measure
