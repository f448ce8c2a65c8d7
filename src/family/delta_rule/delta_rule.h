// Room of delta_rule: linear attention with a gated delta rule, fixed and packed lengths. Tactics: columns (a
// work-item a column of a state, token after token; portable, right at every size) | chunks (tensor cores,
// heads of 128, bf16; CUDA, sm_90a).
#pragma once
#include "family/family.h"

namespace thrice::family {
const Family& delta_rule_family();
}
