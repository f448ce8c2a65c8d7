// CUDA C++ side of the portable kernel language, for NVRTC without any header. Its twin is opencl/prelude.cl;
// kernels/portable/operators.h follows.
#define TH_HAS_F64 1
#define TH_CUDA 1
#pragma nv_diag_suppress 177  // helpers that a program does not use
typedef signed char th_i8;
typedef short th_i16;
typedef int th_i32;
typedef long long th_i64;
typedef unsigned char th_u8;
typedef unsigned short th_u16;
typedef unsigned int th_u32;
typedef unsigned long long th_u64;

#define TH_KERNEL extern "C" __global__ void
#define TH_KERNEL_THREADS(n) extern "C" __global__ void __launch_bounds__(n)
#define TH_KERNEL_ALONE(n) extern "C" __global__ void __launch_bounds__(n, 1)
#define TH_FN static __device__ __forceinline__
#define TH_GLOBAL
#define TH_LOCAL __shared__
#define TH_LOCAL_PTR
#define TH_CONSTANT static __constant__
#define TH_RESTRICT __restrict__
// Blocks that share their memories. Older cards launch the same grid without: there the first block of each `n` does the work.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define TH_HAS_CLUSTERS 1
#define TH_CLUSTER(n) __cluster_dims__(n, 1, 1)
#else
#define TH_HAS_CLUSTERS 0
#define TH_CLUSTER(n)
#endif
// Lanes of a warp that arrive at an mbarrier for all of it, after __syncwarp. One is enough; with 32 racecheck of compute-sanitizer
// can follow (src/worker/race_check.cc; bench/racecheck_probe.cu shows why).
#ifndef TH_ARRIVING_LANES
#define TH_ARRIVING_LANES 1
#endif
// A tensor map as an argument (artifact/tensor_map.h); where there is no copy engine nothing reads it.
struct __align__(64) th_map {
  th_u64 words[16];
};
#define TH_MAP const __grid_constant__ th_map
#define TH_UNROLL _Pragma("unroll")
#define TH_NO_UNROLL _Pragma("unroll 1")
#define TH_BARRIER() __syncthreads()
#define TH_THREAD ((int)threadIdx.x)
#define TH_THREAD_Y ((int)threadIdx.y)
#define TH_THREADS ((int)blockDim.x)
#define TH_THREADS_Y ((int)blockDim.y)
#define TH_BLOCK ((int)blockIdx.x)
#define TH_BLOCK_Y ((int)blockIdx.y)
#define TH_BLOCK_Z ((int)blockIdx.z)
#define TH_BLOCKS ((int)gridDim.x)

// Spelling of a built-in at float and double.
#define TH_F32(name) name##f
#define TH_F64(name) name
#define TH_INF_F32 __int_as_float(0x7f800000)
#define TH_NAN_F32 __int_as_float(0x7fc00000)
#define TH_INF_F64 __longlong_as_double(0x7ff0000000000000ll)
#define TH_NAN_F64 __longlong_as_double(0x7ff8000000000000ll)
TH_FN int th_bits_of_f32(float x) { return __float_as_int(x); }
TH_FN float th_f32_of_bits(int x) { return __int_as_float(x); }

TH_FN float th_f32_of_f16(th_u16 h) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
  return x;
}
TH_FN th_u16 th_f16_of_f32(float x) {
  th_u16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
}
#define th_load_f16(p, i) th_f32_of_f16((p)[i])
#define th_store_f16(p, i, x) ((p)[i] = th_f16_of_f32(x))

// x / y where many x are divided by one y, whose reciprocal the compiler then takes once. Rounded as a division is, but for
// results below the normal range, which may be a unit off.
TH_FN float th_div_by_f32(float x, float y) {
  const float r = 1.0f / y, q = x * r, exact = __fmaf_rn(__fmaf_rn(-q, y, x), r, q);
  return exact == exact ? exact : x / y;
}
// For kernels whose operands and results all have 16 bits: a few units of float32's last place less exact, in half the
// instructions.
TH_FN float th_near_exp_f32(float x) { return __expf(x); }
TH_FN float th_near_sigmoid_f32(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }

// Neighbours in memory that are moved at once, 16 bytes an instruction where there are as many. Addresses are multiples of
// that but for the _any ones; those with ends touch elements [first, end) alone, and all at once where `full` says so.
template <int B>
struct th_chunk {
  typedef th_u8 type;
};
template <>
struct th_chunk<2> {
  typedef th_u16 type;
};
template <>
struct th_chunk<4> {
  typedef th_u32 type;
};
template <>
struct th_chunk<8> {
  typedef uint2 type;
};
template <>
struct th_chunk<16> {
  typedef uint4 type;
};
template <typename T, int N>
struct th_pack {
  static constexpr int kStep = sizeof(T) * N < 16 ? sizeof(T) * N : 16;
  static constexpr int kEach = kStep / sizeof(T);
  typedef typename th_chunk<kStep>::type chunk;
  union part {
    chunk all;
    T each[kEach];
  };
  T v[N];
  __device__ __forceinline__ void load(const T* p) {
#pragma unroll
    for (int i = 0; i < N / kEach; ++i) {
      part x;
      x.all = ((const chunk*)p)[i];
#pragma unroll
      for (int j = 0; j < kEach; ++j) v[i * kEach + j] = x.each[j];
    }
  }
  __device__ __forceinline__ void store(T* p) const {
#pragma unroll
    for (int i = 0; i < N / kEach; ++i) {
      part x;
#pragma unroll
      for (int j = 0; j < kEach; ++j) x.each[j] = v[i * kEach + j];
      ((chunk*)p)[i] = x.all;
    }
  }
  static __device__ __forceinline__ bool fits(const T* p) { return ((th_u64)p & (kStep - 1)) == 0; }
  __device__ __forceinline__ void load_any(const T* p) { load(p, true, 0, N); }
  __device__ __forceinline__ void store_any(T* p) const { store(p, true, 0, N); }
  __device__ __forceinline__ void load(const T* p, bool full, int first, int end) {
    load_even(p, full && fits(p), first, end);
  }
  __device__ __forceinline__ void store(T* p, bool full, int first, int end) const {
    store_even(p, full && fits(p), first, end);
  }
  __device__ __forceinline__ void load_even(const T* p, bool full, int first, int end) {
    if (full) return load(p);
#pragma unroll
    for (int j = 0; j < N; ++j) v[j] = j >= first && j < end ? p[j] : (T)0;
  }
  __device__ __forceinline__ void store_even(T* p, bool full, int first, int end) const {
    if (full) return store(p);
#pragma unroll
    for (int j = 0; j < N; ++j)
      if (j >= first && j < end) p[j] = v[j];
  }
};
