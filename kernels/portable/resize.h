// Neighbours and weights of one output index of one axis of resize (docs/ops.md). Every mode is a product over axes,
// so a thread calls this once an axis.
//
// Names: NAME; MODE 0 nearest, 1 linear, 2 cubic; COORDINATES 0 half_pixel, 1 align_corners, 2 asymmetric,
// 3 pytorch_half_pixel, 4 half_pixel_symmetric, 5 tf_crop_and_resize; NEAREST 0 round_prefer_floor,
// 1 round_prefer_ceil, 2 floor, 3 ceil; CUBIC_A; EXCLUDE 0/1.
// Returns the number of neighbours, 0 where the position lies outside (extrapolation). Positions are computed in
// double where the device has it: at exact ties between neighbours one rounding decides the result.
//@@ types
#ifndef TH_WIDE
#ifdef TH_HAS_F64
#define TH_WIDE double
#define TH_WIDE_FLOOR(x) th_floor_f64(x)
#else
#define TH_WIDE float
#define TH_WIDE_FLOOR(x) th_floor_f32(x)
#endif
#endif
//@@ axis
TH_FN TH_WIDE $NAME_weight(TH_WIDE x) {
  const TH_WIDE a = (TH_WIDE)$CUBIC_A;
  x = x < (TH_WIDE)0 ? -x : x;
  if (x <= (TH_WIDE)1) return ((a + (TH_WIDE)2) * x - (a + (TH_WIDE)3)) * x * x + (TH_WIDE)1;
  if (x < (TH_WIDE)2) return a * (((x - (TH_WIDE)5) * x + (TH_WIDE)8) * x - (TH_WIDE)4);
  return (TH_WIDE)0;
}
TH_FN int $NAME(int x, int in, int out, TH_WIDE scale, TH_WIDE begin, TH_WIDE end, int* index, TH_WIDE* weight) {
  const TH_WIDE at = (TH_WIDE)x, extent = (TH_WIDE)in, width = scale * extent, middle = (TH_WIDE)0.5;
  TH_WIDE p = (at + middle) / scale - middle;
  if ($COORDINATES == 1) p = width == (TH_WIDE)1 ? (TH_WIDE)0 : at * (extent - (TH_WIDE)1) / (width - (TH_WIDE)1);
  if ($COORDINATES == 2) p = at / scale;
  if ($COORDINATES == 3) p = out == 1 ? -middle : p;
  if ($COORDINATES == 4) p = extent / (TH_WIDE)2 * ((TH_WIDE)1 - (TH_WIDE)out / width) + (at + middle) / scale - middle;
  if ($COORDINATES == 5) {
    const TH_WIDE span = end - begin;
    p = width == (TH_WIDE)1 ? span * (extent - (TH_WIDE)1) / (TH_WIDE)2
                            : at * span * (extent - (TH_WIDE)1) / (width - (TH_WIDE)1);
    p = p + begin * (extent - (TH_WIDE)1);
    if (p < (TH_WIDE)0 || p > extent - (TH_WIDE)1) return 0;
  }
  TH_WIDE below = TH_WIDE_FLOOR(p);
  if (below == p) below = below - (TH_WIDE)1;
  const TH_WIDE ratio = p - below;
  const int base = (int)below;
  if ($MODE == 0) {
    int upper = ratio > middle;
    if ($NEAREST == 1) upper = ratio >= middle;
    if ($NEAREST == 2) upper = 0;
    if ($NEAREST == 3) upper = 1;
    if (ratio == (TH_WIDE)1) upper = 1;
    index[0] = th_clamp(base + upper, in);
    weight[0] = (TH_WIDE)1;
    return 1;
  }
  const int first = $MODE == 1 ? 0 : -1, count = $MODE == 1 ? 2 : 4;
  TH_WIDE kept = (TH_WIDE)0;
  for (int k = 0; k < count; ++k) {
    const TH_WIDE away = (TH_WIDE)(k + first) - ratio;
    const int place = base + first + k;
    TH_WIDE w = $MODE == 1 ? (TH_WIDE)1 - (away < (TH_WIDE)0 ? -away : away) : $NAME_weight(away);
    if ($EXCLUDE && (place < 0 || place >= in)) w = (TH_WIDE)0;
    kept = kept + w;
    weight[k] = w;
    index[k] = th_clamp(place, in);
  }
  if ($EXCLUDE)
    for (int k = 0; k < count; ++k) weight[k] = weight[k] / kept;
  return count;
}
