// Device memory of a plan in words, as JSON, and as a picture.
#pragma once
#include <string>
#include <vector>

#include "artifact/manifest.h"
#include "exec/predict.h"

namespace thrice::report {

std::string memory_text(const exec::PredictedMemory& memory, const std::string& extents);
std::string memory_json(const exec::PredictedMemory& memory, const std::string& extents);
// Time against memory: a table of amounts of memory with the least time found for each, and what changes; ""
// where nothing can be exchanged.
std::string front_text(const std::vector<artifact::MemoryPoint>& front);
// The arena of the segment that needs the largest one: time to the right (launches), addresses upwards, a
// rectangle for each temporary; SVG without scripts, names as tooltips.
std::string arena_picture(const exec::PredictedMemory& memory, const exec::Executable& code);

}  // namespace thrice::report
