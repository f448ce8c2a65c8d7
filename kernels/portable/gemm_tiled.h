// product[z][m][n] = sum_k a[z][m][k] * b[z][k][n], any row and column order of a and b.
//
// A block computes BM x BN elements with (BM / RM) * (BN / RN) threads; each thread holds RM x RN of them in
// registers. Per step of BK: the block stages a BM x BK tile of a (transposed, so that a thread's rows are
// neighbours) and a BK x BN tile of b in shared memory, element by element through the fused prologue, with zeros
// beyond the edges.
// Shared bytes: BK * (BM + PAD + BN) * sizeof(T).   Barriers: two a step, every thread of the block arrives.
// SUM = 1: partial sums of PARTIAL steps of the depth are added to a total (long or unknown depth).
//@@ body
{
const int block = TH_BLOCK;
const int tile_n = block % $TILES_N;
const int block_rest = block / $TILES_N;
const int tile_m = block_rest % $TILES_M;
const int z = block_rest / $TILES_M;
const int thread_n = TH_THREAD % $TX;
const int thread_m = TH_THREAD / $TX;
const int block_m = tile_m * $BM;
const int block_n = tile_n * $BN;
$T acc[$RM][$RN];
//@total_begin
TH_UNROLL for (int i = 0; i < $RM; ++i) {
TH_UNROLL for (int j = 0; j < $RN; ++j) {
acc[i][j] = $ZERO;
}
}
for (int step = 0; step < $K; step += $BK) {
for (int t = TH_THREAD; t < $BM * $BK; t += $THREADS) {
const int tm = $A_ROW;
const int tk = $A_DEPTH;
const int m = block_m + tm;
const int k = step + tk;
$T element = $ZERO;
if (m < $M && k < $K) {
//@load_a
}
$AS[tk * $BMP + tm] = element;
}
for (int t = TH_THREAD; t < $BK * $BN; t += $THREADS) {
const int tk = $B_DEPTH;
const int tn = $B_COL;
const int k = step + tk;
const int n = block_n + tn;
$T element = $ZERO;
if (k < $K && n < $N) {
//@load_b
}
$BS[tk * $BNP + tn] = element;
}
TH_BARRIER();
for (int kk = 0; kk < $BK; ++kk) {
$T ra[$RM], rb[$RN];
TH_UNROLL for (int i = 0; i < $RM; ++i) {
ra[i] = $AS[kk * $BMP + thread_m * $RM + i];
}
TH_UNROLL for (int j = 0; j < $RN; ++j) {
rb[j] = $BS[kk * $BNP + $COLUMN_J];
}
TH_UNROLL for (int i = 0; i < $RM; ++i) {
TH_UNROLL for (int j = 0; j < $RN; ++j) {
acc[i][j] = $MULTIPLY_ADD;
}
}
}
//@total_step
TH_BARRIER();
}
//@total_end
TH_UNROLL for (int i = 0; i < $RM; ++i) {
TH_UNROLL for (int j = 0; j < $RN; ++j) {
const int m = block_m + thread_m * $RM + i;
const int n = block_n + $COLUMN_J;
if (m < $M && n < $N) {
//@epilogue
}
}
}
}
//@@ total_begin
$T total[$RM][$RN];
TH_UNROLL for (int i = 0; i < $RM; ++i) {
TH_UNROLL for (int j = 0; j < $RN; ++j) {
total[i][j] = $ZERO;
}
}
//@@ total_step
if ((step + $BK) % $PARTIAL == 0) {
TH_UNROLL for (int i = 0; i < $RM; ++i) {
TH_UNROLL for (int j = 0; j < $RN; ++j) {
total[i][j] = total[i][j] + acc[i][j];
acc[i][j] = $ZERO;
}
}
}
//@@ total_end
TH_UNROLL for (int i = 0; i < $RM; ++i) {
TH_UNROLL for (int j = 0; j < $RN; ++j) {
acc[i][j] = total[i][j] + acc[i][j];
}
}
