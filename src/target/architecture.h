// Names of CUDA architectures: which code runs on which card.
#pragma once
#include <string>
#include <vector>

namespace thrice::target {

// The CUDA architectures that every kernel text is built for in tests; for messages. Others from sm_80 on are
// left to NVRTC.
constexpr const char* kTestedArchitectures = "sm_80 sm_86 sm_87 sm_89 sm_90a sm_100a sm_103a sm_110a sm_120a";

// True where a cubin built for `built_for` ("sm_80") runs on a card of `card` ("sm_86", "sm_90a"): the same
// name; or the same major number and no higher minor one, and no "a" in `built_for` (code for exactly that
// architecture).
bool cubin_runs_on(const std::string& built_for, const std::string& card);

// True where PTX for `built_for` ("compute_80") runs on a card of `card`, compiled by its driver: any card
// that is not older.
bool ptx_runs_on(const std::string& built_for, const std::string& card);

// "compute_80" of "sm_86", "sm_80" and "sm_90a": PTX that all of them and newer cards take; "" for none.
std::string oldest_virtual(const std::vector<std::string>& architectures);

}  // namespace thrice::target
