// A convolution that a vendor's library computes in place of a kernel of ours: a symbol among a program's
// kernels, as library_product.h.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

namespace thrice::artifact {

// y = x * w without bias (cross-correlation, as ONNX means it); f32, sums in f32; all tensors dense: x
// [batch, channels, in...], w [outputs, channels / groups, kernel...], y [batch, outputs, out...].
struct LibraryConvolution {
  int spatial = 2;  // axes that windows slide along, 1 to 3
  // Positions among the buffers of a launch. The workspace may be of zero bytes.
  int x = 0, w = 0, y = 0, workspace = 0;

  bool uses(int buffer) const { return buffer == x || buffer == w || buffer == y || buffer == workspace; }
  std::string symbol() const;  // "cudnn:f32:2:0:1:2:3"
  // Inverse; nullopt for other symbols. Throws kCorrupt.
  static std::optional<LibraryConvolution> parse(const std::string& symbol);
  bool operator==(const LibraryConvolution&) const = default;
};

// What the integers of its launch mean: these, then kAxisCount for each spatial axis. The pad is the same at
// both ends. The algorithm is a place among those of the library's list that take these extents and keep
// float32's accuracy, best guess first; places behind its end mean the last: a schedule serves every extent.
struct ConvolutionExtents {
  enum : size_t { kBatch, kGroups, kGroupChannels, kOutputs, kAlgorithm, kAxes };
  enum : size_t { kIn, kOut, kKernel, kStride, kDilation, kPad, kAxisCount };
  static size_t count(int spatial) { return kAxes + static_cast<size_t>(spatial) * kAxisCount; }
  static size_t axis(size_t which, size_t what) { return kAxes + which * kAxisCount + what; }
};

}  // namespace thrice::artifact
