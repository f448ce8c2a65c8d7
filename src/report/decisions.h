// What the planner "dp" decided, in words.
#pragma once
#include <string>
#include <vector>

#include "artifact/decision.h"

namespace thrice::report {

// One paragraph a decision: how it was found, the alternatives with what they cost and where the costs come
// from, why the winner won.
std::string decisions_text(const std::vector<artifact::FusionDecision>& decisions);

}  // namespace thrice::report
