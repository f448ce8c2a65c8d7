// How a schedule that the full gate or a race checker refused is marked in the store: no later run takes it
// as a winner, and a rule-chosen one that the full gate refused is replaced before it is tried.
#pragma once
#include "flow/tuning.h"

namespace thrice::flow {

inline constexpr const char* kFailsFullGate = "fails the full gate: ";
inline constexpr const char* kHasHazard = "a race checker refuses it: ";

// One schedule at a workload's facts, through the full gate with seeds that no screening used. Not timed.
artifact::Measurement full_gate(const TuningContext& context, const plan::PlannedWorkload& planned,
                                const artifact::Schedule& schedule, measure::Oracle& oracle);

// One schedule at a workload's facts under a race checker.
worker::RaceVerdict race_verdict(const TuningContext& context, const plan::PlannedWorkload& planned,
                                 const artifact::Schedule& schedule, const worker::RaceChecker& checker);

}  // namespace thrice::flow
