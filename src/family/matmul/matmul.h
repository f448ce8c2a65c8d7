// Room of matrix products: [..., M, K] x [..., K, N] with broadcast batches, either side transposed, operands
// read through a fused prologue, results through a fused epilogue. Tactics: gemm.h.
#pragma once
#include "family/family.h"

namespace thrice::family {
const Family& matmul_family();
}
