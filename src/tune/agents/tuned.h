// Settings of the opponents, as `thrice agent tune-rivals` found them on each half of the recorded spaces
// (fold 0: first, third, ...; fold 1: the others) and as data/agent/rivals.txt keeps them.
#pragma once
#include <map>
#include <string>

namespace thrice::tune {

// All knobs of an agent; empty for agents that have none there. Errors: kCorrupt.
std::map<std::string, double> tuned_knobs(const std::string& agent, int fold);
// One of fold 0: what a user's run takes. Errors: kInternal where it is not there.
double tuned_knob(const std::string& agent, const std::string& knob);

}  // namespace thrice::tune
