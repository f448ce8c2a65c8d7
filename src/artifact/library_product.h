// A matrix product that a vendor's library computes in place of a kernel of ours. It stands among the kernels
// of a program under a symbol that describes it, so text, binaries, caches and releases need to know nothing
// of it: families write the symbol, a back end that has the library calls it, others refuse the program.
#pragma once
#include <thrice/dtype.h>

#include <optional>
#include <string>

namespace thrice::artifact {

// result[z] = A[z] * B[z], all matrices dense and row-major; sums in f32 for f32, f16 and bf16, in f64 for
// f64.
struct LibraryProduct {
  DType dtype = DType::kF32;              // of A and B: f32 f64 f16 bf16
  DType result = DType::kF32;             // dtype, or f32 for the 16-bit types
  bool trans_a = false, trans_b = false;  // A is stored [depth, rows], B is stored [cols, depth]
  // Positions among the buffers of a launch. The workspace may be of zero bytes.
  int a = 0, b = 0, product = 0, workspace = 0;

  bool uses(int buffer) const {
    return buffer == a || buffer == b || buffer == product || buffer == workspace;
  }
  std::string symbol() const;  // "cublaslt:f16:f32:nt:0:1:2:3"
  // Inverse; nullopt for other symbols. Throws kCorrupt.
  static std::optional<LibraryProduct> parse(const std::string& symbol);
  bool operator==(const LibraryProduct&) const = default;
};

// What the integers of its launch mean. Steps are elements from one batch's matrix to the next, 0 = one
// matrix for all; the algorithm is a place in the library's own list for these extents, best guess first, and
// places behind its end mean the last: a schedule serves every extent.
struct ProductExtents {
  enum : size_t { kBatches, kRows, kCols, kDepth, kStepA, kStepB, kAlgorithm, kCount };
};

}  // namespace thrice::artifact
