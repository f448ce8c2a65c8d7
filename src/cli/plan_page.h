// Sections of the page of thrice optimize about the plan that was released.
#pragma once
#include <string>

#include "cli/arguments.h"
#include "flow/optimize.h"

namespace thrice::cli {

// HTML: where the time goes, region by region; each kernel beside the roof of the device, before and after;
// the arena over time (read off the release that was written); what was decided. Sections without figures are
// left out.
std::string plan_sections(const flow::OptimizeReport& report, const Arguments& arguments);

}  // namespace thrice::cli
