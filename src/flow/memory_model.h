// What the memory and the time of a plan are made of, region by region: the values between steps, and for
// each schedule that a region may have its scratch, what it keeps, and how long it takes.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "analysis/memory_front.h"
#include "artifact/manifest.h"
#include "exec/predict.h"
#include "plan/planner.h"

namespace thrice::flow {

// By workload hash: other schedules that may be taken, the fastest first.
using Alternatives = std::map<std::string, std::vector<artifact::Schedule>>;
// By workload hash and schedule: microseconds of one use.
using ScheduleTimes = std::map<std::string, std::map<std::string, double>>;

// Bytes that one schedule takes beyond operands and results: while it runs, and from run to run (packed
// weights less the weights that they stand for, once a use).
struct ScheduleNeed {
  int64_t scratch = 0, kept = 0;
};
ScheduleNeed need_of(const plan::PlannedWorkload& planned, const artifact::Schedule& schedule);

struct MemoryModel {
  std::vector<std::string> regions;                          // workload hashes: those with a choice
  std::vector<std::vector<artifact::Schedule>> schedules;    // by region; the first is the plan's
  std::vector<std::vector<analysis::RegionChoice>> choices;  // index-aligned
  int64_t rest = 0;         // bytes that no choice changes: weights, inputs, outputs, rounding
  int64_t floor = 0;        // the largest peak of steps without a choice
  bool is_measured = true;  // else schedules without a time count by their order and the region's work
};
// `at`: what exec::predict_memory says of the plan.
MemoryModel model_memory(const artifact::Plan& plan, const exec::PredictedMemory& at,
                         const std::map<std::string, plan::PlannedWorkload>& workloads,
                         const Alternatives& alternatives, const ScheduleTimes& times);
// The front in bytes of device memory in all (MemoryUse::total), and in us of all regions with a choice.
analysis::MemoryFront front_of(const MemoryModel& model);
// The front for people, thinned to 64 points: what is other than in the plan at each of them.
std::vector<artifact::MemoryPoint> describe(const MemoryModel& model, const analysis::MemoryFront& front,
                                            const std::map<std::string, plan::PlannedWorkload>& workloads);

}  // namespace thrice::flow
