// Device memory of a plan in words, as JSON, and as a picture.
#pragma once
#include <string>

#include "exec/predict.h"

namespace thrice::report {

std::string memory_text(const exec::PredictedMemory& memory, const std::string& extents);
std::string memory_json(const exec::PredictedMemory& memory, const std::string& extents);
// The arena of the segment that needs the largest one: time to the right (launches), addresses upwards, a
// rectangle for each temporary; SVG without scripts, names as tooltips.
std::string arena_picture(const exec::PredictedMemory& memory, const exec::Executable& code);

}  // namespace thrice::report
