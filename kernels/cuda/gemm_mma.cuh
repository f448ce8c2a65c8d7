// product[z][m][n] = sum_k a[z][m][k] * b[z][k][n] on tensor cores (sm_80 and newer), any row and column order.
//
// f32: every operand x is split in registers into hi = x rounded to 11 bits and lo = x - hi (exact, 12 bits), and three tf32
// products lo*hi + hi*lo + hi*hi are summed: error about 2^-22 an operand, as good as float32 arithmetic. Tensor cores truncate when
// they add: hi*hi of 8 steps of the depth starts from zero and joins `acc` by an ordinary add; the small products stay in `side` to
// the end, where their truncation is 2^-11 of the others'. An infinite operand gives NaN (Inf - Inf in lo), also where float32
// arithmetic would give Inf.
// f16 and bf16: elements stay as they are in shared memory, come to registers by ldmatrix and are multiplied exactly; `side` holds the
// sums of the last 256 of the depth, which then join `acc` by an ordinary add.
//
// A block of (BM / WM) * (BN / WN) warps computes BM x BN; a warp WM x WN as FM x FN fragments of 16 x 8. STAGES tiles of BK of the
// depth are in shared memory or on their way to it, the next fragments on their way to registers: operands that lie in memory as they
// are come by asynchronous copies (16 bytes at once where neighbours are aligned), operands with a fused prologue through registers.
// One barrier a step. What a product adds to is never the result of one of the three before it, so that none waits for another.
// SPLIT > 1 (sm_90 and newer): the blocks of a cluster share a tile, each sums its part of the depth, and each adds up and stores
// its part of the tile out of all their shared memories: no scratch, no atomics, the same sum every time.
// SHARES > 1: as many clusters (or blocks) share the depth through scratch memory, which a second kernel adds up in a fixed order.
// Shared bytes: max(STAGES tiles of A and B, 4 C) of the layouts in gemm_mma_tiles.cc, dynamic.
// Measured, H200 (bench/results/h200/first_run.json: portable tiles before it; skeleton.json: after): ResNet-50 4.9 -> 0.74 ms,
// BERT-base 6.7 -> 1.49 ms.
// Sources: PTX ISA (fragments of mma.m16n8k8 and m16n8k16, ldmatrix, cp.async, clusters); Ootomo and Yokota 2022 (error-corrected
// products).
//@@ functions
// Copies 4, 8 or 16 bytes; zeros where `inside` is false (then `from` is not read).
TH_FN void th_copy4(void* to, const void* from, bool inside) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
      :: "r"((th_u32)__cvta_generic_to_shared(to)), "l"(from), "r"(inside ? 4 : 0) : "memory");
}
TH_FN void th_copy8(void* to, const void* from, bool inside) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
      :: "r"((th_u32)__cvta_generic_to_shared(to)), "l"(from), "r"(inside ? 8 : 0) : "memory");
}
TH_FN void th_copy16(void* to, const void* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
      :: "r"((th_u32)__cvta_generic_to_shared(to)), "l"(from), "r"(inside ? 16 : 0) : "memory");
}
//@@ functions_f32
TH_FN th_u32 th_tf32_hi(float x) { return ((th_u32)__float_as_int(x) + 0x1000u) & 0xffffe000u; }
TH_FN th_u32 th_tf32_lo(float x, th_u32 hi) { return (th_u32)__float_as_int(x - __int_as_float((int)hi)); }
// d = a b + c of a 16 x 8 x 8 fragment.
TH_FN void th_mma_tf32(float* d, const th_u32* a, const th_u32* b, const float* c) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}
//@@ functions_16
// d += a b of a 16 x 8 x 16 fragment.
TH_FN void th_mma_16(float* d, const th_u32* a, const th_u32* b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.$FORMAT.$FORMAT.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// Four matrices of 8 x 8; a lane names a line of 16 bytes. Turned: every matrix is transposed on its way.
TH_FN void th_fragments(th_u32* to, const th_u16* line) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
      : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"((th_u32)__cvta_generic_to_shared(line)) : "memory");
}
TH_FN void th_fragments_turned(th_u32* to, const th_u16* line) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
      : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"((th_u32)__cvta_generic_to_shared(line)) : "memory");
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
const int share = TH_BLOCK / $SPLIT % $SHARES;
const int tile = TH_BLOCK / $SPLIT / $SHARES;
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
const int part = (all_steps + $SHARES * parts - 1) / ($SHARES * parts);
const int first = (share * parts + rank) * part;
const int steps = all_steps - first < part ? all_steps - first : part;
float acc[$FM][$FN][4], side[$FM][$FN][4];
TH_UNROLL for (int i = 0; i < $FM; ++i) {
TH_UNROLL for (int j = 0; j < $FN; ++j) {
TH_UNROLL for (int r = 0; r < 4; ++r) {
acc[i][j][r] = 0.0f;
side[i][j][r] = 0.0f;
}
}
}
for (int step = 1 - $STAGES; step < steps; ++step) {
const bool loads = step + $STAGES - 1 < steps;
const int ahead = first + step + $STAGES - 1;
$ELEMENT* next_a = ($ELEMENT*)tiles + (step + $STAGES - 1) % $STAGES * $BUFFER;
$ELEMENT* next_b = next_a + $SIZE_A;
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
const $ELEMENT* tile_a = (const $ELEMENT*)tiles + step % $STAGES * $BUFFER;
const $ELEMENT* tile_b = tile_a + $SIZE_A;
//@multiply
}
//@store_held
}
asm volatile("cp.async.wait_group 0;" ::: "memory");
TH_BARRIER();
TH_UNROLL for (int i = 0; i < $FM; ++i) {
TH_UNROLL for (int j = 0; j < $FN; ++j) {
TH_UNROLL for (int r = 0; r < 4; ++r) {
const int column = quad * 2 + r % 2;
tiles[(warp_m + i * 16 + group + r / 2 * 8) * $CP + $C_COLUMN] = acc[i][j][r] + side[i][j][r];
}
}
}
$BARRIER;
//@store_tile
//@leave
}
}
//@@ a_along_k
const float2 upper = *(const float2*)(tile_a + (warp_m + i * 16 + group) * $AP + at + quad * 2);
const float2 lower = *(const float2*)(tile_a + (warp_m + i * 16 + group + 8) * $AP + at + quad * 2);
a[turn][i][0] = upper.x;
a[turn][i][1] = lower.x;
a[turn][i][2] = upper.y;
a[turn][i][3] = lower.y;
//@@ a_along_m
const float* column = tile_a + (at + quad * 2) * $AP + warp_m + i * 16 + group;
a[turn][i][0] = column[0];
a[turn][i][1] = column[8];
a[turn][i][2] = column[$AP];
a[turn][i][3] = column[$AP + 8];
//@@ b_along_n
TH_UNROLL for (int j = 0; j < $FN; j += 4) {
const float* row = tile_b + (at + quad * 2) * $BP + warp_n + j * 8 + group * 4;
const float4 even = *(const float4*)row;
const float4 odd = *(const float4*)(row + $BP);
b[turn][j][0] = even.x;
b[turn][j + 1][0] = even.y;
b[turn][j + 2][0] = even.z;
b[turn][j + 3][0] = even.w;
b[turn][j][1] = odd.x;
b[turn][j + 1][1] = odd.y;
b[turn][j + 2][1] = odd.z;
b[turn][j + 3][1] = odd.w;
}
//@@ b_along_k
TH_UNROLL for (int j = 0; j < $FN; ++j) {
const float2 pair = *(const float2*)(tile_b + (warp_n + j * 8 + group) * $BP + at + quad * 2);
b[turn][j][0] = pair.x;
b[turn][j][1] = pair.y;
}
//@@ multiply_f32
const float zeros[4] = {0.0f, 0.0f, 0.0f, 0.0f};
float a[2][$FM][4], b[2][$FN][2];
TH_UNROLL for (int at = 0; at < $BK + 8; at += 8) {
const int turn = at / 8 % 2;
if (at < $BK) {
TH_UNROLL for (int i = 0; i < $FM; ++i) {
//@fragment_a
}
//@fragments_b
}
if (at > 0) {
th_u32 b_hi[$FN][2], b_lo[$FN][2];
TH_UNROLL for (int j = 0; j < $FN; ++j) {
TH_UNROLL for (int r = 0; r < 2; ++r) {
b_hi[j][r] = th_tf32_hi(b[1 - turn][j][r]);
b_lo[j][r] = th_tf32_lo(b[1 - turn][j][r], b_hi[j][r]);
}
}
TH_UNROLL for (int i = 0; i < $FM; ++i) {
th_u32 a_hi[4], a_lo[4];
TH_UNROLL for (int r = 0; r < 4; ++r) {
a_hi[r] = th_tf32_hi(a[1 - turn][i][r]);
a_lo[r] = th_tf32_lo(a[1 - turn][i][r], a_hi[r]);
}
TH_UNROLL for (int four = 0; four < $FN; four += 4) {
float high[4][4];
TH_UNROLL for (int j = 0; j < 4; ++j) {
th_mma_tf32(high[j], a_hi, b_hi[four + j], zeros);
}
TH_UNROLL for (int j = 0; j < 4; ++j) {
th_mma_tf32(side[i][four + j], a_lo, b_hi[four + j], side[i][four + j]);
}
TH_UNROLL for (int j = 0; j < 4; ++j) {
th_mma_tf32(side[i][four + j], a_hi, b_lo[four + j], side[i][four + j]);
}
TH_UNROLL for (int j = 0; j < 4; ++j) {
TH_UNROLL for (int r = 0; r < 4; ++r) {
acc[i][four + j][r] += high[j][r];
}
}
}
}
}
}
//@@ multiply_16
th_u32 a[2][$FM][4], b[2][$FN][2];
TH_UNROLL for (int at = 0; at < $BK + 16; at += 16) {
const int turn = at / 16 % 2;
if (at < $BK) {
TH_UNROLL for (int i = 0; i < $FM; ++i) {
//@fragment_a
}
TH_UNROLL for (int j = 0; j < $FN; j += 2) {
//@fragments_b
}
}
if (at > 0) {
TH_UNROLL for (int i = 0; i < $FM; ++i) {
TH_UNROLL for (int j = 0; j < $FN; ++j) {
th_mma_16(side[i][j], a[1 - turn][i], b[1 - turn][j]);
}
}
}
}
if ((step + 1) % $JOIN == 0) {
TH_UNROLL for (int i = 0; i < $FM; ++i) {
TH_UNROLL for (int j = 0; j < $FN; ++j) {
TH_UNROLL for (int r = 0; r < 4; ++r) {
acc[i][j][r] += side[i][j][r];
side[i][j][r] = 0.0f;
}
}
}
}
//@@ a_along_k_16
th_fragments(a[turn][i], tile_a + (warp_m + i * 16 + TH_THREAD % 16) * $AP + at + TH_THREAD % 32 / 16 * 8);
//@@ a_along_m_16
th_fragments_turned(a[turn][i], tile_a + (at + TH_THREAD % 8 + TH_THREAD % 32 / 16 * 8) * $AP + warp_m + i * 16 + TH_THREAD / 8 % 2 * 8);
//@@ b_along_n_16
th_fragments_turned(b[turn][j], tile_b + (at + TH_THREAD % 16) * $BP + warp_n + j * 8 + TH_THREAD % 32 / 16 * 8);
//@@ b_along_k_16
th_fragments(b[turn][j], tile_b + (warp_n + j * 8 + TH_THREAD % 8 + TH_THREAD % 32 / 16 * 8) * $BP + at + TH_THREAD / 8 % 2 * 8);
//@@ add_shares
const int item = TH_BLOCK * $ITEMS + TH_THREAD % $ITEMS;
const int slice = TH_THREAD / $ITEMS;
float total = 0.0f;
if (item < $COUNT) {
TH_UNROLL for (int share = 0; share < $SHARES; share += $SLICES) {
if (share + slice < $SHARES) {
total += $SUMS[(share + slice) * $COUNT + item];
}
}
}
//@join_slices
if (slice == 0 && item < $COUNT) {
//@epilogue
}
//@@ join_slices
$SLICE_SUMS[TH_THREAD] = total;
TH_BARRIER();
if (slice == 0) {
TH_UNROLL for (int s = 1; s < $SLICES; ++s) {
total += $SLICE_SUMS[TH_THREAD + s * $ITEMS];
}
}
