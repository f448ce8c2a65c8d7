// Live state of host and cards as text for people and as JSON.
#pragma once
#include <string>
#include <vector>

#include "hardware/snapshot.h"

namespace thrice::report {

// One line for the host and one for each card, beginning with "host" or the card's id; what is unknown is
// left out. `before`: the snapshot before, for rates of the network; nullptr: none.
std::vector<std::string> live_lines(const hardware::Snapshot& now, const hardware::Snapshot* before);

// {"unix_time", "host": {...}, "devices": [{...}]} on one line; unknown numbers are null.
std::string live_json(const hardware::Snapshot& now, const hardware::Snapshot* before);

}  // namespace thrice::report
