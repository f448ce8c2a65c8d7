// Attention for few queries and many keys (decoding): y[m] = sum over n of exp(l[m][n] - top[m]) v[n] / total[m], l being any
// expression of q[m] . k[n], top its largest and total the sum of the powers. The keys are cut into parts, a block each:
//   partial: top_i, total_i = sum exp(l - top_i), sums_i = sum exp(l - top_i) v   over the keys of part i, into scratch
//   combine: top = max top_i, y = sum exp(top_i - top) sums_i / sum exp(top_i - top) total_i
//
// Shapes: q [Z, M, DEPTH], k [Z / SHARED, N, DEPTH], v [Z / SHARED, N, WIDTH] behind any views; SHARED heads of queries that
// follow each other read one head of k and v: their rows lie in one block, which reads k and v once for up to ROWS of them.
// scratch: sums [Z * M, SPLITS, WIDTH], tops [Z * M, SPLITS, 2] (top_i, total_i), float.
// Parameters: KEYS a part, ROWS a block, LANES work-items that share a key's depth, VECTOR neighbours that a work-item loads at
// once (16 bytes; 1 where operands do not lie so), THREADS. THREADS is a multiple of LANES and ROWS, all powers of two.
// Work-group memory, 4-byte words: ROWS * (DEPTH + KEYS) + THREADS + max(ROWS * KEYS * PITCH, V_GROUPS * ROWS * WIDTH), where
// PITCH = LANES, or LANES + 1 so that sums over lanes meet other banks.
// Barriers: all work-items of the block; none between loads of keys, so that many are on their way.
// Slow: many rows a head (k and v are read once for every ROWS of them, and no tensor core is used), few keys a part.
//@@ partial
const int split = TH_BLOCK % $SPLITS;
const int first_row = TH_BLOCK / $SPLITS % $GROUPS * $ROWS;
const int zk = TH_BLOCK / $SPLITS / $GROUPS * $SHARED;
const int rows = th_min_int($ROWS, $ALL_ROWS - first_row);
int from = split * $KEYS;
int to = th_min_int(from + $KEYS, $N);
//@window
for (int i = TH_THREAD; i < $ROWS * $DEPTH; i += $THREADS) {
  const int r = i / $DEPTH;
  const int d = i % $DEPTH;
  float element = 0.0f;
  if (r < rows) {
    const int z = zk + (first_row + r) / $M;
    const int m = (first_row + r) % $M;
    //@load_q
  }
  $Q[i] = element;
}
TH_BARRIER();
for (int j = TH_THREAD / $LANES; j < to - from; j += $THREADS / $LANES) {
  const int n = from + j;
  float part[$ROWS];
  TH_UNROLL
  for (int r = 0; r < $ROWS; ++r) part[r] = 0.0f;
  for (int c = TH_THREAD % $LANES; c < $DEPTH / $VECTOR; c += $LANES) {
    const int d = c * $VECTOR;
    //@load_k
    TH_UNROLL
    for (int r = 0; r < $ROWS; ++r) {
      TH_UNROLL
      for (int u = 0; u < $VECTOR; ++u) part[r] = th_fma_f32($Q[r * $DEPTH + d + u], x[u], part[r]);
    }
  }
  TH_UNROLL
  for (int r = 0; r < $ROWS; ++r) $PARTS[(r * $KEYS + j) * $PITCH + TH_THREAD % $LANES] = part[r];
}
TH_BARRIER();
// Softmax: THREADS / ROWS work-items a row. Rows beyond the last repeat it and store nothing.
{
  const int r = TH_THREAD / $EACH;
  const int p = TH_THREAD % $EACH;
  const int row = first_row + th_min_int(r, rows - 1);
  const int z = zk + row / $M;
  const int m = row % $M;
  float top = -TH_INF_F32;
  for (int j = p; j < to - from; j += $EACH) {
    const int n = from + j;
    float score = 0.0f;
    for (int l = 0; l < $LANES; ++l) score += $PARTS[(r * $KEYS + j) * $PITCH + l];
    //@logit
    $SCORES[r * $KEYS + j] = logit;
    top = logit > top ? logit : top;
  }
  $SHARES[TH_THREAD] = top;
  TH_BARRIER();
  for (int w = $EACH / 2; w > 0; w >>= 1) {
    if (p < w && $SHARES[TH_THREAD + w] > $SHARES[TH_THREAD]) {
      $SHARES[TH_THREAD] = $SHARES[TH_THREAD + w];
    }
    TH_BARRIER();
  }
  top = $SHARES[r * $EACH];
  TH_BARRIER();
  // Where every score is -Inf the difference would be NaN.
  const float base = top == -TH_INF_F32 ? 0.0f : top;
  float total = 0.0f;
  for (int j = p; j < to - from; j += $EACH) {
    const float power = TH_F32(exp)($SCORES[r * $KEYS + j] - base);
    $SCORES[r * $KEYS + j] = power;
    total += power;
  }
  $SHARES[TH_THREAD] = total;
  TH_BARRIER();
  for (int w = $EACH / 2; w > 0; w >>= 1) {
    if (p < w) {
      $SHARES[TH_THREAD] += $SHARES[TH_THREAD + w];
    }
    TH_BARRIER();
  }
  if (p == 0 && r < rows) {
    const int at = ((zk * $M + row) * $SPLITS + split) * 2;
    $TOPS[at] = top;
    $TOPS[at + 1] = $SHARES[TH_THREAD];
  }
}
// Values: COLUMNS work-items a row of v, V_GROUPS rows at a time, whose sums meet in the memory of the scores' parts.
for (int c = TH_THREAD % $COLUMNS; c < $WIDTH / $VECTOR; c += $COLUMNS) {
  const int w = c * $VECTOR;
  const int g = TH_THREAD / $COLUMNS;
  if (g < $V_GROUPS) {
    float sums[$ROWS * $VECTOR];
    TH_UNROLL
    for (int i = 0; i < $ROWS * $VECTOR; ++i) sums[i] = 0.0f;
    for (int j = g; j < to - from; j += $V_GROUPS) {
      const int n = from + j;
      //@load_v
      TH_UNROLL
      for (int r = 0; r < $ROWS; ++r) {
        const float power = $SCORES[r * $KEYS + j];
        TH_UNROLL
        for (int u = 0; u < $VECTOR; ++u) sums[r * $VECTOR + u] = th_fma_f32(power, x[u], sums[r * $VECTOR + u]);
      }
    }
    TH_UNROLL
    for (int i = 0; i < $ROWS * $VECTOR; ++i) $PARTS[(g * $ROWS + i / $VECTOR) * $WIDTH + w + i % $VECTOR] = sums[i];
  }
}
TH_BARRIER();
for (int i = TH_THREAD; i < rows * $WIDTH; i += $THREADS) {
  float sum = 0.0f;
  for (int g = 0; g < $V_GROUPS; ++g) sum += $PARTS[g * $ROWS * $WIDTH + i];
  $SUMS[((zk * $M + first_row + i / $WIDTH) * $SPLITS + split) * $WIDTH + i % $WIDTH] = sum;
}
// Only keys that some row of the block sees (packed sequences).
//@@ window
{
  int least = to;
  int most = from;
  for (int r = 0; r < rows; ++r) {
    const int z = zk + (first_row + r) / $M;
    const int m = (first_row + r) % $M;
    //@row
    if (own_from < own_to) {
      least = th_min_int(least, own_from);
      most = own_to > most ? own_to : most;
    }
  }
  from = least > from ? least : from;
  to = th_min_int(to, most);
}
//@@ combine
const int i = TH_BLOCK * $THREADS + TH_THREAD;
if (i < $COUNT) {
  const int row = i / $WIDTH;
  const int w = i % $WIDTH;
  const int z = row / $M;
  const int m = row % $M;
  float top = -TH_INF_F32;
  for (int s = 0; s < $SPLITS; ++s) top = $TOPS[(row * $SPLITS + s) * 2] > top ? $TOPS[(row * $SPLITS + s) * 2] : top;
  const float base = top == -TH_INF_F32 ? 0.0f : top;
  float total = 0.0f;
  float sum = 0.0f;
  for (int s = 0; s < $SPLITS; ++s) {
    const int part = row * $SPLITS + s;
    const float share = TH_F32(exp)($TOPS[part * 2] - base);
    total = th_fma_f32(share, $TOPS[part * 2 + 1], total);
    sum = th_fma_f32(share, $SUMS[part * $WIDTH + w], sum);
  }
  const float y = $HAS_SHARE ? sum / total : 0.0f;
  //@store
}
