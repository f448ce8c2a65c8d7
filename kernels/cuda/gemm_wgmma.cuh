// product[z][m][n] = sum_k a[z][m][k] * b[z][k][n] of float32 operands on the tensor cores of sm_90a (wgmma), in two kinds of
// kernels: `pack` writes one operand as scaled halves, `multiply` streams both and multiplies.
//
// pack: a step is 64 of the depth. A row of A (column of B) is scaled by the power of two that brings its largest element of the
// step to [2^14, 2^15), then split: hi = x rounded to fp16, lo = fp16(2^11 (x - hi)), together 22 bits of everything down to 2^-28 of
// the largest. So nothing over- or underflows, whatever the range of the whole row. (Without the 2^11, elements 2^-20 of the largest
// keep 18 bits: too few where they meet an outlier of the other operand.)
// Written as [z][step][hi, lo][row][64 halves], rows padded with zeros to whole tiles, the eight 16-byte pieces of a row in the order
// of the 128-byte swizzle: any eight-aligned range of rows is one run of bytes that wgmma can read. The exponents that undo the
// scales are bytes [z][step][row].
// A block packs 64 rows of one step. Operands along the depth: 16 threads a row, four elements each. Operands along rows: half a row
// a thread; every load is 64 bytes and more a row of threads, whatever the alignment.
//
// multiply: a block of $CONSUMERS groups of 128 threads and one producer computes BM x BN, BM = 64 $CONSUMERS, in slices of SN columns.
// The producer, one thread, copies in bulk into a ring of A slots and a ring of B slots (one slice each); a barrier each for "full"
// and "empty". A consumer multiplies 64 rows: lo*hi + hi*lo of a step are summed from zero by the tensor cores (which truncate) and
// scaled by 2^-11, hi*hi joins them, and the sums are scaled back and added to float32 sums in registers: long sums lose no more than
// float32 sums do.
// An infinite operand gives NaN (Inf - Inf in lo), also where float32 arithmetic would give Inf.
// SPLIT > 1: the blocks of a cluster share the depth and add up their tiles out of all their shared memories (gemm_mma.cuh).
// Tiles run through the rows in groups of $GROUP, so that blocks at work share operands in the second cache.
// Without these instructions (PTX carried to another architecture) plain loops compute the same tiles, out of the planes too: an
// operand that was packed once need not stay. (TH_PORTABLE_PRODUCTS takes them here too, for tests.)
// Sources: PTX ISA (wgmma, its descriptors, cp.async.bulk, mbarrier, setmaxnreg); Ootomo and Yokota 2022 (error-corrected products).
//@@ functions
TH_FN th_u32 th_shared(const void* p) { return (th_u32)__cvta_generic_to_shared(p); }
TH_FN void th_barrier_init(th_u32 at, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at), "r"(arrivals) : "memory");
}
TH_FN void th_barrier_expect(th_u32 at, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at), "r"(bytes) : "memory");
}
TH_FN void th_barrier_arrive(th_u32 at) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at) : "memory");
}
TH_FN void th_barrier_wait(th_u32 at, int parity) {
  asm volatile(
      "{.reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t"
      "@!done bra again;}" :: "r"(at), "r"(parity) : "memory");
}
TH_FN void th_bulk_copy(th_u32 to, const void* from, int bytes, th_u32 barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
      :: "r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}
// What wgmma needs to know of a tile: address (of a block in a cluster without the block's number), 1024 bytes from eight rows to the next, 128-byte swizzle.
TH_FN th_u64 th_tile(th_u32 at) {
  return (th_u64)((at & 0x3ffff) >> 4) | (th_u64)1 << 16 | (th_u64)64 << 32 | (th_u64)1 << 62;
}
//@@ pack_functions
TH_FN float th_power(int field) { return __int_as_float(field << 23); }
// The exponent field of the power of two that brings `largest` to [2^14, 2^15); that of its inverse is 254 minus it.
TH_FN int th_scale_field(float largest) {
  const int field = 268 - ((__float_as_int(largest) >> 23) & 255);
  return field < 252 ? field : 252;
}
// hi and lo of two neighbours, scaled.
TH_FN void th_split(float x, float y, float scale, th_u32& hi, th_u32& lo) {
  const float u = x * scale, v = y * scale;
  asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(hi) : "f"(u), "f"(v));
  float u_hi, v_hi;
  asm("{.reg .f16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}" : "=f"(u_hi), "=f"(v_hi) : "r"(hi));
  const float u_lo = (u - u_hi) * 2048.0f, v_lo = (v - v_hi) * 2048.0f;
  asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(lo) : "f"(u_lo), "f"(v_lo));
}
//@@ pack
{
const int block_row = TH_BLOCK % $ROW_BLOCKS * 64;
const int block_rest = TH_BLOCK / $ROW_BLOCKS;
const int ahead = block_rest % $STEPS;
const int z = block_rest / $STEPS;
const int padded = $ROW_BLOCKS * 64;
th_u32* hi = (th_u32*)$PLANES + (block_rest * 2 * padded + block_row) * 32;
th_u32* lo = hi + padded * 32;
th_u8* scales = (th_u8*)$SCALES + block_rest * padded + block_row;
float held[32];
//@lines
}
//@@ along_depth
const int line = TH_THREAD / 16;
const int tk = TH_THREAD % 16 * 4;
TH_UNROLL for (int i = 0; i < 8; ++i) {
const int $ROW = block_row + i * 8 + line;
//@load
}
float largest[8];
TH_UNROLL for (int i = 0; i < 8; ++i) {
const float* x = held + i * 4;
largest[i] = fmaxf(fmaxf(fabsf(x[0]), fabsf(x[1])), fmaxf(fabsf(x[2]), fabsf(x[3])));
}
TH_UNROLL for (int lanes = 8; lanes > 0; lanes /= 2) {
TH_UNROLL for (int i = 0; i < 8; ++i) {
largest[i] = fmaxf(largest[i], __shfl_xor_sync(0xffffffffu, largest[i], lanes));
}
}
TH_UNROLL for (int i = 0; i < 8; ++i) {
const int field = th_scale_field(largest[i]);
th_u32 hi0, hi1, lo0, lo1;
th_split(held[i * 4], held[i * 4 + 1], th_power(field), hi0, lo0);
th_split(held[i * 4 + 2], held[i * 4 + 3], th_power(field), hi1, lo1);
const int at = (i * 8 + line) * 32 + ((tk / 8) ^ line) * 4 + tk % 8 / 2;
*(uint2*)(hi + at) = make_uint2(hi0, hi1);
*(uint2*)(lo + at) = make_uint2(lo0, lo1);
if (tk == 0) scales[i * 8 + line] = (th_u8)(254 - field);
}
//@@ along_rows
const int line = TH_THREAD % 16 + TH_THREAD / 32 * 16;
const int begin = TH_THREAD / 16 % 2 * 32;
const int $ROW = block_row + line;
TH_UNROLL for (int j = 0; j < 32; ++j) {
const int tk = begin + j;
//@load
}
float largest = 0.0f;
TH_UNROLL for (int j = 0; j < 32; ++j) {
largest = fmaxf(largest, fabsf(held[j]));
}
largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 16));
const int field = th_scale_field(largest);
if (begin == 0) scales[line] = (th_u8)(254 - field);
TH_UNROLL for (int c = 0; c < 4; ++c) {
th_u32 high[4], low[4];
TH_UNROLL for (int j = 0; j < 4; ++j) {
th_split(held[c * 8 + j * 2], held[c * 8 + j * 2 + 1], th_power(field), high[j], low[j]);
}
const int at = line * 32 + ((begin / 8 + c) ^ (line % 8)) * 4;
*(uint4*)(hi + at) = make_uint4(high[0], high[1], high[2], high[3]);
*(uint4*)(lo + at) = make_uint4(low[0], low[1], low[2], low[3]);
}
//@@ unpack
// One element out of its planes.
TH_FN float th_unpacked(const void* planes, const void* scales, int padded, int step, int row, int k) {
  const int word = (step * 2 * padded + row) * 32 + ((k / 8) ^ (row % 8)) * 4 + k % 8 / 2;
  const th_u32 hi = ((const th_u32*)planes)[word], lo = ((const th_u32*)planes)[word + padded * 32];
  float high, low;
  asm("{.reg .f16 h; mov.b16 h, %1; cvt.f32.f16 %0, h;}" : "=f"(high) : "h"((unsigned short)(k % 2 ? hi >> 16 : hi)));
  asm("{.reg .f16 h; mov.b16 h, %1; cvt.f32.f16 %0, h;}" : "=f"(low) : "h"((unsigned short)(k % 2 ? lo >> 16 : lo)));
  return (high + low / 2048.0f) * th_power(((const th_u8*)scales)[step * padded + row]);
}
//@@ multiply
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) && !defined(TH_PORTABLE_PRODUCTS)
{
extern __shared__ __align__(16) char shared_bytes[];
const th_u32 base = (th_shared(shared_bytes) + 1023) & ~1023u;
char* shared = shared_bytes + (base - th_shared(shared_bytes));
const th_u32 full_a = base + $BARRIERS, empty_a = full_a + 8 * $SLOTS_A, full_b = empty_a + 8 * $SLOTS_A, empty_b = full_b + 8 * $SLOTS_B;
const int parts = $PARTS;
const int rank = TH_BLOCK % $SPLIT;
const int tile = TH_BLOCK / $SPLIT;
const int z = tile / ($TILES_M * $TILES_N);
const int in_z = tile % ($TILES_M * $TILES_N);
const int row_group = in_z / ($GROUP * $TILES_N);
const int first_row = row_group * $GROUP;
const int rows_in_group = $TILES_M - first_row < $GROUP ? $TILES_M - first_row : $GROUP;
const int in_group = in_z % ($GROUP * $TILES_N);
const int block_m = (first_row + in_group % rows_in_group) * $BM;
const int block_n = in_group / rows_in_group * $BN;
const int all_steps = $STEPS;
const int part = (all_steps + parts - 1) / parts;
const int first = rank * part;
const int steps = all_steps - first < part ? all_steps - first : part;
const int role = TH_THREAD / 128;
if (TH_THREAD == 0) {
for (int s = 0; s < $SLOTS_A; ++s) {
th_barrier_init(full_a + 8 * s, 1);
th_barrier_init(empty_a + 8 * s, 4 * TH_ARRIVING_LANES * $CONSUMERS);
}
for (int s = 0; s < $SLOTS_B; ++s) {
th_barrier_init(full_b + 8 * s, 1);
th_barrier_init(empty_b + 8 * s, 4 * TH_ARRIVING_LANES * $CONSUMERS);
}
asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
TH_BARRIER();
if (role == $CONSUMERS) {
//@fewer_registers
if (TH_THREAD == 128 * $CONSUMERS) {
const th_u64 at = z * all_steps + first;
const char* rows_a = (const char*)$PLANES_A + (at * 2 * $PADDED_A + block_m) * 128;
const char* rows_b = (const char*)$PLANES_B + (at * 2 * $PADDED_B + block_n) * 128;
const char* scales_a = (const char*)$SCALES_OF_A + at * $PADDED_A + block_m;
const char* scales_b = (const char*)$SCALES_OF_B + at * $PADDED_B + block_n;
int a = 0, a_phase = 1, b = 0, b_phase = 1, b_scales = 0;
TH_NO_UNROLL for (int step = 0; step < steps; ++step) {
th_barrier_wait(empty_a + 8 * a, a_phase);
th_barrier_expect(full_a + 8 * a, $BM * 257);
th_bulk_copy(base + a * $SLOT_A, rows_a, $BM * 128, full_a + 8 * a);
th_bulk_copy(base + a * $SLOT_A + $BM * 128, rows_a + (th_u64)$PADDED_A * 128, $BM * 128, full_a + 8 * a);
th_bulk_copy(base + $SCALES_A + a * $BM, scales_a, $BM, full_a + 8 * a);
a_phase ^= a + 1 == $SLOTS_A;
a = a + 1 == $SLOTS_A ? 0 : a + 1;
TH_NO_UNROLL for (int slice = 0; slice < $SLICES; ++slice) {
th_barrier_wait(empty_b + 8 * b, b_phase);
th_barrier_expect(full_b + 8 * b, $SN * 257);
th_bulk_copy(base + $RING_B + b * $SLOT_B, rows_b + slice * $SN * 128, $SN * 128, full_b + 8 * b);
th_bulk_copy(base + $RING_B + b * $SLOT_B + $SN * 128, rows_b + slice * $SN * 128 + (th_u64)$PADDED_B * 128, $SN * 128, full_b + 8 * b);
th_bulk_copy(base + $SCALES_B + b_scales * $SN, scales_b + slice * $SN, $SN, full_b + 8 * b);
b_phase ^= b + 1 == $SLOTS_B;
b = b + 1 == $SLOTS_B ? 0 : b + 1;
b_scales = b_scales + 1 == 2 * $SLOTS_B ? 0 : b_scales + 1;
}
rows_a += (th_u64)$PADDED_A * 256;
rows_b += (th_u64)$PADDED_B * 256;
scales_a += $PADDED_A;
scales_b += $PADDED_B;
}
}
}
if (role < $CONSUMERS) {
//@more_registers
const int lane = TH_THREAD % 32;
const int group = lane / 4;
const int quad = lane % 4;
const int own_m = TH_THREAD / 32 * 16 + group;
float acc[$SLICES][$SUMS];
TH_UNROLL for (int slice = 0; slice < $SLICES; ++slice) {
TH_UNROLL for (int i = 0; i < $SUMS; ++i) {
acc[slice][i] = 0.0f;
}
}
int a = 0, a_phase = 0, b = 0, b_phase = 0, b_scales = 0;
for (int step = 0; step < steps; ++step) {
th_barrier_wait(full_a + 8 * a, a_phase);
const th_u32 rows = base + a * $SLOT_A + role * 8192;
const th_u64 a_hi = th_tile(rows), a_lo = th_tile(rows + $BM * 128);
const th_u8* row_scales = (const th_u8*)shared + $SCALES_A + a * $BM + own_m;
const float upper = th_power(row_scales[0]), lower = th_power(row_scales[8]);
TH_UNROLL for (int slice = 0; slice < $SLICES; ++slice) {
th_barrier_wait(full_b + 8 * b, b_phase);
const th_u64 b_hi = th_tile(base + $RING_B + b * $SLOT_B), b_lo = th_tile(base + $RING_B + b * $SLOT_B + $SN * 128);
float sum[$SUMS];
asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
TH_UNROLL for (int kk = 0; kk < 4; ++kk) {
th_wgmma(sum, a_lo + 2 * kk, b_hi + 2 * kk, kk > 0);
}
TH_UNROLL for (int kk = 0; kk < 4; ++kk) {
th_wgmma(sum, a_hi + 2 * kk, b_lo + 2 * kk, 1);
}
asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;" ::: "memory");
th_wgmma_done(sum);
TH_UNROLL for (int i = 0; i < $SUMS; ++i) {
sum[i] *= 0.00048828125f;
}
th_wgmma_done(sum);
asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
TH_UNROLL for (int kk = 0; kk < 4; ++kk) {
th_wgmma(sum, a_hi + 2 * kk, b_hi + 2 * kk, 1);
}
asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;" ::: "memory");
th_wgmma_done(sum);
__syncwarp();  // the arrival of one lane stands for what all lanes have read, scales included
if (lane < TH_ARRIVING_LANES) {
th_barrier_arrive(empty_b + 8 * b);
if (slice + 1 == $SLICES) th_barrier_arrive(empty_a + 8 * a);
}
const th_u16* column_scales = (const th_u16*)(shared + $SCALES_B + b_scales * $SN + quad * 2);
TH_UNROLL for (int j = 0; j < $SN / 8; ++j) {
const int pair = column_scales[j * 4];
const float left = th_power(pair & 255), right = th_power(pair >> 8);
float* total = acc[slice] + j * 4;
total[0] = __fmaf_rn(sum[j * 4] * upper, left, total[0]);
total[1] = __fmaf_rn(sum[j * 4 + 1] * upper, right, total[1]);
total[2] = __fmaf_rn(sum[j * 4 + 2] * lower, left, total[2]);
total[3] = __fmaf_rn(sum[j * 4 + 3] * lower, right, total[3]);
}
b_phase ^= b + 1 == $SLOTS_B;
b = b + 1 == $SLOTS_B ? 0 : b + 1;
b_scales = b_scales + 1 == 2 * $SLOTS_B ? 0 : b_scales + 1;
}
a_phase ^= a + 1 == $SLOTS_A;
a = a + 1 == $SLOTS_A ? 0 : a + 1;
}
asm volatile("bar.sync 1, %0;" :: "n"(128 * $CONSUMERS) : "memory");
float* sums = (float*)shared;
TH_UNROLL for (int slice = 0; slice < $SLICES; ++slice) {
TH_UNROLL for (int j = 0; j < $SN / 8; ++j) {
const float* total = acc[slice] + j * 4;
float* to = sums + own_m * $CP + slice * $SN + j * 8 + quad * 2;
*(float2*)to = make_float2(total[0], total[1]);
*(float2*)(to + 8 * $CP) = make_float2(total[2], total[3]);
}
}
//@join
//@store_tile
//@leave
}
}
#else
for (int t = TH_THREAD; t < $BM * $BN && TH_BLOCK % $SPLIT == 0; t += TH_THREADS) {
const int tile = TH_BLOCK / $SPLIT;
const int z = tile / ($TILES_M * $TILES_N);
const int m = tile / $TILES_N % $TILES_M * $BM + t / $BN;
const int n = tile % $TILES_N * $BN + t % $BN;
if (m < $M && n < $N) {
float total = 0.0f;
for (int k = 0; k < $K; ++k) {
//@step
}
//@epilogue
}
}
#endif
