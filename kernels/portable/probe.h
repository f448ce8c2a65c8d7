// Two measuring kernels, not part of any model: what copies and multiply-adds the device can do at best.
// probe_copy:  p1[i] = p0[i], i < E[0]; 8 elements a thread at a stride of the whole grid, so that neighbours read neighbours.
// probe_madd:  each thread runs E[0] rounds of 16 independent chains x = x * a + b in registers (16 hides the latency of a
//              fused multiply-add on every device at hand) and writes one sum, so that nothing can be left out.
TH_KERNEL probe_copy(TH_GLOBAL const float* TH_RESTRICT p0, TH_GLOBAL float* TH_RESTRICT p1, TH_GLOBAL const int* TH_RESTRICT E) {
  const int n = E[0];
  const int threads = TH_THREADS * TH_BLOCKS;
  for (int i = TH_BLOCK * TH_THREADS + TH_THREAD; i < n; i += threads) p1[i] = p0[i];
}

TH_KERNEL probe_madd(TH_GLOBAL const float* TH_RESTRICT p0, TH_GLOBAL float* TH_RESTRICT p1, TH_GLOBAL const int* TH_RESTRICT E) {
  const int id = TH_BLOCK * TH_THREADS + TH_THREAD;
  const float a = p0[0], b = p0[1];
  float x[16];
  for (int k = 0; k < 16; ++k) x[k] = p0[2] + (float)(id + k);
  for (int round = 0; round < E[0]; ++round)
    for (int k = 0; k < 16; ++k) x[k] = th_fma_f32(x[k], a, b);
  float sum = 0.0f;
  for (int k = 0; k < 16; ++k) sum += x[k];
  p1[id] = sum;
}
