// How the tiles of gemm_mma.h lie in shared memory and come there, and what the limits of a device say about
// them.
#pragma once
#include "family/gemm.h"

namespace thrice::family {

// A tile in shared memory: `along` elements next to each other, `across` lines `pitch` apart. The pads make
// the 32 threads of a warp meet 32 banks when they read fragments. Of 32 bits: lines of the depth are read by
// pairs of neighbours (pitch = 8 or 24 modulo 32), lines of rows or columns two at a time (pitch = 4 modulo
// 16). Of 16 bits: eight lines of 16 bytes at once (an odd number of these a line).
struct TileLayout {
  bool along_depth = false;
  int64_t along = 0, across = 0, pitch = 0;
  int64_t size() const { return across * pitch; }
};

// How one operand comes into its tile: `width` neighbours a copy, asynchronous or through registers.
struct TileLoads {
  TileLayout layout;
  bool async = false;
  int64_t width = 1, count = 0;  // copies a thread

  // Text of the position along the line, of the line, and of the place in the tile, of copy number t of a
  // thread.
  std::string along() const;
  std::string line(int64_t threads) const;
  std::string at(int64_t threads) const;
};

struct MmaTiles {
  int64_t bm, bn, bk, warps_m, warps_n, stages, split, shares;
  int64_t element_bytes;  // in shared memory: 4, or 2 where the product is of 16-bit elements
  TileLoads a, b;
  int64_t threads() const { return 32 * warps_m * warps_n; }
  int64_t wm() const { return bm / warps_m; }
  int64_t wn() const { return bn / warps_n; }
  int64_t buffer() const { return a.layout.size() + b.layout.size(); }  // elements a stage
  int64_t c_pitch() const { return bn + 4; }
  int64_t shared_bytes() const;
};

MmaTiles mma_tiles(const Gemm& gemm, const Schedule& schedule);
// False where `threads` do not load the tile in whole turns of `width` elements.
bool in_whole_turns(const TileLayout& layout, int64_t width, int64_t threads);
// 90 of "sm_90a"; 0 of anything else.
int generation(const DeviceSpec& device);
bool has_clusters(const DeviceSpec& device);

}  // namespace thrice::family
