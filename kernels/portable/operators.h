// Scalar operators of the intermediate form (docs/ops.md) in the language that both preludes define. Names end in
// the type they compute in. Simple arithmetic is written in place by the emitter; here is what needs care.

// --- bfloat16 storage: the upper half of a float, rounded to nearest even; NaN stays NaN.
TH_FN float th_f32_of_bf16(th_u16 h) { return th_f32_of_bits((int)((th_u32)h << 16)); }
TH_FN th_u16 th_bf16_of_f32(float x) {
#if defined(TH_CUDA) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  th_u16 h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
#else
  const th_u32 bits = (th_u32)th_bits_of_f32(x);
  if (x != x) return (th_u16)((bits >> 16) | 0x40u);
  return (th_u16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
#endif
}
#define th_load_bf16(p, i) th_f32_of_bf16((p)[i])
#define th_store_bf16(p, i, x) ((p)[i] = th_bf16_of_f32(x))
TH_FN float th_round_f16(float x) { return th_f32_of_f16(th_f16_of_f32(x)); }
TH_FN float th_round_bf16(float x) { return th_f32_of_bf16(th_bf16_of_f32(x)); }

// --- floats. S: suffix, T: type, F(f): spelling of built-in f at T, Z(x): a constant of T.
#define TH_FLOAT_OPERATORS(S, T, F)                                                                  \
  TH_FN T th_fma_##S(T a, T b, T c) { return F(fma)(a, b, c); }                                      \
  TH_FN T th_abs_##S(T x) { return F(fabs)(x); }                                                     \
  TH_FN T th_sign_##S(T x) { return x > (T)0 ? (T)1 : x < (T)0 ? (T)-1 : x; }                        \
  TH_FN T th_floor_##S(T x) { return F(floor)(x); }                                                  \
  TH_FN T th_ceil_##S(T x) { return F(ceil)(x); }                                                    \
  TH_FN T th_round_##S(T x) { return F(rint)(x); }                                                   \
  TH_FN T th_sqrt_##S(T x) { return F(sqrt)(x); }                                                    \
  TH_FN T th_rsqrt_##S(T x) { return (T)1 / F(sqrt)(x); }                                            \
  TH_FN T th_reciprocal_##S(T x) { return (T)1 / x; }                                                \
  TH_FN T th_exp_##S(T x) { return F(exp)(x); }                                                      \
  TH_FN T th_expm1_##S(T x) { return F(expm1)(x); }                                                  \
  TH_FN T th_sin_##S(T x) { return F(sin)(x); }                                                      \
  TH_FN T th_cos_##S(T x) { return F(cos)(x); }                                                      \
  TH_FN T th_tan_##S(T x) { return F(tan)(x); }                                                      \
  TH_FN T th_asin_##S(T x) { return F(asin)(x); }                                                    \
  TH_FN T th_acos_##S(T x) { return F(acos)(x); }                                                    \
  TH_FN T th_atan_##S(T x) { return F(atan)(x); }                                                    \
  TH_FN T th_sinh_##S(T x) { return F(sinh)(x); }                                                    \
  TH_FN T th_cosh_##S(T x) { return F(cosh)(x); }                                                    \
  TH_FN T th_asinh_##S(T x) { return F(asinh)(x); }                                                  \
  TH_FN T th_acosh_##S(T x) { return F(acosh)(x); }                                                  \
  TH_FN T th_atanh_##S(T x) { return F(atanh)(x); }                                                  \
  TH_FN T th_sigmoid_##S(T x) { return (T)1 / ((T)1 + F(exp)(-x)); }                                 \
  TH_FN T th_relu_##S(T x) { return x < (T)0 ? (T)0 : x; }                                           \
  TH_FN T th_min_##S(T a, T b) { return (a < b || a != a) ? a : b; }                                 \
  TH_FN T th_max_##S(T a, T b) { return (a > b || a != a) ? a : b; }                                 \
  TH_FN T th_fmod_##S(T a, T b) { return F(fmod)(a, b); }                                            \
  TH_FN T th_mod_##S(T a, T b) {                                                                     \
    const T r = F(fmod)(a, b);                                                                       \
    return (r != (T)0 && ((r < (T)0) != (b < (T)0))) ? r + b : r;                                    \
  }                                                                                                  \
  TH_FN T th_pow_##S(T a, T b) { return F(pow)(a, b); }
