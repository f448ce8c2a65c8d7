// y[n][o][p][q] = sum over c, r, s of w[o][c][r][s] * x[n][c][p * stride + r * dilation - pad][...], 1 to 3 spatial
// axes, for processors with vector units and caches: no shared memory, no barrier, no copy of the input.
//
// A work-item holds RM output channels x RV vectors of L neighbouring outputs of one row in registers. Per input
// channel and tap it loads RV vectors of the input row (window.cl: zeros beyond the edges) and broadcasts RM weights.
// Rows of the input that lie in the padding are left out by a branch that all lanes share.
// A block's items lie along output channels: they read the same input.
//@@ body
{
const int block = TH_BLOCK;
const int tile_m = (block % $TILES_M) * $THREADS + TH_THREAD;
const int block_rest = block / $TILES_M;
const int tile_q = block_rest % $TILES_Q;
const int block_rows = block_rest / $TILES_Q;
const int outer = block_rows % $OUTER;
const int z = block_rows / $OUTER;
const int own_m = tile_m * $RM;
const int own_q = tile_q * $CN;
if (own_m < $M) {
//@rows
$T tile[$RM * $CN];
//@begin
//@mainloop
//@end
for (int i = 0; i < $RM && own_m + i < $M; ++i) {
const int m = own_m + i;
const int end_q = own_q + $CN < $Q ? own_q + $CN : $Q;
int q = own_q;
//@epilogue_lanes
for (; q < end_q; ++q) {
//@epilogue
}
}
}
}
