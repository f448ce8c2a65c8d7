// Vectors of a row of a convolution's input, zeros where the row ends. One section a stride; NAME, T (element),
// L (lanes), V (vector type), I (integer vector as wide as an element).
//
// th_row(x, row, at, width, total): elements row + at, row + at + stride, ... of the buffer x with `total` elements;
// positions at, at + stride, ... lie in the row where 0 <= position < width. Inside the row it is one load; at its
// ends, one load and a mask while the buffer itself does not end there; else element by element.
//@@ stride1
TH_FN $V $NAME(__global const $T* x, int row, int at, int width, int total) {
  const int first = row + at;
  if (at >= 0 && at + $L <= width) return vload$L(0, x + first);
  if (first >= 0 && first + $L <= total) {
    const $I position = ($I)($IOTA) + ($I)(at);
    return select(($V)(0), vload$L(0, x + first), (position >= ($I)(0)) & (position < ($I)(width)));
  }
  $T element[$L];
  for (int j = 0; j < $L; ++j) element[j] = at + j >= 0 && at + j < width ? x[first + j] : ($T)0;
  return vload$L(0, element);
}
//@@ stride2
TH_FN $V $NAME(__global const $T* x, int row, int at, int width, int total) {
  const int first = row + at;
  if (first >= 0 && first + 2 * $L <= total) {
    const $V low = vload$L(0, x + first), high = vload$L(1, x + first);
    const $V value = ($V)(low.even, high.even);
    if (at >= 0 && at + 2 * $L <= width) return value;
    const $I position = ($I)($IOTA) * ($I)(2) + ($I)(at);
    return select(($V)(0), value, (position >= ($I)(0)) & (position < ($I)(width)));
  }
  $T element[$L];
  for (int j = 0; j < $L; ++j) element[j] = at + 2 * j >= 0 && at + 2 * j < width ? x[first + 2 * j] : ($T)0;
  return vload$L(0, element);
}
//@@ any
TH_FN $V $NAME(__global const $T* x, int row, int at, int width, int total) {
  $T element[$L];
  for (int j = 0; j < $L; ++j) {
    const int position = at + j * $STRIDE;
    element[j] = position >= 0 && position < width ? x[row + position] : ($T)0;
  }
  return vload$L(0, element);
}
