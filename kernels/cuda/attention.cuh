// y[z][m][:] = softmax_n(expression(sum_d q[z][m][d] k[z][n][d])) v[z][n][:] on tensor cores (sm_80 and newer), in one pass over
// the keys: a row keeps its largest score so far, the sum of its powers and the sum of its values, and rescales them when a larger
// score comes (Milakov and Gimelshein 2018; Dao et al. 2022). No score goes to memory.
//
// f32: every operand, the powers too, is split in registers into hi (11 bits) and lo, and three tf32 products are summed as in
// gemm_mma.cuh, of which the functions come. f16 and bf16 are exact in tf32: one product for the scores; powers are rounded to 11 bits.
// Powers are of two: p = 2^((s - largest) log2 e), by ex2.approx (2 ulp).
//
// A block of WARPS_M * WARPS_N warps has 16 WARPS_M rows; its warps share the keys of a tile of BN * WARPS_N, BN a warp, and add up
// their sums at the end. STAGES tiles of K and V are in shared memory or on their way: by asynchronous copies of four elements where
// the depth is contiguous, through registers elsewhere. Rows beyond the end read the last row's mask and are not stored.
// The fragment of a score is the fragment of a power: neighbouring columns 2 quad, 2 quad + 1 stand for keys of the second product.
// Shared bytes: see attention_mma.cc, dynamic.
//@@ functions
TH_FN float th_power(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.4426950408889634f));
  return y;
}
//@@ load
TH_UNROLL for (int t = 0; t < $LOADS_K; ++t) {
const int at = t * $THREADS + TH_THREAD;
const int line = at / $LINE_K;
const int d = at % $LINE_K * $WIDTH_K;
const int n = next * $TILE + line;
float* to = next_k + line * $PK + d;
if ($GUARD_K) {
//@load_k
}
}
TH_UNROLL for (int t = 0; t < $LOADS_V; ++t) {
const int at = t * $THREADS + TH_THREAD;
const int line = at / $LINE_V;
const int w = at % $LINE_V * $WIDTH_V;
const int n = next * $TILE + line;
float* to = next_v + line * $PV + w;
if ($GUARD_V) {
//@load_v
}
}
//@@ body
{
extern __shared__ __align__(16) float tiles[];
float* ring = tiles + $SIZE_Q;
const int tile_m = TH_BLOCK % $TILES_M;
const int z = TH_BLOCK / $TILES_M;
const int block_m = tile_m * $BM;
const int group = TH_THREAD % 32 / 4;
const int quad = TH_THREAD % 4;
const int part = TH_THREAD / 32 % $WARPS_N;
const int own_m = TH_THREAD / 32 / $WARPS_N * 16 + group;
//@range
const float zeros[4] = {0.0f, 0.0f, 0.0f, 0.0f};
for (int t = 0; t < $LOADS_Q; ++t) {
const int at = t * $THREADS + TH_THREAD;
const int line = at / $LINE_Q;
const int d = at % $LINE_Q * $WIDTH_Q;
const int m = block_m + line;
float* to = tiles + line * $PK + d;
if (line < $BM) {
//@load_q
}
}
float top[2], total[2], sums[$FW][4];
TH_UNROLL for (int h = 0; h < 2; ++h) {
top[h] = -TH_INF_F32;
total[h] = 0.0f;
}
TH_UNROLL for (int j = 0; j < $FW; ++j) {
TH_UNROLL for (int r = 0; r < 4; ++r) {
sums[j][r] = 0.0f;
}
}
for (int step = $BEFORE; step < steps; ++step) {
asm volatile("cp.async.wait_group 0;" ::: "memory");
TH_BARRIER();
const int next = step + 1;
float* next_k = ring + next % $STAGES * $SLOT;
float* next_v = next_k + $SIZE_K;
//@load_early
if (step $STARTED) {
const float* tile_k = ring + step % $STAGES * $SLOT + part * $BN * $PK;
const float* tile_v = ring + step % $STAGES * $SLOT + $SIZE_K + part * $BN * $PV;
float s[$FN][4], low[$FN][4];
TH_UNROLL for (int j = 0; j < $FN; ++j) {
TH_UNROLL for (int r = 0; r < 4; ++r) {
s[j][r] = 0.0f;
low[j][r] = 0.0f;
}
}
TH_UNROLL for (int kk = 0; kk < $DEPTH; kk += 8) {
const float2 upper = *(const float2*)(tiles + own_m * $PK + kk + quad * 2);
const float2 lower = *(const float2*)(tiles + (own_m + 8) * $PK + kk + quad * 2);
const float a[4] = {upper.x, lower.x, upper.y, lower.y};
//@split_a
TH_UNROLL for (int j = 0; j < $FN; ++j) {
const float2 pair = *(const float2*)(tile_k + (j * 8 + group) * $PK + kk + quad * 2);
const float b[2] = {pair.x, pair.y};
//@multiply_scores
}
}
const int first_n = step * $TILE + part * $BN + quad * 2;
TH_UNROLL for (int j = 0; j < $FN; ++j) {
TH_UNROLL for (int r = 0; r < 4; ++r) {
const int n_free = first_n + j * 8 + r % 2;
const int m_free = block_m + own_m + r / 2 * 8;
const int n = n_free < $N ? n_free : $N - 1;
const int m = m_free < $M ? m_free : $M - 1;
const float score = s[j][r] + low[j][r];
//@logit
}
}
float share[2];
TH_UNROLL for (int h = 0; h < 2; ++h) {
float largest = top[h];
TH_UNROLL for (int j = 0; j < $FN; ++j) {
largest = fmaxf(largest, fmaxf(s[j][2 * h], s[j][2 * h + 1]));
}
largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
const float base = largest == -TH_INF_F32 ? 0.0f : largest;
share[h] = th_power(top[h] - base);
top[h] = largest;
float powers = 0.0f;
TH_UNROLL for (int j = 0; j < $FN; ++j) {
TH_UNROLL for (int r = 0; r < 2; ++r) {
s[j][2 * h + r] = th_power(s[j][2 * h + r] - base);
powers += s[j][2 * h + r];
}
}
total[h] = total[h] * share[h] + powers;
}
//@split_powers
TH_UNROLL for (int w = 0; w < $FW; w += 4) {
float out[4][4], small[4][4];
TH_UNROLL for (int j = 0; j < 4; ++j) {
TH_UNROLL for (int r = 0; r < 4; ++r) {
out[j][r] = sums[w + j][r] * share[r / 2];
small[j][r] = 0.0f;
}
}
TH_UNROLL for (int kk = 0; kk < $FN; ++kk) {
const float* row = tile_v + (kk * 8 + quad * 2) * $PV + w * 8 + group * 4;
const float4 even = *(const float4*)row;
const float4 odd = *(const float4*)(row + $PV);
const float v[4][2] = {{even.x, odd.x}, {even.y, odd.y}, {even.z, odd.z}, {even.w, odd.w}};
TH_UNROLL for (int j = 0; j < 4; ++j) {
//@multiply_values
}
}
TH_UNROLL for (int j = 0; j < 4; ++j) {
TH_UNROLL for (int r = 0; r < 4; ++r) {
sums[w + j][r] = out[j][r] + small[j][r];
}
}
}
}
//@load_late
asm volatile("cp.async.commit_group;" ::: "memory");
}
TH_UNROLL for (int h = 0; h < 2; ++h) {
total[h] += __shfl_xor_sync(0xffffffffu, total[h], 1);
total[h] += __shfl_xor_sync(0xffffffffu, total[h], 2);
}
// Where there are no keys, q is still on its way.
asm volatile("cp.async.wait_group 0;" ::: "memory");
TH_BARRIER();
//@join
TH_UNROLL for (int j = 0; j < $FW; ++j) {
TH_UNROLL for (int r = 0; r < 4; ++r) {
const int column = j / 4 * 32 + (quad * 2 + r % 2) * 4 + j % 4;
tiles[(part * $BM + own_m + r / 2 * 8) * $PO + column] = $SCALED;
}
}
TH_BARRIER();
for (int t = TH_THREAD; t < $BM * $WIDTH; t += $THREADS) {
const int tm = t / $WIDTH;
const int w = t % $WIDTH;
const int m = block_m + tm;
if (m < $M) {
float y = 0.0f;
TH_UNROLL for (int p = 0; p < $WARPS_N; ++p) {
y += tiles[(p * $BM + tm) * $PO + w];
}
//@store
}
}
}
//@@ all_keys
const int steps = ($N + $TILE - 1) / $TILE;
//@@ window
// Keys that a row of this block sees; tiles before and behind are left out.
int from = $N, to = 0;
for (int t = TH_THREAD % 32; t < $BM; t += 32) {
const int m = block_m + t;
if (m < $M) {
//@row
}
}
TH_UNROLL for (int lane = 16; lane > 0; lane /= 2) {
const int other_from = __shfl_xor_sync(0xffffffffu, from, lane);
const int other_to = __shfl_xor_sync(0xffffffffu, to, lane);
from = other_from < from ? other_from : from;
to = other_to > to ? other_to : to;
}
const int before = from < to ? from / $TILE - 1 : -1;
const int steps = from < to ? (to + $TILE - 1) / $TILE : 0;
//@@ alone
float share_of[2];
TH_UNROLL for (int h = 0; h < 2; ++h) {
const float all = total[h];
share_of[h] = $SHARE;
}
//@@ together
float* tops = tiles + $WARPS_N * $BM * $PO;
float* totals = tops + $WARPS_N * $BM;
if (quad == 0) {
TH_UNROLL for (int h = 0; h < 2; ++h) {
tops[part * $BM + own_m + h * 8] = top[h];
totals[part * $BM + own_m + h * 8] = total[h];
}
}
TH_BARRIER();
float share_of[2];
TH_UNROLL for (int h = 0; h < 2; ++h) {
float largest = -TH_INF_F32;
TH_UNROLL for (int p = 0; p < $WARPS_N; ++p) {
largest = fmaxf(largest, tops[p * $BM + own_m + h * 8]);
}
const float base = largest == -TH_INF_F32 ? 0.0f : largest;
float all = 0.0f;
TH_UNROLL for (int p = 0; p < $WARPS_N; ++p) {
all += totals[p * $BM + own_m + h * 8] * th_power(tops[p * $BM + own_m + h * 8] - base);
}
share_of[h] = th_power(top[h] - base) * ($SHARE);
}
//@@ split_a
th_u32 a_hi[4], a_lo[4];
TH_UNROLL for (int r = 0; r < 4; ++r) {
a_hi[r] = th_tf32_hi(a[r]);
a_lo[r] = th_tf32_lo(a[r], a_hi[r]);
}
//@@ scores_split
th_u32 b_hi[2], b_lo[2];
TH_UNROLL for (int r = 0; r < 2; ++r) {
b_hi[r] = th_tf32_hi(b[r]);
b_lo[r] = th_tf32_lo(b[r], b_hi[r]);
}
float high[4];
th_mma_tf32(low[j], a_lo, b_hi, low[j]);
th_mma_tf32(high, a_hi, b_hi, zeros);
th_mma_tf32(low[j], a_hi, b_lo, low[j]);
TH_UNROLL for (int r = 0; r < 4; ++r) {
s[j][r] += high[r];
}
//@@ scores_exact
float high[4];
th_mma_tf32(high, (const th_u32*)a, (const th_u32*)b, zeros);
TH_UNROLL for (int r = 0; r < 4; ++r) {
s[j][r] += high[r];
}
//@@ powers_split
th_u32 p_hi[$FN][4], p_lo[$FN][4];
TH_UNROLL for (int j = 0; j < $FN; ++j) {
const float p[4] = {s[j][0], s[j][2], s[j][1], s[j][3]};
TH_UNROLL for (int r = 0; r < 4; ++r) {
p_hi[j][r] = th_tf32_hi(p[r]);
p_lo[j][r] = th_tf32_lo(p[r], p_hi[j][r]);
}
}
//@@ powers_exact
th_u32 p_hi[$FN][4];
TH_UNROLL for (int j = 0; j < $FN; ++j) {
const float p[4] = {s[j][0], s[j][2], s[j][1], s[j][3]};
TH_UNROLL for (int r = 0; r < 4; ++r) {
p_hi[j][r] = th_tf32_hi(p[r]);
}
}
//@@ values_split
th_u32 v_hi[2], v_lo[2];
TH_UNROLL for (int r = 0; r < 2; ++r) {
v_hi[r] = th_tf32_hi(v[j][r]);
v_lo[r] = th_tf32_lo(v[j][r], v_hi[r]);
}
float high[4];
th_mma_tf32(small[j], p_lo[kk], v_hi, small[j]);
th_mma_tf32(high, p_hi[kk], v_hi, zeros);
th_mma_tf32(small[j], p_hi[kk], v_lo, small[j]);
TH_UNROLL for (int r = 0; r < 4; ++r) {
out[j][r] += high[r];
}
//@@ values_exact
float high[4];
th_mma_tf32(high, p_hi[kk], (const th_u32*)v[j], zeros);
TH_UNROLL for (int r = 0; r < 4; ++r) {
out[j][r] += high[r];
}
