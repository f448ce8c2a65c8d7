// Weights that lie badly are laid out anew once.
#pragma once
#include "family/gemm.h"

namespace thrice::family {

// Makes A of the product a row-major copy that a kernel of its own writes at the first run and that is kept
// (Launch::once): rows in the order of the depth, so that they are read four elements at a time. Nothing
// happens where A is no weight or its extents are not known beforehand. Costs the weights' bytes once more.
void keep_rows(ProgramDraft& draft, const std::string& symbol, Gemm& gemm);

}  // namespace thrice::family
