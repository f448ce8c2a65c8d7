// How a schedule that the full gate refused is marked in the store: no later run takes it as a winner, and a
// rule-chosen one is replaced before it is tried.
#pragma once

namespace thrice::flow {

inline constexpr const char* kFailsFullGate = "fails the full gate: ";

}  // namespace thrice::flow
