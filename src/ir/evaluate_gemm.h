// Serial matrix product of the evaluator; callers split the work over threads.
#pragma once
#include <cstdint>

namespace thrice::ir {

// A matrix with a stride an axis, so that transposes need no copy.
template <class T>
struct MatrixView {
  const T* data;
  int64_t row, column;  // strides in elements
};

// c[m, n] += a[m, k] b[k, n]; c is row-major with `ldc` elements a row. The double form packs blocks for the
// cache and uses AVX2 or AVX-512 where the processor has them (the same bits); the integer form wraps.
void gemm(int64_t m, int64_t n, int64_t k, MatrixView<double> a, MatrixView<double> b, double* c,
          int64_t ldc);
void gemm(int64_t m, int64_t n, int64_t k, MatrixView<int64_t> a, MatrixView<int64_t> b, int64_t* c,
          int64_t ldc);

}  // namespace thrice::ir
