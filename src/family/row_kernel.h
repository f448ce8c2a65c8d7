// Text of a row kernel: one stage a reduction (each recomputes what comes before it), then the outputs.
#pragma once
#include "family/row_form.h"

namespace thrice::family {

struct RowSchedule {
  bool block = false;        // a work-group a row; else a work-item a row
  int64_t threads = 1;       // of a work-group; a power of two for block
  int64_t rows = 1;          // rows a work-item takes one after another (item)
  int64_t accumulators = 8;  // partial results a work-item keeps: independent chains, and a more accurate sum
  bool stash = false;        // keep the last reduction's input in the output buffer instead of recomputing it
};

KernelDraft row_kernel(ProgramDraft& draft, const RowForm& form, const RowSchedule& schedule,
                       const std::string& symbol);
// Condition, as text, that element (v, i) goes before (best, at) in an arg_reduce: the extreme, NaN before
// numbers, then the tie rule; at < 0: there is none yet.
std::string arg_takes(const ir::Node& node, DType dtype, const std::string& v, const std::string& i,
                      const std::string& best, const std::string& at);
// True where the last reduction's input can be kept in an output's buffer (same type, same elements).
bool can_stash(const ProgramDraft& draft, const RowForm& form);

}  // namespace thrice::family
