// (workload, schedule, language) -> complete kernel source.
#pragma once
#include "artifact/kernel.h"
#include "family/family.h"

namespace thrice::codegen {

// Prelude of the language + the family's text; nothing is left to include. Deterministic: equal arguments
// give equal text, hence equal keys. Errors: kUnsupported where the schedule's tactic has no text in this
// language (the family's reason).
artifact::KernelSource generate(const ir::Workload& workload, const family::Family& family,
                                const artifact::Schedule& schedule, const target::DeviceSpec& device,
                                artifact::Language language);

}  // namespace thrice::codegen
