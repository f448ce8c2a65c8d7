// Running sums along the innermost axis: a block a line, packs of neighbours, carries by shuffles (CUDA).
#pragma once
#include "family/emitter.h"

namespace thrice::family {

// Throws NotMatched unless the axis of `node` is the last one.
KernelDraft scan_block_kernel(ProgramDraft& draft, const ir::Node& node, int64_t threads);

}  // namespace thrice::family
