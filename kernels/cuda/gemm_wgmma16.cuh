// product[z][m][n] = sum_k a[z][m][k] * b[z][k][n] of f16 or bf16 operands on the tensor cores of sm_90a (wgmma), summed in float32.
//
// A block is $CONSUMERS groups of 128 threads and one producer. It stays for many tiles of BM x BN, BM = 64 $CONSUMERS: tile
// after tile the producer, one thread, brings steps of 64 of the depth into a ring of $SLOTS slots by tensor maps (zeros beyond the
// edges), ahead into the next tile while the consumers still store the last one. A consumer multiplies its 64 rows with all BN
// columns; a step is in flight while the one before it is given back. Both orders of both operands are read as they lie: lines of
// the depth (rows of 128 bytes, swizzled), or lines of rows or columns (boxes of 64 x 64, which wgmma reads transposed).
// CLUSTER 2: two blocks take tiles below each other, each brings half of their common columns of B for both.
// SPLIT > 1: the blocks of a cluster share the depth of one tile each and add up their sums out of all their shared memories.
// Tiles run through the rows in groups of $GROUP, so that blocks at work share operands in the second cache.
// A product that nothing follows leaves by a tensor map too, 64 columns at a time, while the next tile is multiplied; others go 32
// columns at a time through float32 sums in shared memory and the epilogue.
// Tensor cores truncate when they add: over a depth of 65536 about 2^-11 of the sum's magnitude is the worst, below what rounding to
// bf16 takes, and at what f16 takes.
// Shared bytes: 1024 + SLOTS (BM + BN) 128 + CONSUMERS 16384 + barriers, dynamic.
// Without these instructions (PTX carried to another architecture) plain loops compute the same product.
// Sources: PTX ISA (wgmma and its descriptors, cp.async.bulk.tensor, multicast, mbarrier, setmaxnreg).
//@@ functions
TH_FN void th_map_copy(th_u32 to, const th_map* map, int x, int y, int z, th_u32 barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
      :: "r"(to), "l"((th_u64)map), "r"(x), "r"(y), "r"(z), "r"(barrier) : "memory");
}
// To the same place of every block in `mask` of the cluster, each with its own barrier.
TH_FN void th_map_copy_to_all(th_u32 to, const th_map* map, int x, int y, int z, th_u32 barrier, int mask) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%2, %3, %4}], [%5], %6;"
      :: "r"(to), "l"((th_u64)map), "r"(x), "r"(y), "r"(z), "r"(barrier), "h"((th_u16)mask) : "memory");
}
// Out of shared memory, what lies beyond the edges left out; by one thread, which waits until the first of them were read.
TH_FN void th_map_store(const th_map* map, th_u32 from, int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];\n\t"
      "cp.async.bulk.commit_group;" :: "l"((th_u64)map), "r"(from), "r"(x), "r"(y), "r"(z) : "memory");
}
TH_FN void th_barrier_arrive_at(th_u32 at, int rank) {
  asm volatile(
      "{.reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;\n\t"
      "mbarrier.arrive.shared::cluster.b64 _, [there];}" :: "r"(at), "r"(rank) : "memory");
}
TH_FN void th_cluster_meet() {
  asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
}
// What wgmma needs to know of lines of rows or columns: address, bytes from 64 of them to the next, 1024 bytes from eight of the
// depth to the next, 128-byte swizzle.
TH_FN th_u64 th_tile_of_lines(th_u32 at) {
  return (th_u64)((at & 0x3ffff) >> 4) | (th_u64)512 << 16 | (th_u64)64 << 32 | (th_u64)1 << 62;
}
TH_FN th_u32 th_pair(float x, float y) {
  th_u32 pair;
  asm("cvt.rn.$PAIR.f32 %0, %2, %1;" : "=r"(pair) : "f"(x), "f"(y));
  return pair;
}
//@@ tile
const int z = tile / ($TILES_M * $TILES_N);
const int in_z = tile % ($TILES_M * $TILES_N);
const int row_group = in_z / ($GROUP * $TILES_N);
const int first_row = row_group * $GROUP;
const int rows_in_group = $TILES_M - first_row < $GROUP ? $TILES_M - first_row : $GROUP;
const int in_group = in_z % ($GROUP * $TILES_N);
const int tile_m = ((first_row + in_group % rows_in_group) * $CLUSTER + $ROW_RANK) * $BM;
const int tile_n = in_group / rows_in_group * $BN;
//@@ body
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
{
extern __shared__ __align__(16) char shared_bytes[];
const th_u32 base = (th_shared(shared_bytes) + 1023) & ~1023u;
char* shared = shared_bytes + (base - th_shared(shared_bytes));
const th_u32 full = base + $BARRIERS, empty = full + 8 * $SLOTS;
const int rank = TH_BLOCK % $TOGETHER;
const int tiles = $TILES_M * $TILES_N * $BATCHES;
const int all_steps = $STEPS;
//@part
const int role = TH_THREAD / 128;
if (TH_THREAD == 0) {
for (int s = 0; s < $SLOTS; ++s) {
th_barrier_init(full + 8 * s, 1);
th_barrier_init(empty + 8 * s, 4 * $CONSUMERS * $CLUSTER);
}
asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
//@meet
if (role == $CONSUMERS) {
//@fewer_registers
if (TH_THREAD == 128 * $CONSUMERS) {
int slot = 0, phase = 1;
TH_NO_UNROLL for (int tile = TH_BLOCK / $TOGETHER; tile < tiles; tile += TH_BLOCKS / $TOGETHER) {
//@tile
TH_NO_UNROLL for (int step = 0; step < steps; ++step) {
const th_u32 to_a = base + slot * $SLOT, to_b = to_a + $BM * 128;
th_barrier_wait(empty + 8 * slot, phase);
th_barrier_expect(full + 8 * slot, $SLOT);
//@copy_a
//@copy_b
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
float acc[$SUMS];
//@zero
int slot = 0, phase = 0;
TH_NO_UNROLL for (int tile = TH_BLOCK / $TOGETHER; tile < tiles; tile += TH_BLOCKS / $TOGETHER) {
//@tile
TH_NO_UNROLL for (int step = 0; step < steps; ++step) {
th_barrier_wait(full + 8 * slot, phase);
const th_u64 a = $TILE_A(base + slot * $SLOT + role * 8192), b = $TILE_B(base + slot * $SLOT + $BM * 128);
asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
TH_UNROLL for (int kk = 0; kk < 4; ++kk) {
th_wgmma(acc, a + $NEXT_A * kk, b + $NEXT_B * kk, step > 0 || kk > 0);
}
asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 1;" ::: "memory");
const int last = slot == 0 ? $SLOTS - 1 : slot - 1;
if (lane < $CLUSTER && step > 0) $GIVE_BACK;
phase ^= slot + 1 == $SLOTS;
slot = slot + 1 == $SLOTS ? 0 : slot + 1;
}
asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
th_wgmma_done(acc);
const int last = slot == 0 ? $SLOTS - 1 : slot - 1;
//@last_step
//@store
}
//@stored
}
//@leave
}
#else
for (int i = TH_BLOCK * TH_THREADS + TH_THREAD; i < $BATCHES * $M * $N; i += TH_BLOCKS * TH_THREADS) {
const int n = i % $N;
const int rest = i / $N;
const int m = rest % $M;
const int z = rest / $M;
float total = 0.0f;
for (int k = 0; k < $K; ++k) {
//@step
}
//@epilogue
}
#endif
//@@ part
const int part = (all_steps + $SPLIT - 1) / $SPLIT;
const int first = rank * part;
const int steps = all_steps - first < part ? all_steps - first : part;
//@@ zero
TH_UNROLL for (int i = 0; i < $SUMS; ++i) {
acc[i] = 0.0f;
}
//@@ store_shared
const int parts = $SPLIT;
const int block_m = tile_m;
const int block_n = tile_n;
asm volatile("bar.sync 1, %0;" :: "n"(128 * $CONSUMERS) : "memory");
float* sums = (float*)shared;
TH_UNROLL for (int j = 0; j < $BN / 8; ++j) {
const float* total = acc + j * 4;
float* to = sums + (role * 64 + own_row) * $CP + j * 8 + quad * 2;
*(float2*)to = make_float2(total[0], total[1]);
*(float2*)(to + 8 * $CP) = make_float2(total[2], total[3]);
}
th_cluster_barrier();
//@store_tile
th_cluster_barrier();
//@@ store_plain
const int block_m = tile_m + role * 64;
TH_UNROLL for (int c = 0; c < $BN / 64; ++c) {
const int from = $STAGING + role * 16384 + c % 2 * 8192;
if (TH_THREAD % 128 == 0) asm volatile("cp.async.bulk.wait_group.read $UNREAD;" ::: "memory");
asm volatile("bar.sync %0, 128;" :: "r"(role + 1) : "memory");
th_u32* pairs = (th_u32*)(shared + from) + own_row * 32 + quad;
TH_UNROLL for (int j = 0; j < 8; ++j) {
const float* total = acc + (c * 8 + j) * 4;
pairs[(j ^ group) * 4] = th_pair(total[0], total[1]);
pairs[(j ^ group) * 4 + 256] = th_pair(total[2], total[3]);
}
asm volatile("fence.proxy.async.shared::cta;\n\tbar.sync %0, 128;" :: "r"(role + 1) : "memory");
if (TH_THREAD % 128 == 0) th_map_store(&map_c, base + from, tile_n + c * 64, block_m, z);
}
//@@ store_sums
const int block_m = tile_m + role * 64;
float* sums = (float*)(shared + $STAGING) + role * 4096;
const int rank = 0, parts = 1;
TH_UNROLL for (int c = 0; c < $BN / 32; ++c) {
TH_UNROLL for (int j = 0; j < 4; ++j) {
const float* total = acc + (c * 4 + j) * 4;
*(float2*)(sums + own_row * 40 + j * 8 + quad * 2) = make_float2(total[0], total[1]);
*(float2*)(sums + (own_row + 8) * 40 + j * 8 + quad * 2) = make_float2(total[2], total[3]);
}
asm volatile("bar.sync %0, 128;" :: "r"(role + 1) : "memory");
const int block_n = tile_n + c * 32;
//@store_tile
asm volatile("bar.sync %0, 128;" :: "r"(role + 1) : "memory");
}
