// Files of data/agent/ that the program carries (embedded when building).
#pragma once
#include <string>

namespace thrice::tune {

std::string shipped_agent();   // pretrained.txt
std::string shipped_rivals();  // rivals.txt

}  // namespace thrice::tune
