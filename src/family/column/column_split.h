// Column kernels that share the reduced axes among blocks: partial results go through scratch memory (CUDA).
#pragma once
#include "family/row_form.h"

namespace thrice::family {

struct ColumnSplit {
  int64_t lanes = 4;   // neighbouring columns of a work-item
  int64_t warps = 8;   // of a block; each takes rows of its own
  int64_t splits = 1;  // blocks that share a column's rows
};

// Adds the kernels. Throws NotMatched unless there is one reduction over joined axes and every output has one
// element a column.
void column_split_kernels(ProgramDraft& draft, const RowForm& form, const ColumnSplit& split);

}  // namespace thrice::family
