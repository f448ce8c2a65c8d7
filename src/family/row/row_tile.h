// Row kernels that hold a row in registers: one pass over memory, whatever number of reductions (CUDA).
#pragma once
#include "family/row_form.h"

namespace thrice::family {

struct RowTile {
  int64_t threads = 32;  // that share a row; a power of two, at least a warp
  int64_t rows = 1;      // of a block; more than one only where a warp has each
  int64_t lanes = 4;     // elements of a pack
  bool keep = false;     // what the last reduction computes of each element, for the outputs
};

// Throws NotMatched where the rows are not of one length that is known when the text is written.
KernelDraft row_tile_kernel(ProgramDraft& draft, const RowForm& form, const RowTile& tile,
                            const std::string& symbol);

// Length of the rows, or 0 where they have none that is known or the kernel does not take them.
int64_t tile_columns(const ProgramDraft& draft, const RowForm& form);

// Packs of a row's elements that one work-item holds of each operand.
int64_t tile_packs(int64_t columns, const RowTile& tile);

}  // namespace thrice::family
