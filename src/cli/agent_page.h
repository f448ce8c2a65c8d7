// Pages of `agent eval --html` and `optimize --html`: one file each, readable without a network.
#pragma once
#include <string>

#include "flow/agent_eval.h"
#include "flow/optimize.h"

namespace thrice::cli {

std::string eval_page(const flow::EvalReport& report);
// `about_the_plan`: HTML that stands before what was searched.
std::string optimize_page(const flow::OptimizeReport& report, const std::string& about_the_plan);

}  // namespace thrice::cli
