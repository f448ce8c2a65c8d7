// Positions and weights of grid_sample and roi_align (docs/ops.md), in float; T is the type of positions.
//@@ grid
// A position that leaves [low, high] comes back mirrored.
TH_FN float sample_reflect(float x, float low, float high) {
  const float range = high - low;
  if (!(range > 0.0f) || !(x - x == 0.0f)) return low;
  const float away = x < low ? low - x : x > high ? x - high : 0.0f;
  if (away == 0.0f) return x;
  const float turns = th_floor_f32(away / range), rest = away - turns * range;
  const int even = turns - 2.0f * th_floor_f32(turns / 2.0f) == 0.0f;
  return (x < low) == even ? low + rest : high - rest;
}
// MODE 0 nearest, 1 linear, 2 cubic; PADDING 0 zeros, 1 border, 2 reflection; ALIGN 0/1.
TH_FN float sample_position(float n, int extent) {
  const float e = (float)extent, low = $ALIGN ? 0.0f : -0.5f, high = e - ($ALIGN ? 1.0f : 0.5f);
  float x = $ALIGN ? (n + 1.0f) / 2.0f * (e - 1.0f) : ((n + 1.0f) * e - 1.0f) / 2.0f;
  if ($MODE == 0) x = th_round_f32(x);
  if (x >= low && x <= high) return x;
  if ($PADDING == 1) return x < 0.0f ? 0.0f : x > e - 1.0f ? e - 1.0f : x;
  if ($PADDING == 2) return sample_reflect(x, low, high);
  return x;
}
// Index of a neighbour, -1 where it reads zero.
TH_FN int sample_neighbour(float at, int extent) {
  const float e = (float)extent, low = $ALIGN ? 0.0f : -0.5f, high = e - ($ALIGN ? 1.0f : 0.5f);
  if (at >= 0.0f && at < e) return (int)at;
  if ($PADDING == 0 || at != at) return -1;
  if ($PADDING == 2) {
    at = sample_reflect(at, low, high);
    at = at < 0.0f ? -th_floor_f32(-at) : th_floor_f32(at);
  }
  return at < 0.0f ? 0 : at > e - 1.0f ? extent - 1 : (int)at;
}
TH_FN int sample_taps(float n, int extent, int* index, float* weight) {
  const float x = sample_position(n, extent), below = th_floor_f32(x), r = x - below;
  if ($MODE == 0) {
    index[0] = sample_neighbour(x < 0.0f ? -th_floor_f32(-x) : th_floor_f32(x), extent);
    weight[0] = 1.0f;
    return 1;
  }
  if ($MODE == 1) {
    index[0] = sample_neighbour(below, extent);
    index[1] = sample_neighbour(below + 1.0f, extent);
    weight[0] = 1.0f - r;
    weight[1] = r;
    return 2;
  }
  const float a = -0.75f, u = 1.0f - r, v = r + 1.0f, w = 2.0f - r;
  for (int k = 0; k < 4; ++k) index[k] = sample_neighbour(below - 1.0f + (float)k, extent);
  weight[0] = ((a * v - 5.0f * a) * v + 8.0f * a) * v - 4.0f * a;
  weight[1] = ((a + 2.0f) * r - (a + 3.0f)) * r * r + 1.0f;
  weight[2] = ((a + 2.0f) * u - (a + 3.0f)) * u * u + 1.0f;
  weight[3] = ((a * w - 5.0f * a) * w + 8.0f * a) * w - 4.0f * a;
  return 4;
}
//@@ roi
// Two neighbours of a position along an axis; 0 where it lies too far outside.
TH_FN int roi_taps(float p, int extent, int* index, float* weight) {
  if (!(p >= -1.0f && p <= (float)extent)) return 0;
  p = p < 0.0f ? 0.0f : p;
  int low = (int)p, high = low + 1;
  if (low >= extent - 1) {
    low = high = extent - 1;
    p = (float)low;
  }
  index[0] = low;
  index[1] = high;
  weight[1] = p - (float)low;
  weight[0] = 1.0f - weight[1];
  return 1;
}
