// product[z][m][n] = sum_k a[z][m][k] * b[z][k][n] for few rows, on tensor cores (sm_80 and newer): B is read once, as it lies in
// memory, at the rate of the memory; nothing of it passes through shared memory.
//
// A block computes BM (16 or 32) rows of BN columns. Its warps stand in WARPS_N columns of warps of WN columns each and WARPS_K
// lines of warps; those lines take turns at the steps of the depth and meet only at the end. A thread loads 16 bytes of B at once,
// STAGES - 1 steps ahead of those it multiplies, straight into registers: what a fragment of mma calls a column or a step of the
// depth may be any column and any step, so each thread takes what it has loaded, and A and the sums follow:
//   B along n: thread (group, quad) has steps 4 quad .. 4 quad + 3 of four (f32) or eight (16 bits) columns from group * 4 or * 8;
//   B along k: columns group, group + 8, group + 16, group + 24; four (f32) or eight (16 bits) steps of each.
// f32: three tf32 products as in gemm_mma.cuh (hi * hi from zero, joined by ordinary adds; small products apart).
// f16, bf16: exact products; sums of STAGES steps join the total by ordinary adds.
// SPLIT > 1 (sm_90 and newer): the blocks of a cluster share the depth and add up out of each other's shared memory.
// Limits: B lies in 16-byte pieces that are all inside or all outside; 16-bit A too, along k.
// Shared bytes: WARPS_K tiles of sums, dynamic.
// Sources: PTX ISA (fragments of mma.m16n8k8 and m16n8k16); the depth may be permuted as both operands are (Frantar et al. 2024,
// Marlin, does so for 4-bit weights).
//@@ functions
struct th_four {
  th_u32 x, y, z, w;
};
// 16 bytes that are read once, past the L1 cache.
TH_FN th_four th_stream(const void* from) {
  th_four v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(from));
  return v;
}
TH_FN th_four th_reused(const void* from) {
  th_four v;
  asm volatile("ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(from));
  return v;
}
TH_FN th_u32 th_part(const th_four& v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }
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
const int warp_n = TH_THREAD / 32 % $WARPS_N * $WN;
const int warp_k = TH_THREAD / 32 / $WARPS_N;
const int all_steps = ($K + $STEP - 1) / $STEP;
const int part = (all_steps + parts - 1) / parts;
const int first = rank * part;
const int end = all_steps - first < part ? all_steps : first + part;
float acc[$FM][$FN][4], side[$FM][$FN][4];
TH_UNROLL for (int i = 0; i < $FM; ++i) {
TH_UNROLL for (int j = 0; j < $FN; ++j) {
TH_UNROLL for (int r = 0; r < 4; ++r) {
acc[i][j][r] = 0.0f;
side[i][j][r] = 0.0f;
}
}
}
th_four held_b[$STAGES][4], held_a[$STAGES][$FM][2];
TH_UNROLL for (int s = 0; s < $STAGES - 1; ++s) {
const int step = first + warp_k + s * $WARPS_K;
//@load
}
for (int turn = first + warp_k; turn < end; turn += $STAGES * $WARPS_K) {
TH_UNROLL for (int now = 0; now < $STAGES; ++now) {
{
const int s = (now + $STAGES - 1) % $STAGES;
const int step = turn + (now + $STAGES - 1) * $WARPS_K;
//@load
}
//@multiply
}
//@join
}
TH_UNROLL for (int i = 0; i < $FM; ++i) {
TH_UNROLL for (int j = 0; j < $FN; ++j) {
TH_UNROLL for (int r = 0; r < 4; ++r) {
const int column = quad * 2 + r % 2;
tiles[(warp_k * $BM + i * 16 + group + r / 2 * 8) * $CP + warp_n + $C_COLUMN] = acc[i][j][r] + side[i][j][r];
}
}
}
//@join_warps
$BARRIER;
//@store_tile
//@leave
}
}
//@@ load
// Where nothing is left, zeros.
TH_UNROLL for (int i = 0; i < 4; ++i) {
const int n = block_n + warp_n + $B_COL;
const int k = step * $STEP + $B_DEPTH;
held_b[s][i] = {0u, 0u, 0u, 0u};
//@load_b
}
TH_UNROLL for (int i = 0; i < $FM; ++i) {
TH_UNROLL for (int half = 0; half < 2; ++half) {
const int m = block_m + i * 16 + half * 8 + group;
const int k = step * $STEP + quad * $LINE;
held_a[s][i][half] = {0u, 0u, 0u, 0u};
//@load_a
}
}
//@@ multiply_f32
const float zeros[4] = {0.0f, 0.0f, 0.0f, 0.0f};
TH_UNROLL for (int half = 0; half < 2; ++half) {
th_u32 b_hi[4][2], b_lo[4][2];
TH_UNROLL for (int j = 0; j < 4; ++j) {
TH_UNROLL for (int r = 0; r < 2; ++r) {
const float b = __int_as_float((int)$B_ELEMENT);
b_hi[j][r] = th_tf32_hi(b);
b_lo[j][r] = th_tf32_lo(b, b_hi[j][r]);
}
}
TH_UNROLL for (int i = 0; i < $FM; ++i) {
th_u32 a_hi[4], a_lo[4];
TH_UNROLL for (int r = 0; r < 4; ++r) {
const float a = __int_as_float((int)th_part(held_a[now][i][r % 2], half * 2 + r / 2));
a_hi[r] = th_tf32_hi(a);
a_lo[r] = th_tf32_lo(a, a_hi[r]);
}
float high[4][4];
TH_UNROLL for (int j = 0; j < 4; ++j) {
th_mma_tf32(high[j], a_hi, b_hi[j], zeros);
}
TH_UNROLL for (int j = 0; j < 4; ++j) {
th_mma_tf32(side[i][j], a_lo, b_hi[j], side[i][j]);
}
TH_UNROLL for (int j = 0; j < 4; ++j) {
th_mma_tf32(side[i][j], a_hi, b_lo[j], side[i][j]);
}
TH_UNROLL for (int j = 0; j < 4; ++j) {
TH_UNROLL for (int r = 0; r < 4; ++r) {
acc[i][j][r] += high[j][r];
}
}
}
}
//@@ multiply_16_along_k
TH_UNROLL for (int half = 0; half < 2; ++half) {
TH_UNROLL for (int i = 0; i < $FM; ++i) {
th_u32 a[4];
TH_UNROLL for (int r = 0; r < 4; ++r) {
a[r] = th_part(held_a[now][i][r % 2], half * 2 + r / 2);
}
TH_UNROLL for (int j = 0; j < 4; ++j) {
const th_u32 b[2] = {th_part(held_b[now][j], half * 2), th_part(held_b[now][j], half * 2 + 1)};
th_mma_16(side[i][j], a, b);
}
}
}
//@@ multiply_16_along_n
TH_UNROLL for (int j = 0; j < 8; ++j) {
th_u32 b[2];
TH_UNROLL for (int r = 0; r < 2; ++r) {
b[r] = __byte_perm(th_part(held_b[now][r * 2], j / 2), th_part(held_b[now][r * 2 + 1], j / 2), j % 2 == 0 ? 0x5410 : 0x7632);
}
TH_UNROLL for (int i = 0; i < $FM; ++i) {
const th_u32 a[4] = {held_a[now][i][0].x, held_a[now][i][1].x, held_a[now][i][0].y, held_a[now][i][1].y};
th_mma_16(side[i][j], a, b);
}
}
//@@ join
TH_UNROLL for (int i = 0; i < $FM; ++i) {
TH_UNROLL for (int j = 0; j < $FN; ++j) {
TH_UNROLL for (int r = 0; r < 4; ++r) {
acc[i][j][r] += side[i][j][r];
side[i][j][r] = 0.0f;
}
}
}
//@@ join_warps
TH_BARRIER();
for (int t = TH_THREAD; t < $BM * $BN; t += $THREADS) {
const int at = t / $BN * $CP + t % $BN;
float total = tiles[at];
TH_UNROLL for (int w = 1; w < $WARPS_K; ++w) {
total += tiles[at + w * $BM * $CP];
}
tiles[at] = total;
}
