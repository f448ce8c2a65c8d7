// What the tensor copy engine of sm_90 and newer is told of one buffer argument: a tensor of up to three axes
// of 16-bit elements, read in boxes. The driver encodes it with the buffer's address; the kernel gets the
// result as an argument of its own after the extents, in the order of Launch::maps.
#pragma once
#include <array>
#include <cstdint>

namespace thrice::artifact {

struct TensorMap {
  int buffer = 0;                           // position among the kernel's buffer arguments
  std::array<int64_t, 3> extents{1, 1, 1};  // elements, the axis whose neighbours follow in memory first
  std::array<int64_t, 2> strides{0, 0};     // bytes from one index of the second and third axis to the next;
                                            // multiples of 16
  std::array<int64_t, 3> box{1, 1, 1};      // elements a copy brings, at most 256 an axis; the first axis is
                                        // one line of the 128-byte swizzle. Beyond the tensor it brings zeros
};

}  // namespace thrice::artifact
