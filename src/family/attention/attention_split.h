// The tactic "split" of the room: few queries, many keys. The keys of a head are split over blocks, whose
// partial results a second kernel combines; heads of queries that share k and v are in one block. Portable.
// Text: kernels/portable/attention_split.h. Parameters: keys rows lanes vector threads.
#pragma once
#include "family/attention/attention_form.h"

namespace thrice::family {

void emit_attention_split(ProgramDraft& draft, const AttentionForm& form, const Schedule& schedule);
Schedule default_attention_split(const Workload& workload, const AttentionForm& form, const Facts& facts,
                                 const DeviceSpec& device);
// Whether the rule takes it: too few rows to fill the device otherwise, and keys enough for several parts.
bool wants_attention_split(const AttentionForm& form, const Facts& facts, const DeviceSpec& device);
// Whether search looks at it: few rows a head.
bool may_split_attention(const AttentionForm& form, const Facts& facts);
std::vector<artifact::Parameter> attention_split_parameters(const Workload& workload,
                                                            const AttentionForm& form,
                                                            const Schedule& chosen);
Refusal refuse_attention_split(const Workload& workload, const AttentionForm& form, const Schedule& schedule,
                               const DeviceSpec& device);

}  // namespace thrice::family
