// Text of a column kernel: axes after the reduced ones are kept, so neighbours in memory belong to different
// results. A work-item reduces several neighbouring columns at once and walks the reduced axes outside that
// loop.
#pragma once
#include "family/row_form.h"

namespace thrice::family {

struct ColumnSchedule {
  int64_t threads = 1;  // of a work-group, along the columns
  int64_t lanes = 64;   // columns a work-item
};

// Throws NotMatched where the kept trailing axes are not the same for all reductions, or an arg_reduce is
// among them.
KernelDraft column_kernel(ProgramDraft& draft, const RowForm& form, const ColumnSchedule& schedule,
                          const std::string& symbol);
// Results next to each other in memory (the product of the axes after the reduced ones), and all others.
int64_t kept_columns(const RowForm& form, const Facts& facts);

}  // namespace thrice::family
