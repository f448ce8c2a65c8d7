// Names of CUDA architectures: which code runs on which card.
#pragma once
#include <string>

namespace thrice::target {

// True where a cubin built for `built_for` ("sm_80") runs on a card of `card` ("sm_86", "sm_90a"): the same
// name; or the same major number and no higher minor one, and no "a" in `built_for` (code for exactly that
// architecture).
bool cubin_runs_on(const std::string& built_for, const std::string& card);

}  // namespace thrice::target
