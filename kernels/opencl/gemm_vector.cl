// product[z][m][n] = sum_k a[z][m][k] * b[z][k][n] for processors with vector units and caches (CPUs): no shared
// memory, no barrier.
//
// A work-item holds RM rows x RV vectors of L columns in named registers c0_0, c0_1, ... Per step of the depth it
// loads RV vectors of b and broadcasts RM elements of a. L = lanes of the device (8 for AVX2, 16 for AVX-512);
// RM * RV should leave room for RV vectors of b in the register file: 6 x 2 of 16 registers.
// Edges: rows beyond M are computed from row M - 1 and not stored. Columns: an item at the right edge moves left
// until its vectors lie inside (columns are then computed twice, stored once); with fewer columns than its
// vectors hold it reads element by element.
// A block's items lie along m and share their vectors of b in the first cache.
//@@ body
{
const int block = TH_BLOCK;
const int tile_m = (block % $TILES_M) * $THREADS + TH_THREAD;
const int block_rest = block / $TILES_M;
const int tile_n = block_rest % $TILES_N;
const int z = block_rest / $TILES_N;
const int own_m = tile_m * $RM;
const int own_n = tile_n * $CN;
if (own_m < $M) {
//@rows
const int base_n = own_n + $CN <= $N || $N < $CN ? own_n : $N - $CN;
$T tile[$RM * $CN];
//@begin
//@mainloop
//@end
for (int i = 0; i < $RM && own_m + i < $M; ++i) {
const int m = own_m + i;
const int end_n = base_n + $CN < $N ? base_n + $CN : $N;
int n = own_n;
//@epilogue_lanes
for (; n < end_n; ++n) {
//@epilogue
}
}
}
}
