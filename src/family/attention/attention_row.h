// The tactic "row" of the room: one work-item a query, scores one by one, the sums of its row rescaled when a
// larger score comes. Portable. Parameter: threads.
#pragma once
#include "family/attention/attention_form.h"

namespace thrice::family {

void emit_attention_row(ProgramDraft& draft, const AttentionForm& form, const Schedule& schedule);
// All of query (z, m), by one work-item.
void write_attention_row(Emitter& e, const AttentionForm& form, Index z, Index m);

}  // namespace thrice::family
