// Standard normal numbers from uniform ones, many at a time. Only exact arithmetic operations, in one order:
// the same bits on every machine, which a C library's logarithm does not promise.
#pragma once
#include <cstdint>

namespace thrice::ir {

// to[i] = sqrt(-2 log(1 - u[i])) cos(2 pi v[i]) (Box-Muller), u and v in [0, 1) with 53 bits; within 1e-15
// of the radius. `to` is an array of its own.
void normals(int64_t n, const double* u, const double* v, double* to);

}  // namespace thrice::ir
