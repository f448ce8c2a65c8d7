// Binding a segment: concrete shapes -> launches with buffers, arena offsets and parameter block. Made once
// per new shape, then replayed.
#pragma once
#include <memory>
#include <vector>

#include "exec/executable.h"
#include "exec/facts.h"

namespace thrice::exec {

// Which buffer a launch argument is, once storage is shared by aliases.
enum class Storage {
  kArena,    // temporary within the segment
  kOutside,  // made before the segment: graph input, constant, carried value; known by its value id
  kCarried,  // made here and read later or returned: a pool buffer a run
  kKept,     // scratch that outlives runs (kept_buffers.h)
  kPacked,   // a weight that only launches of `once` read: on the device while they run
  kUnused,   // the kernel never touches it
};

struct BoundArgument {
  Storage storage = Storage::kArena;
  ir::ValueId value = ir::kNoValue;  // kOutside, kCarried, kPacked: representative value of the storage
  int64_t offset = 0;                // kArena, kKept
  size_t kept = 0;                   // kKept: which of the segment's
  int64_t bytes = 0;
};
struct BoundLaunch {
  backend::ProgramPtr program;
  artifact::Launch launch;
  std::vector<BoundArgument> arguments;
  int64_t extents_offset = 0;  // into the parameter block, bytes
};
struct BoundStep {
  size_t first_launch = 0, num_launches = 0;
};
struct BoundValue {
  ir::ValueId value;
  DType dtype;
  std::vector<int64_t> shape;
  BoundArgument where;
};
// A temporary in the arena, from its first launch to its last.
struct BoundPiece {
  size_t step = 0;          // of the segment: who makes it
  bool is_scratch = false;  // within one region; else a value
  int64_t bytes = 0, offset = 0;
  int first = 0, last = 0;  // of `num_moments`
};
// What launches of `once` make of weights, in a buffer of its own.
struct BoundKept {
  std::string key;  // equal keys: the same kernels, launched alike, on the same weights
  int64_t bytes = 0;
  std::vector<size_t> once;  // that fill it
};
struct BoundSegment {
  std::vector<BoundStep> steps;  // index-aligned with the segment's steps
  std::vector<BoundLaunch> launches;
  std::vector<BoundLaunch> once;  // fill the kept buffers, in order, before the first of `launches`
  std::vector<BoundKept> kept;
  std::vector<int32_t> extents;  // the whole parameter block
  std::vector<BoundValue>
      results;  // every value that a step of the segment makes (for results, carried values, and observers)
  std::vector<BoundArgument> carried;  // distinct storages to take from the pool at each run
  std::vector<BoundPiece> pieces;      // of the arena
  int num_moments = 0;                 // launches, one after the other; a step without any counts as one
  int64_t arena_bytes = 0, arena_lower_bound = 0;
};

// `escapes[v]`: value v is read after the segment or returned to the caller. Steps of kind kHost and kControl
// are not bound here.
BoundSegment bind_segment(const Executable& code, size_t segment, RunFacts& facts,
                          const std::vector<uint8_t>& escapes);

}  // namespace thrice::exec
