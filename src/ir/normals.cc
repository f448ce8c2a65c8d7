#include "ir/normals.h"

#include <bit>
#include <cmath>

namespace thrice::ir {
namespace {

constexpr double kLog2High = 0x1.62e42feep-1, kLog2Low = 0x1.a39ef35793c76p-33;  // their sum is log 2

// log x for a normal x > 0: x = 2^e m with m in [sqrt(1/2), sqrt(2)), log m = 2 artanh((m - 1) / (m + 1)) by
// its series, whose thirteenth term is below 2^-60.
[[gnu::always_inline]] inline double log_of(double x) {
  constexpr uint64_t kOne = 0x3ff0000000000000u, kRootHalf = 0x3fe6a09e667f3bcdu,
                     kMantissa = 0xfffffffffffffu;
  const uint64_t shifted = std::bit_cast<uint64_t>(x) + (kOne - kRootHalf);
  // The exponent as a double without a conversion that vectors lack: it is not negative here.
  constexpr uint64_t kTwo52 = 0x4330000000000000u;
  const double e = std::bit_cast<double>((shifted >> 52) | kTwo52) - (0x1p52 + 1023);
  const double m = std::bit_cast<double>((shifted & kMantissa) + kRootHalf);
  const double s = (m - 1) / (m + 1), z = s * s;
  double p = 1.0 / 25;
  p = p * z + 1.0 / 23;
  p = p * z + 1.0 / 21;
  p = p * z + 1.0 / 19;
  p = p * z + 1.0 / 17;
  p = p * z + 1.0 / 15;
  p = p * z + 1.0 / 13;
  p = p * z + 1.0 / 11;
  p = p * z + 1.0 / 9;
  p = p * z + 1.0 / 7;
  p = p * z + 1.0 / 5;
  p = p * z + 1.0 / 3;
  return e * kLog2High + (2 * s + (2 * s * z * p + e * kLog2Low));
}

// cos(2 pi v) for v in [0, 1): -sin(2 pi (1/4 - |v - 1/2|)), an angle of at most a quarter turn, by its
// series.
[[gnu::always_inline]] inline double cos_turns(double v) {
  constexpr double kTwoPi = 6.283185307179586477;
  const double x = kTwoPi * (0.25 - std::fabs(v - 0.5)), z = x * x;
  double p = -1.0 / 25852016738884976640000.0;  // 23!
  p = p * z + 1.0 / 51090942171709440000.0;
  p = p * z - 1.0 / 121645100408832000.0;
  p = p * z + 1.0 / 355687428096000.0;
  p = p * z - 1.0 / 1307674368000.0;
  p = p * z + 1.0 / 6227020800.0;
  p = p * z - 1.0 / 39916800.0;
  p = p * z + 1.0 / 362880.0;
  p = p * z - 1.0 / 5040.0;
  p = p * z + 1.0 / 120.0;
  p = p * z - 1.0 / 6.0;
  return -(x + x * (z * p));
}

[[gnu::always_inline]] inline void normals_body(int64_t n, const double* __restrict u,
                                                const double* __restrict v, double* __restrict to) {
  for (int64_t i = 0; i < n; ++i) to[i] = std::sqrt(-2 * log_of(1 - u[i])) * cos_turns(v[i]);
}

void normals_plain(int64_t n, const double* u, const double* v, double* to) { normals_body(n, u, v, to); }
#if defined(__x86_64__)
[[gnu::target("avx2")]] void normals_avx2(int64_t n, const double* u, const double* v, double* to) {
  normals_body(n, u, v, to);
}
#endif

}  // namespace

void normals(int64_t n, const double* u, const double* v, double* to) {
#if defined(__x86_64__)
  static const bool wide = __builtin_cpu_supports("avx2");
  if (wide) return normals_avx2(n, u, v, to);
#endif
  normals_plain(n, u, v, to);
}

}  // namespace thrice::ir