TH_FLOAT_OPERATORS(f32, float, TH_F32)
#if defined(TH_CUDA) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
TH_FN float th_top_f32(float a, float b) {  // th_max_f32 in one instruction; which NaN, and which zero, is left open
  float x;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b));
  return x;
}
#else
TH_FN float th_top_f32(float a, float b) { return th_max_f32(a, b); }
#endif
#define TH_LIBRARY_OPERATORS(S, T, F)                                                                \
  TH_FN T th_tanh_##S(T x) { return F(tanh)(x); }                                                    \
  TH_FN T th_erf_##S(T x) { return F(erf)(x); }                                                      \
  TH_FN T th_log_##S(T x) { return F(log)(x); }                                                      \
  TH_FN T th_log1p_##S(T x) { return F(log1p)(x); }
#ifdef TH_HAS_F64
TH_FLOAT_OPERATORS(f64, double, TH_F64)
TH_LIBRARY_OPERATORS(f64, double, TH_F64)
#endif
#ifdef TH_CUDA
TH_LIBRARY_OPERATORS(f32, float, TH_F32)
#else
// Without branches, so that CPU compilers vectorise loops over them (PoCL's own scalar ones take 40 ns an element
// and more). Polynomials are near-minimax fits; errors stay within some 2 units in the last place.
TH_FN float th_tanh_f32(float x) {
  const float a = fabs(x), z = x * x;
  float p = -0x1.624ed6p-8f;
  p = fma(p, z, 0x1.4d876ep-6f);
  p = fma(p, z, -0x1.b778fp-5f);
  p = fma(p, z, 0x1.110082p-3f);
  p = fma(p, z, -0x1.555508p-2f);
  const float near = fma(p * z, x, x);
  const float far = 1.0f - 2.0f / (exp(2.0f * a) + 1.0f);
  return a < 0.65f ? near : x < 0.0f ? -far : far;
}
TH_FN float th_erf_f32(float x) {
  const float a = fabs(x), z = x * x;
  float p = 0x1.4ae4c6p-14f;
  p = fma(p, z, -0x1.a485e8p-11f);
  p = fma(p, z, 0x1.5419f4p-8f);
  p = fma(p, z, -0x1.b7fbb4p-6f);
  p = fma(p, z, 0x1.ce2d2p-4f);
  p = fma(p, z, -0x1.81273ep-2f);
  p = fma(p, z, 0x1.20dd74p+0f);
  const float b = a < 4.0f ? a : 4.0f;  // erf is 1 from there on
  float g = -0x1.0ddc1cp-22f;           // erfc(b) = exp(-g)
  g = fma(g, b, 0x1.a8b644p-16f);
  g = fma(g, b, -0x1.e65126p-12f);
  g = fma(g, b, 0x1.18a676p-8f);
  g = fma(g, b, -0x1.9fb868p-6f);
  g = fma(g, b, 0x1.bcfc3ep-4f);
  g = fma(g, b, 0x1.441dc4p-1f);
  g = fma(g, b, 0x1.21317ap+0f);
  g = fma(g, b, -0x1.ac92ep-13f);
  const float far = 1.0f - exp(-g);
  return x != x ? x : a < 1.0f ? p * x : x < 0.0f ? -far : far;
}
TH_FN float th_log_f32(float x) {
  const int tiny = x < 0x1p-126f;
  const int bits = th_bits_of_f32(tiny ? x * 0x1p23f : x);
  const int e = (bits - 0x3f3504f3) >> 23;  // mantissa in [sqrt(1/2), sqrt(2))
  const float f = th_f32_of_bits(bits - (int)((th_u32)e << 23)) - 1.0f;
  const float scale = (float)(tiny ? e - 23 : e);
  float p = -0x1.412b0ap-4f;
  p = fma(p, f, 0x1.0a0606p-3f);
  p = fma(p, f, -0x1.0e3326p-3f);
  p = fma(p, f, 0x1.221bc8p-3f);
  p = fma(p, f, -0x1.543e86p-3f);
  p = fma(p, f, 0x1.99a91p-3f);
  p = fma(p, f, -0x1.0003aep-2f);
  p = fma(p, f, 0x1.555544p-2f);
  p = fma(p, f, -0x1.fffffap-2f);
  const float r = fma(scale, 0x1.62e4p-1f, f + fma(p * f, f, scale * 0x1.7f7d1cp-20f));
  return x > 0.0f ? (x < TH_INF_F32 ? r : x) : x == 0.0f ? -TH_INF_F32 : TH_NAN_F32;
}
TH_FN float th_log1p_f32(float x) {
  const float u = 1.0f + x, c = (x - (u - 1.0f)) / u;  // what the sum lost
  return th_log_f32(u) + (c == c ? c : 0.0f);
}
#endif

