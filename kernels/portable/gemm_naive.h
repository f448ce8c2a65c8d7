// product[z][m][n] = sum_k a[z][m][k] * b[z][k][n]: one thread an element, always legal; the engine that others
// are tested against. Sums of PARTIAL elements are added up, so that its error grows slowly with the depth.
//@@ body
const int thread = TH_BLOCK * TH_THREADS + TH_THREAD;
if (thread < $COUNT) {
const int n = thread % $N;
const int thread_rest = thread / $N;
const int m = thread_rest % $M;
const int z = thread_rest / $M;
$T total = $ZERO;
for (int begin = 0; begin < $K; begin += $PARTIAL) {
const int end = begin + $PARTIAL < $K ? begin + $PARTIAL : $K;
$T acc = $ZERO;
for (int k = begin; k < end; ++k) {
//@step
}
total = $ADD;
}
//@epilogue
}
