// product[z][m][n] = sum_k a[z][m][k] * b[z][k][n] on tensor cores (sm_80 and newer), any row and column order.
//
// f32: every operand x is split in registers into hi = x rounded to 11 bits and lo = x - hi (exact, 12 bits), and three tf32
// products lo*hi + hi*lo + hi*hi are summed: error about 2^-22 an operand, as good as float32 arithmetic. f16 and bf16 are exact in
// tf32 and need one product. Tensor cores truncate when they add: hi*hi of 8 steps of the depth starts from zero and joins `acc` by
// an ordinary add; the small products stay in `low` to the end, where their truncation is 2^-11 of the others'.
// An infinite operand gives NaN (Inf - Inf in lo), also where float32 arithmetic would give Inf.
//
// A block of (BM / WM) * (BN / WN) warps computes BM x BN; a warp WM x WN as FM x FN fragments of 16 x 8. STAGES tiles of BK of the
// depth are in shared memory or on their way to it: operands that lie in memory as they are come by asynchronous copies (four
// elements at once where neighbours are aligned), operands with a fused prologue through registers. One barrier a step.
// SPLIT > 1 (sm_90 and newer): the blocks of a cluster share a tile, each sums its part of the depth, and each adds up and stores
// its part of the tile out of all their shared memories: no scratch, no atomics, the same sum every time.
// Shared bytes: 4 max(STAGES (A + B), C) of the layouts in gemm_mma.cc, dynamic.
// Measured, H200 (bench/results/h200/first_run.json: portable tiles before it; skeleton.json: after): ResNet-50 4.9 -> 0.74 ms,
// BERT-base 6.7 -> 1.49 ms.
// Sources: PTX ISA (fragments of mma.m16n8k8, cp.async, clusters); Ootomo and Yokota 2022 (error-corrected products).
//@@ functions
TH_FN th_u32 th_tf32_hi(float x) { return ((th_u32)__float_as_int(x) + 0x1000u) & 0xffffe000u; }
TH_FN th_u32 th_tf32_lo(float x, th_u32 hi) { return (th_u32)__float_as_int(x - __int_as_float((int)hi)); }
// d = a b + c of a 16 x 8 x 8 fragment.
TH_FN void th_mma_tf32(float* d, const th_u32* a, const th_u32* b, const float* c) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}
// Copies 4 or 16 bytes; zeros where `inside` is false (then `from` is not read).
TH_FN void th_copy4(float* to, const float* from, bool inside) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
      :: "r"((th_u32)__cvta_generic_to_shared(to)), "l"(from), "r"(inside ? 4 : 0) : "memory");
}
TH_FN void th_copy16(float* to, const float* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
      :: "r"((th_u32)__cvta_generic_to_shared(to)), "l"(from), "r"(inside ? 16 : 0) : "memory");
}
//@@ cluster_functions
#if TH_HAS_CLUSTERS
TH_FN void th_cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
TH_FN float th_cluster_load(const float* p, int rank) {
  float x;
  asm volatile("{.reg .u32 r; mapa.shared::cluster.u32 r, %1, %2;\n\tld.shared::cluster.f32 %0, [r];}"
      : "=f"(x) : "r"((th_u32)__cvta_generic_to_shared(p)), "r"(rank) : "memory");
  return x;
}
#else
TH_FN void th_cluster_barrier() { __syncthreads(); }
TH_FN float th_cluster_load(const float* p, int) { return *p; }
#endif
//@@ body
{
extern __shared__ __align__(16) float tiles[];
const int parts = $PARTS;
const int rank = TH_BLOCK % $SPLIT;
const int tile = TH_BLOCK / $SPLIT;
if (rank < parts) {
const int tile_n = tile % $TILES_N;
const int tile_rest = tile / $TILES_N;
const int tile_m = tile_rest % $TILES_M;
const int z = tile_rest / $TILES_M;
const int block_m = tile_m * $BM;
const int block_n = tile_n * $BN;
const int group = TH_THREAD % 32 / 4;
const int quad = TH_THREAD % 4;
const int warp_m = TH_THREAD / 32 / $WARPS_N * $WM;
const int warp_n = TH_THREAD / 32 % $WARPS_N * $WN;
const int all_steps = ($K + $BK - 1) / $BK;
const int part = (all_steps + parts - 1) / parts;
const int first = rank * part;
const int steps = all_steps - first < part ? all_steps - first : part;
const float zeros[4] = {0.0f, 0.0f, 0.0f, 0.0f};
float acc[$FM][$FN][4];
//@begin_low
TH_UNROLL for (int i = 0; i < $FM; ++i) {
TH_UNROLL for (int j = 0; j < $FN; ++j) {
TH_UNROLL for (int r = 0; r < 4; ++r) {
acc[i][j][r] = 0.0f;
//@zero_low
}
}
}
for (int step = 1 - $STAGES; step < steps; ++step) {
const bool loads = step + $STAGES - 1 < steps;
const int ahead = first + step + $STAGES - 1;
float* next_a = tiles + (step + $STAGES - 1) % $STAGES * $BUFFER;
float* next_b = next_a + $SIZE_A;
//@declare_held
if (step >= 0) {
asm volatile("cp.async.wait_group %0;" :: "n"($STAGES - 2) : "memory");
TH_BARRIER();
}
if (loads) {
TH_UNROLL for (int t = 0; t < $LOADS_A; ++t) {
const int m = block_m + $A_ROW;
const int tk = $A_DEPTH;
//@load_a
}
TH_UNROLL for (int t = 0; t < $LOADS_B; ++t) {
const int n = block_n + $B_COL;
const int tk = $B_DEPTH;
//@load_b
}
}
asm volatile("cp.async.commit_group;" ::: "memory");
if (step >= 0) {
const float* tile_a = tiles + step % $STAGES * $BUFFER;
const float* tile_b = tile_a + $SIZE_A;
TH_UNROLL for (int kk = 0; kk < $BK; kk += 8) {
float a[$FM][4], b[$FN][2];
TH_UNROLL for (int i = 0; i < $FM; ++i) {
//@fragment_a
}
//@fragments_b
//@multiply
}
}
//@store_held
}
asm volatile("cp.async.wait_group 0;" ::: "memory");
TH_BARRIER();
TH_UNROLL for (int i = 0; i < $FM; ++i) {
TH_UNROLL for (int j = 0; j < $FN; ++j) {
TH_UNROLL for (int r = 0; r < 4; ++r) {
const int column = quad * 2 + r % 2;
tiles[(warp_m + i * 16 + group + r / 2 * 8) * $CP + $C_COLUMN] = $RESULT;
}
}
}
$BARRIER;
//@store_tile
//@leave
}
}
//@@ a_along_k
const float2 upper = *(const float2*)(tile_a + (warp_m + i * 16 + group) * $AP + kk + quad * 2);
const float2 lower = *(const float2*)(tile_a + (warp_m + i * 16 + group + 8) * $AP + kk + quad * 2);
a[i][0] = upper.x;
a[i][1] = lower.x;
a[i][2] = upper.y;
a[i][3] = lower.y;
//@@ a_along_m
const float* column = tile_a + (kk + quad * 2) * $AP + warp_m + i * 16 + group;
a[i][0] = column[0];
a[i][1] = column[8];
a[i][2] = column[$AP];
a[i][3] = column[$AP + 8];
//@@ b_along_n
TH_UNROLL for (int j = 0; j < $FN; j += 4) {
const float* row = tile_b + (kk + quad * 2) * $BP + warp_n + j * 8 + group * 4;
const float4 even = *(const float4*)row;
const float4 odd = *(const float4*)(row + $BP);
b[j][0] = even.x;
b[j + 1][0] = even.y;
b[j + 2][0] = even.z;
b[j + 3][0] = even.w;
b[j][1] = odd.x;
b[j + 1][1] = odd.y;
b[j + 2][1] = odd.z;
b[j + 3][1] = odd.w;
}
//@@ b_along_k
TH_UNROLL for (int j = 0; j < $FN; ++j) {
const float2 pair = *(const float2*)(tile_b + (warp_n + j * 8 + group) * $BP + kk + quad * 2);
b[j][0] = pair.x;
b[j][1] = pair.y;
}
//@@ multiply_split
th_u32 a_hi[$FM][4], a_lo[$FM][4], b_hi[$FN][2], b_lo[$FN][2];
TH_UNROLL for (int i = 0; i < $FM; ++i) {
TH_UNROLL for (int r = 0; r < 4; ++r) {
a_hi[i][r] = th_tf32_hi(a[i][r]);
a_lo[i][r] = th_tf32_lo(a[i][r], a_hi[i][r]);
}
}
TH_UNROLL for (int j = 0; j < $FN; ++j) {
TH_UNROLL for (int r = 0; r < 2; ++r) {
b_hi[j][r] = th_tf32_hi(b[j][r]);
b_lo[j][r] = th_tf32_lo(b[j][r], b_hi[j][r]);
}
}
TH_UNROLL for (int i = 0; i < $FM; ++i) {
TH_UNROLL for (int j = 0; j < $FN; ++j) {
th_mma_tf32(low[i][j], a_lo[i], b_hi[j], low[i][j]);
}
}
TH_UNROLL for (int i = 0; i < $FM; ++i) {
TH_UNROLL for (int j = 0; j < $FN; ++j) {
float high[4];
th_mma_tf32(high, a_hi[i], b_hi[j], zeros);
th_mma_tf32(low[i][j], a_hi[i], b_lo[j], low[i][j]);
TH_UNROLL for (int r = 0; r < 4; ++r) {
acc[i][j][r] += high[r];
}
}
}
//@@ multiply_exact
TH_UNROLL for (int i = 0; i < $FM; ++i) {
TH_UNROLL for (int j = 0; j < $FN; ++j) {
float high[4];
th_mma_tf32(high, (const th_u32*)a[i], (const th_u32*)b[j], zeros);
TH_UNROLL for (int r = 0; r < 4; ++r) {
acc[i][j][r] += high[r];
}
}
}
