// product[z][m][n] = sum_k a[z][m][k] * b[z][k][n] where both a's rows and b's columns lie along k in memory
// (b transposed, or one column): dot products by vectors of L elements, for CPUs.
//
// A work-item holds RM x RN vectors of partial sums, added up at the end; L independent partial sums an element
// keep the rounding error low. The rest of the depth (K % L) is done by scalars.
// Edges: rows and columns beyond the edge repeat the last one and are not stored.
//@@ body
{
const int block = TH_BLOCK;
const int tile_m = (block % $TILES_M) * $THREADS + TH_THREAD;
const int block_rest = block / $TILES_M;
const int tile_n = block_rest % $TILES_N;
const int z = block_rest / $TILES_N;
const int own_m = tile_m * $RM;
const int own_n = tile_n * $RN;
if (own_m < $M) {
//@rows
//@begin
const int whole = $K / $L * $L;
for (int k = 0; k < whole; k += $L) {
//@step
}
//@fold
for (int k = whole; k < $K; ++k) {
//@rest
}
for (int i = 0; i < $RM && own_m + i < $M; ++i) {
for (int j = 0; j < $RN && own_n + j < $N; ++j) {
const int m = own_m + i;
const int n = own_n + j;
//@epilogue
}
}
}
}
