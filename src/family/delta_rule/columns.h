// The tactic "columns" of the room: one work-item walks one column of a state, the whole of it in its
// registers, token after token. Gates and lengths are computed again by every column. Parameter: threads.
#pragma once
#include "family/delta_rule/delta_rule_form.h"

namespace thrice::family {

void emit_columns(ProgramDraft& draft, const DeltaRuleForm& form, int64_t threads);

}  // namespace thrice::family
