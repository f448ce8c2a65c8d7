// y[z][m][:] = softmax_n(expression(sum_d q[z][m][d] k[z][n][d])) v[z][n][:] of f16 or bf16 on the tensor cores of sm_90a (wgmma), in
// one pass over the keys (attention.cuh says how sums are rescaled). Scores, powers and sums stay in registers: float32 sums of
// 16-bit products, powers rounded to 16 bits for the second product.
//
// A block is $CONSUMERS groups of 128 threads with 64 queries each, and one producer. It stays for many tiles of BM = 64 $CONSUMERS
// queries: the producer, one thread, brings q once a tile and k and v in tiles of BN keys by tensor maps into rings of $SLOTS slots
// (columns in panels of 64, zeros beyond the edges), ahead into the next tile. Keys are taken from the last to the first, so that
// tiles with a mask come first and the others need none.
// While a group's tensor cores multiply the powers of one tile with v they also make the scores of the next one, and the groups take
// turns in starting their products (named barriers), so that one group's powers are computed while the other's products run
// (Shah et al. 2024 describe both).
// Causal: tiles of keys that no query of the block sees are left out, those that all see have no mask; long tiles of queries come
// first, forwards and backwards in turns so that every block gets about the same, heads in groups that fit into the second cache.
// Results leave by a tensor map, or element by element through the epilogue.
// Shared bytes: see attention_wgmma.cc, dynamic.
// Without these instructions (PTX carried to another architecture) plain loops compute the same.
// Sources: PTX ISA (wgmma and its descriptors and fragments, cp.async.bulk.tensor, mbarrier, setmaxnreg, bar).
//@@ functions
TH_FN float th_power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// Lines of values: bytes from one panel of 64 columns to the next, 1024 bytes from eight keys to the next, 128-byte swizzle.
TH_FN th_u64 th_tile_of_values(th_u32 at) {
  return (th_u64)((at & 0x3ffff) >> 4) | (th_u64)($BN * 8) << 16 | (th_u64)64 << 32 | (th_u64)1 << 62;
}
//@@ tile_in_order
const int tile = first_tile + TH_BLOCK;
if (tile >= tiles) break;
const int z = tile / $TILES_M;
const int tile_m = tile % $TILES_M * $BM;
const int steps = ($N + $BN - 1) / $BN;
//@@ tile_causal
const int tile = first_tile + (first_tile / TH_BLOCKS % 2 == 0 ? TH_BLOCK : TH_BLOCKS - 1 - TH_BLOCK);
if (tile >= tiles) break;
const int first_z = tile / ($HEADS * $TILES_M) * $HEADS;
const int in_heads = tile % ($HEADS * $TILES_M);
const int heads = $BATCHES - first_z < $HEADS ? $BATCHES - first_z : $HEADS;
const int z = first_z + in_heads % heads;
const int tile_m = ($TILES_M - 1 - in_heads / heads) * $BM;
const int seen_by_last = tile_m + $BM + $SHIFT;
const int seen = seen_by_last < 1 ? 1 : seen_by_last < $N ? seen_by_last : $N;
const int steps = (seen + $BN - 1) / $BN;
//@@ scores
asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
TH_UNROLL for (int kk = 0; kk < $DEPTH / 16; ++kk) {
th_wgmma(s, q_tile + kk / 4 * ($BM * 8) + kk % 4 * 2, k_tile + kk / 4 * ($BN * 8) + kk % 4 * 2, kk > 0);
}
asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
//@@ values
asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
TH_UNROLL for (int kk = 0; kk < $BN / 16; ++kk) {
th_wgmma_values(sums, p + kk * 4, v_tile + kk * 128, step > 1 || kk > 0);
}
asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
//@@ masked
const int first_n = (steps - 1 - at_step) * $BN + quad * 2;
TH_UNROLL for (int j = 0; j < $BN / 8; ++j) {
TH_UNROLL for (int r = 0; r < 4; ++r) {
const int n_free = first_n + j * 8 + r % 2;
const int m_free = own_m + r / 2 * 8;
const int n = n_free < $N ? n_free : $N - 1;
const int m = m_free < $M ? m_free : $M - 1;
const float score = s[j * 4 + r];
//@logit
}
}
//@@ guarded
const int first_n = (steps - 1 - at_step) * $BN + quad * 2;
TH_UNROLL for (int j = 0; j < $BN / 8; ++j) {
TH_UNROLL for (int r = 0; r < 4; ++r) {
const int n = first_n + j * 8 + r % 2;
const int m = own_m + r / 2 * 8;
s[j * 4 + r] = $SEEN ? s[j * 4 + r] : -TH_INF_F32;
}
}
//@@ powers
TH_UNROLL for (int h = 0; h < 2; ++h) {
float largest = top[h];
TH_UNROLL for (int j = 0; j < $BN / 8; ++j) {
largest = fmaxf(largest, fmaxf(s[j * 4 + 2 * h], s[j * 4 + 2 * h + 1]));
}
largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
const float less = largest == -TH_INF_F32 ? 0.0f : largest * $SCALE;
share[h] = th_power_of_two(top[h] * $SCALE - less);
top[h] = largest;
float powers = 0.0f;
TH_UNROLL for (int j = 0; j < $BN / 8; ++j) {
TH_UNROLL for (int r = 0; r < 2; ++r) {
const float power = th_power_of_two(fmaf(s[j * 4 + 2 * h + r], $SCALE, -less));
s[j * 4 + 2 * h + r] = power;
powers += power;
}
}
total[h] = total[h] * share[h] + powers;
}
//@@ pack
TH_UNROLL for (int j = 0; j < $BN / 8; ++j) {
p[j * 2] = th_pair(s[j * 4], s[j * 4 + 1]);
p[j * 2 + 1] = th_pair(s[j * 4 + 2], s[j * 4 + 3]);
}
//@@ step
th_barrier_wait(k_full + 8 * slot, phase);
//@turn
const th_u64 k_tile = th_tile(base + $RING_K + slot * $SLOT_K);
//@scores
th_barrier_wait(v_full + 8 * last, last_phase);
const th_u64 v_tile = th_tile_of_values(base + $RING_V + last * $SLOT_V);
//@values
//@next_turn
asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
th_wgmma_done(s);
if (lane == 0) th_barrier_arrive(k_empty + 8 * slot);
const int at_step = step;
//@logits
//@powers
asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
th_values_done(sums);
if (lane == 0) th_barrier_arrive(v_empty + 8 * last);
//@pack
TH_UNROLL for (int j = 0; j < $WIDTH / 8; ++j) {
TH_UNROLL for (int r = 0; r < 4; ++r) {
sums[j * 4 + r] *= share[r / 2];
}
}
last = slot;
last_phase = phase;
phase ^= slot + 1 == $SLOTS;
slot = slot + 1 == $SLOTS ? 0 : slot + 1;
//@@ body
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
{
extern __shared__ __align__(16) char shared_bytes[];
const th_u32 base = (th_shared(shared_bytes) + 1023) & ~1023u;
char* shared = shared_bytes + (base - th_shared(shared_bytes));
const th_u32 q_full = base + $BARRIERS, q_empty = q_full + 8, k_full = q_full + 16, k_empty = k_full + 8 * $SLOTS;
const th_u32 v_full = k_empty + 8 * $SLOTS, v_empty = v_full + 8 * $SLOTS;
const int tiles = $TILES_M * $BATCHES;
const int role = TH_THREAD / 128;
if (TH_THREAD == 0) {
th_barrier_init(q_full, 1);
th_barrier_init(q_empty, 4 * $CONSUMERS);
for (int i = 0; i < $SLOTS; ++i) {
th_barrier_init(k_full + 8 * i, 1);
th_barrier_init(k_empty + 8 * i, 4 * $CONSUMERS);
th_barrier_init(v_full + 8 * i, 1);
th_barrier_init(v_empty + 8 * i, 4 * $CONSUMERS);
}
asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
TH_BARRIER();
if (role == $CONSUMERS) {
//@fewer_registers
if (TH_THREAD == 128 * $CONSUMERS) {
int slot = 0, phase = 1, q_phase = 1;
TH_NO_UNROLL for (int first_tile = 0; first_tile < tiles; first_tile += TH_BLOCKS) {
//@tile
th_barrier_wait(q_empty, q_phase);
q_phase ^= 1;
th_barrier_expect(q_full, $BM * $DEPTH * 2);
TH_UNROLL for (int c = 0; c < $DEPTH / 64; ++c) {
th_map_copy(base + c * $BM * 128, &map_q, c * 64, tile_m, $Q_LINE, q_full);
}
TH_NO_UNROLL for (int step = 0; step < steps; ++step) {
const int tile_n = (steps - 1 - step) * $BN;
th_barrier_wait(k_empty + 8 * slot, phase);
th_barrier_expect(k_full + 8 * slot, $SLOT_K);
TH_UNROLL for (int c = 0; c < $DEPTH / 64; ++c) {
th_map_copy(base + $RING_K + slot * $SLOT_K + c * $BN * 128, &map_k, c * 64, tile_n, $K_LINE, k_full + 8 * slot);
}
th_barrier_wait(v_empty + 8 * slot, phase);
th_barrier_expect(v_full + 8 * slot, $SLOT_V);
TH_UNROLL for (int c = 0; c < $WIDTH / 64; ++c) {
th_map_copy(base + $RING_V + slot * $SLOT_V + c * $BN * 128, &map_v, c * 64, tile_n, $V_LINE, v_full + 8 * slot);
}
phase ^= slot + 1 == $SLOTS;
slot = slot + 1 == $SLOTS ? 0 : slot + 1;
}
}
}
}
if (role < $CONSUMERS) {
//@more_registers
const int lane = TH_THREAD % 32;
const int group = lane / 4;
const int quad = lane % 4;
const int own_row = TH_THREAD % 128 / 32 * 16 + group;
const th_u64 q_tile = th_tile(base + role * 8192);
float s[$BN / 2], sums[$WIDTH / 2];
th_u32 p[$BN / 4];
int slot = 0, phase = 0, q_phase = 0;
//@first_turn
TH_NO_UNROLL for (int first_tile = 0; first_tile < tiles; first_tile += TH_BLOCKS) {
//@tile
const int own_m = tile_m + role * 64 + own_row;
float top[2] = {-TH_INF_F32, -TH_INF_F32}, total[2] = {0.0f, 0.0f}, share[2];
th_barrier_wait(q_full, q_phase);
q_phase ^= 1;
th_barrier_wait(k_full + 8 * slot, phase);
{
const th_u64 k_tile = th_tile(base + $RING_K + slot * $SLOT_K);
//@scores
}
asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
th_wgmma_done(s);
if (lane == 0) th_barrier_arrive(k_empty + 8 * slot);
{
const int at_step = 0;
//@first_logits
//@powers
//@pack
}
int last = slot, last_phase = phase, step = 1;
phase ^= slot + 1 == $SLOTS;
slot = slot + 1 == $SLOTS ? 0 : slot + 1;
//@steps
//@q_is_read
th_barrier_wait(v_full + 8 * last, last_phase);
{
const th_u64 v_tile = th_tile_of_values(base + $RING_V + last * $SLOT_V);
//@values
}
TH_UNROLL for (int h = 0; h < 2; ++h) {
total[h] += __shfl_xor_sync(0xffffffffu, total[h], 1);
total[h] += __shfl_xor_sync(0xffffffffu, total[h], 2);
}
float share_of[2];
TH_UNROLL for (int h = 0; h < 2; ++h) {
const float all = total[h];
share_of[h] = $SHARE;
}
asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
th_values_done(sums);
if (lane == 0) th_barrier_arrive(v_empty + 8 * last);
//@store
}
//@last_turn
//@stored
}
}
#else
//@plain_loops
#endif
//@@ causal_steps
const int seen_by_own = tile_m + role * 64 + $SHIFT + 1;
const int seen_whole = (seen_by_own < 0 ? 0 : seen_by_own < $N ? seen_by_own : $N) / $BN;
TH_NO_UNROLL for (; step < steps - seen_whole; ++step) {
//@masked_step
}
TH_NO_UNROLL for (; step < steps; ++step) {
//@whole_step
}
//@@ all_steps
TH_NO_UNROLL for (; step < steps; ++step) {
//@whole_step
}
//@@ store_plain
//@unread
asm volatile("bar.sync %0, 128;" :: "r"(role + 1) : "memory");
TH_UNROLL for (int c = 0; c < $WIDTH / 64; ++c) {
th_u32* pairs = (th_u32*)(shared + $STAGING + role * $STAGING_ROLE + c * $STAGING_PANEL) + own_row * 32 + quad;
TH_UNROLL for (int j = 0; j < 8; ++j) {
const float* own = sums + (c * 8 + j) * 4;
pairs[(j ^ group) * 4] = th_pair($SCALED_0, $SCALED_1);
pairs[(j ^ group) * 4 + 256] = th_pair($SCALED_2, $SCALED_3);
}
}
asm volatile("fence.proxy.async.shared::cta;\n\tbar.sync %0, 128;" :: "r"(role + 1) : "memory");
if (TH_THREAD % 128 == 0) {
TH_UNROLL for (int c = 0; c < $WIDTH / 64; ++c) {
th_map_store(&map_y, base + $STAGING + role * $STAGING_ROLE + c * $STAGING_PANEL, c * 64, tile_m + role * 64, z);
}
}
//@give_back_q
//@@ in_room_of_q
if (TH_THREAD % 128 == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
asm volatile("bar.sync %0, 128;" :: "r"(role + 1) : "memory");
if (lane == 0) th_barrier_arrive(q_empty);
//@@ store_elements
TH_UNROLL for (int h = 0; h < 2; ++h) {
const int m = own_m + h * 8;
if (m < $M) {
TH_UNROLL for (int j = 0; j < $WIDTH / 8; ++j) {
TH_UNROLL for (int r = 0; r < 2; ++r) {
const int w = j * 8 + quad * 2 + r;
const float own[2] = {sums[j * 4 + 2 * h + r], share_of[h]};
const float y = $ELEMENT;
//@store_element
}
}
}
}
