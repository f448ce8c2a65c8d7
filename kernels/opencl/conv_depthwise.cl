// y[n][o][p][q] = sum over r, s of w[o][0][r][s] * x[n][o / multiplier][...]: one input channel an output channel,
// 1 or 2 spatial axes, constant taps, for processors with vector units.
//
// A work-item holds RP output rows x RV vectors of L outputs of one channel in registers; each vector of the input
// is loaded once and used by every output row that its input row serves. Weights stay in registers.
//@@ body
{
const int block = TH_BLOCK * $THREADS + TH_THREAD;
const int tile_q = block % $TILES_Q;
const int block_rest = block / $TILES_Q;
const int tile_p = block_rest % $TILES_P;
const int channel = block_rest / $TILES_P;
const int own_p = tile_p * $RP;
const int own_q = tile_q * $CN;
if (channel < $CHANNELS) {
//@weights
$T tile[$RP * $CN];
//@begin
//@mainloop
//@end
for (int i = 0; i < $RP && own_p + i < $P; ++i) {
const int p = own_p + i;
const int end_q = own_q + $CN < $Q ? own_q + $CN : $Q;
int q = own_q;
//@epilogue_lanes
for (; q < end_q; ++q) {
//@epilogue
}
}
}
}
