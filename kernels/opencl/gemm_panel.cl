// product[z][m][n] = sum_k a[z][m][k] * b[z][k][n] for processors with vector units and caches: a work-item copies a
// panel of b (KC steps of the depth x CN columns) to memory of its own and multiplies ROWS rows of a with it. In the
// panel the columns of neighbouring k are neighbours: it fits the first cache and needs few pages, where rows of b
// itself lie so far apart that they share cache sets (4 KiB apart, say) and each has a page of its own. Any layout of
// b, and any prologue: an element is read once.
//
// Registers: RM rows x RV vectors of L columns, as in gemm_vector.cl. Sums of one panel's depth are added to the tile,
// which bounds the rounding error of long sums; a depth of 0 makes one panel, and zeros. Rows beyond M repeat the last
// one; columns beyond N are zeros.
//@@ body
{
const int block = TH_BLOCK;
const int tile_m = block % $TILES_M;
const int block_rest = block / $TILES_M;
const int tile_n = block_rest % $TILES_N;
const int z = block_rest / $TILES_N;
const int own_m = tile_m * $ROWS;
const int own_n = tile_n * $CN;
const int end_m = own_m + $ROWS < $M ? own_m + $ROWS : $M;
const int end_n = own_n + $CN < $N ? own_n + $CN : $N;
$T panel[$KC * $CN];
$T tile[$ROWS * $CN];
for (int begin = 0; begin == 0 || begin < $K; begin += $KC) {
const int depth = $K - begin < $KC ? $K - begin : $KC;
//@pack
for (int base_m = own_m; base_m < end_m; base_m += $RM) {
//@rows
//@begin
for (int t = 0; t < depth; ++t) {
const int k = begin + t;
//@step
}
$T* sums = tile + (base_m - own_m) * $CN;
if (begin > 0) {
//@add
}
//@end
}
}
for (int m = own_m; m < end_m; ++m) {
int n = own_n;
//@epilogue_lanes
for (; n < end_n; ++n) {
//@epilogue
}
}
}
