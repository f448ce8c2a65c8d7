// Scaled dot product attention as its parts, shared by Attention and the contrib operators.
#pragma once
#include <optional>
#include <vector>

#include "frontend/onnx/ops/expr.h"

namespace thrice::frontend::onnx {

struct AttentionOptions {
  double scale = 0;                   // 0 = 1 / sqrt(head size)
  double softcap = 0;                 // 0 = none
  bool guarded = false;               // rows whose bias is all -Inf give zeros instead of NaN
  DType softmax_dtype = DType::kF32;  // at least; f64 stays f64
};

struct AttentionResult {
  Expr y;                                 // [batch, heads, queries, value size]
  Expr raw, capped, biased, probability;  // [batch, heads, queries, keys], as the stages of the scores
};

// q [B, heads, queries, size], k and v [B, kv heads, keys, size]; heads is a multiple of kv heads. bias
// broadcasts against the scores and is added to them.
AttentionResult attention(const Expr& q, const Expr& k, const Expr& v, const std::optional<Expr>& bias,
                          const AttentionOptions& options);

// [B, length, heads * size] -> [B, heads, length, size], and back.
Expr split_heads(const Expr& x, int64_t heads);
Expr merge_heads(const Expr& x);

// 0 where `allowed` (bool), -Inf elsewhere.
Expr bias_of(const Expr& allowed, DType dtype);
Expr added(const std::optional<Expr>& bias, const Expr& more);

}  // namespace thrice::frontend::onnx