// --- integers. S: suffix, T: type, U: unsigned type of at least 32 bits, W: width. Wrapping; x / 0 = 0.
#define TH_INT_OPERATORS(S, T, U, W)                                                                 \
  TH_FN T th_min_##S(T a, T b) { return a < b ? a : b; }                                             \
  TH_FN T th_max_##S(T a, T b) { return a > b ? a : b; }                                             \
  TH_FN T th_shl_##S(T a, T b) { return (U)b >= (U)W ? (T)0 : (T)((U)a << (U)b); }                   \
  TH_FN T th_ipow_##S(T x, th_i64 n) {                                                               \
    U base = (U)x, result = (U)1;                                                                    \
    if (n < 0) return x == (T)1 ? (T)1 : (x == (T)-1 && x < (T)1) ? ((n & 1) ? x : (T)1) : (T)0;     \
    for (; n > 0; n >>= 1) {                                                                         \
      if (n & 1) result *= base;                                                                     \
      base *= base;                                                                                  \
    }                                                                                                \
    return (T)result;                                                                                \
  }
#define TH_SIGNED_OPERATORS(S, T, U, V, W)                                                           \
  TH_INT_OPERATORS(S, T, U, W)                                                                       \
  TH_FN T th_shr_##S(T a, T b) { return (U)b >= (U)W ? (T)0 : (T)((V)a >> (U)b); }                   \
  TH_FN T th_div_##S(T a, T b) { return b == 0 ? (T)0 : b == -1 ? (T)((U)0 - (U)a) : (T)(a / b); }   \
  TH_FN T th_fmod_##S(T a, T b) { return (b == 0 || b == -1) ? (T)0 : (T)(a % b); }                  \
  TH_FN T th_mod_##S(T a, T b) {                                                                     \
    const T r = th_fmod_##S(a, b);                                                                   \
    return (r != 0 && ((r < 0) != (b < 0))) ? (T)(r + b) : r;                                        \
  }                                                                                                  \
  TH_FN T th_abs_##S(T x) { return x < 0 ? (T)((U)0 - (U)x) : x; }                                   \
  TH_FN T th_sign_##S(T x) { return (T)((x > 0) - (x < 0)); }
#define TH_UNSIGNED_OPERATORS(S, T, U, W)                                                            \
  TH_INT_OPERATORS(S, T, U, W)                                                                       \
  TH_FN T th_shr_##S(T a, T b) { return (U)b >= (U)W ? (T)0 : (T)((U)a >> (U)b); }                   \
  TH_FN T th_div_##S(T a, T b) { return b == 0 ? (T)0 : (T)(a / b); }                                \
  TH_FN T th_fmod_##S(T a, T b) { return b == 0 ? (T)0 : (T)(a % b); }                               \
  TH_FN T th_mod_##S(T a, T b) { return b == 0 ? (T)0 : (T)(a % b); }                                \
  TH_FN T th_abs_##S(T x) { return x; }                                                              \
  TH_FN T th_sign_##S(T x) { return (T)(x > 0); }
