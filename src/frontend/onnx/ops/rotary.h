// Rotary position embedding, shared by the standard and the contrib operator.
#pragma once
#include "frontend/onnx/ops/expr.h"

namespace thrice::frontend::onnx {

// x [B, heads, length, size] or [B, length, heads * size]; cosine and sine [B or 1, length, rotated / 2]. The
// first `rotated` elements of each head are turned (0 = all), in pairs that are neighbours (`interleaved`) or
// half a head apart.
Expr rotary_embedding(const Expr& x, const Expr& cosine, const Expr& sine, int64_t heads, int64_t rotated,
                      bool interleaved);

}  // namespace thrice::frontend::onnx
