// Measuring kernels, not part of any model: what copies and multiply-adds the device can do at best.
// probe_copy:  p1[i] = p0[i], i < E[0]; 8 elements a thread at a stride of the whole grid, so that neighbours read neighbours.
// probe_copy_runs: the same, each thread a run of E[1] neighbours: for CPUs, where the work-items of a group run one after
//              the other and a grid's stride would touch a cache line for every element.
// probe_madd:  each thread runs E[0] rounds of 16 independent chains x = x * a + b in registers (16 hides the latency of a
//              fused multiply-add on every device at hand) and writes one sum, so that nothing can be left out.
TH_KERNEL probe_copy(TH_GLOBAL const float* TH_RESTRICT p0, TH_GLOBAL float* TH_RESTRICT p1, TH_GLOBAL const int* TH_RESTRICT E) {
  const int n = E[0];
  const int threads = TH_THREADS * TH_BLOCKS;
  for (int i = TH_BLOCK * TH_THREADS + TH_THREAD; i < n; i += threads) p1[i] = p0[i];
}

TH_KERNEL probe_copy_runs(TH_GLOBAL const float* TH_RESTRICT p0, TH_GLOBAL float* TH_RESTRICT p1,
                          TH_GLOBAL const int* TH_RESTRICT E) {
  const int begin = (TH_BLOCK * TH_THREADS + TH_THREAD) * E[1];
  int count = E[0] - begin;
  if (count > E[1]) count = E[1];
  for (int i = 0; i < count; ++i) p1[begin + i] = p0[begin + i];
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
