// Room of attention: y = softmax(expression(q k^T)) v as one region, one pass over the keys, no matrix of
// scores in memory. Prologues are inlined where q, k and v are read, the expression (scale, mask, bias) where
// a score is made, views behind the product where it is stored. Tactics: row (one thread a query; portable) |
// split (the keys of few queries over several blocks; portable) | mma (tensor cores, float32-accurate; CUDA,
// sm_80 on) | wgmma (f16 and bf16 on the tensor cores of sm_90a).
#pragma once
#include "family/family.h"

namespace thrice::family {
const Family& attention_family();
}