TH_SIGNED_OPERATORS(i8, th_i8, th_u32, th_u8, 8)
TH_SIGNED_OPERATORS(i16, th_i16, th_u32, th_u16, 16)
TH_SIGNED_OPERATORS(i32, th_i32, th_u32, th_u32, 32)
TH_SIGNED_OPERATORS(i64, th_i64, th_u64, th_u64, 64)
TH_UNSIGNED_OPERATORS(u8, th_u8, th_u32, 8)
TH_UNSIGNED_OPERATORS(u16, th_u16, th_u32, 16)
TH_UNSIGNED_OPERATORS(u32, th_u32, th_u32, 32)
TH_UNSIGNED_OPERATORS(u64, th_u64, th_u64, 64)

// A float to an integer: truncated, clamped to the type's limits, NaN to 0. LOW and ABOVE are exact floats.
#define TH_FLOAT_TO_INT(S, T, FS, F, LOW, ABOVE, MIN, MAX)                                           \
  TH_FN T th_##S##_of_##FS(F x) {                                                                    \
    return x != x ? (T)0 : x <= (F)LOW ? (T)MIN : x >= (F)ABOVE ? (T)MAX : (T)x;                     \
  }
#define TH_FLOAT_TO_INTS(FS, F)                                                                      \
  TH_FLOAT_TO_INT(i8, th_i8, FS, F, -128, 127, -128, 127)                                            \
  TH_FLOAT_TO_INT(i16, th_i16, FS, F, -32768, 32767, -32768, 32767)                                  \
  TH_FLOAT_TO_INT(i32, th_i32, FS, F, -2147483648.0f, 2147483648.0f, -2147483647 - 1, 2147483647)    \
  TH_FLOAT_TO_INT(i64, th_i64, FS, F, -9223372036854775808.0f, 9223372036854775808.0f,               \
                  -9223372036854775807L - 1L, 9223372036854775807L)                                  \
  TH_FLOAT_TO_INT(u8, th_u8, FS, F, 0, 255, 0, 255)                                                  \
  TH_FLOAT_TO_INT(u16, th_u16, FS, F, 0, 65535, 0, 65535)                                            \
  TH_FLOAT_TO_INT(u32, th_u32, FS, F, 0, 4294967296.0f, 0, 4294967295u)                              \
  TH_FLOAT_TO_INT(u64, th_u64, FS, F, 0, 18446744073709551616.0f, 0, 18446744073709551615UL)
TH_FLOAT_TO_INTS(f32, float)
#ifdef TH_HAS_F64
TH_FLOAT_TO_INTS(f64, double)
#endif

// --- indices
// A data index: negative counts from the end, anything outside is clamped into 0 .. n-1.
TH_FN int th_index(th_i64 i, int n) {
  if (i < 0) i += n;
  if (i >= n) i = (th_i64)n - 1;
  return i < 0 ? 0 : (int)i;
}
// The same where the caller drops what is outside: -1.
TH_FN int th_index_or_none(th_i64 i, int n) {
  if (i < 0) i += n;
  return (i < 0 || i >= n) ? -1 : (int)i;
}
// Positions outside 0 .. n-1 of padding modes.
TH_FN int th_clamp(int i, int n) { return i < 0 || n <= 0 ? 0 : i >= n ? n - 1 : i; }
TH_FN int th_reflect(int i, int n) {
  const int period = 2 * (n - 1);
  if (n <= 1) return 0;
  i %= period;
  if (i < 0) i += period;
  return i < n ? i : period - i;
}
TH_FN int th_wrap(int i, int n) {
  if (n <= 0) return 0;
  i %= n;
  return i < 0 ? i + n : i;
}
TH_FN int th_min_int(int a, int b) { return a < b ? a : b; }
TH_FN int th_max_int(int a, int b) { return a > b ? a : b; }
