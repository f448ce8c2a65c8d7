// How much device memory a plan takes, without a device: the same binding as a run's.
#pragma once
#include <string>
#include <vector>

#include "exec/bind.h"
#include "exec/executor.h"

namespace thrice::exec {

struct SegmentMemory {
  size_t segment = 0;
  std::vector<BoundPiece> pieces;  // of the arena
  std::vector<int> first_moment;   // by step
  int num_moments = 0;
  int64_t arena_bytes = 0, lower_bound = 0;
};
// One temporary that is alive where the arena is fullest.
struct Holder {
  std::string step;  // who makes it: "Conv + Relu"
  bool is_scratch = false;
  int64_t bytes = 0;
};
struct PredictedMemory {
  MemoryUse use;
  std::vector<SegmentMemory> segments;  // those that launch
  std::string fullest;                  // the step at work where the arena is fullest; "" = no temporaries
  std::vector<Holder> holders;          // what is alive then, largest first
  std::string missing;  // why the sizes of some segments are not known (they count nothing); "" = all are

  int64_t lower_bound() const {
    return use.pool + use.arena_lower_bound + std::max<int64_t>(0, use.held - use.weights);
  }
};

// `code`: of resolve_plan or make_executable. `inputs`: shapes in the order of graph.inputs. Inputs count for
// the whole run, as a caller's tensors do; segments whose extents depend on data, and bodies of control
// steps, cannot be told. Cost: that of binding, some milliseconds a hundred regions.
PredictedMemory predict_memory(const Executable& code, const std::vector<std::vector<int64_t>>& inputs);
// At the extents of symbols.
PredictedMemory predict_memory(const Executable& code, const ir::Bindings& bindings);

}  // namespace thrice::exec
