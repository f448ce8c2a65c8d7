// OpenCL C 1.2 side of the portable kernel language. Its twin is cuda/prelude.cuh; kernels/portable/operators.h follows.
#pragma OPENCL FP_CONTRACT OFF
#ifdef cl_khr_fp64
#define TH_HAS_F64 1
#endif
typedef char th_i8;
typedef short th_i16;
typedef int th_i32;
typedef long th_i64;
typedef uchar th_u8;
typedef ushort th_u16;
typedef uint th_u32;
typedef ulong th_u64;

#define TH_KERNEL __kernel void
#define TH_KERNEL_THREADS(n) __kernel __attribute__((reqd_work_group_size(n, 1, 1))) void
#define TH_FN static inline
#define TH_GLOBAL __global
#define TH_LOCAL __local
#define TH_LOCAL_PTR __local
#define TH_CONSTANT __constant
#define TH_RESTRICT restrict
#define TH_UNROLL
#define TH_BARRIER() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define TH_THREAD ((int)get_local_id(0))
#define TH_THREAD_Y ((int)get_local_id(1))
#define TH_THREADS ((int)get_local_size(0))
#define TH_THREADS_Y ((int)get_local_size(1))
#define TH_BLOCK ((int)get_group_id(0))
#define TH_BLOCK_Y ((int)get_group_id(1))
#define TH_BLOCK_Z ((int)get_group_id(2))
#define TH_BLOCKS ((int)get_num_groups(0))

// Spelling of a built-in at float and double.
#define TH_F32(f) f
#define TH_F64(f) f
#define TH_INF_F32 INFINITY
#define TH_NAN_F32 NAN
#define TH_INF_F64 ((double)INFINITY)
#define TH_NAN_F64 ((double)NAN)
TH_FN int th_bits_of_f32(float x) { return as_int(x); }
TH_FN float th_f32_of_bits(int x) { return as_float(x); }

TH_FN float th_f32_of_f16(th_u16 h) { return vload_half(0, (const __private half*)&h); }
TH_FN th_u16 th_f16_of_f32(float x) {
  th_u16 h;
  vstore_half_rte(x, 0, (__private half*)&h);
  return h;
}
#define th_load_f16(p, i) vload_half((i), (const __global half*)(p))
#define th_store_f16(p, i, x) vstore_half_rte((x), (i), (__global half*)(p))
