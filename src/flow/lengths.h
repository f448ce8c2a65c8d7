// A model whose lengths differ from request to request: tuned at several of them, with buckets of lengths
// where one schedule for all would lose.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "flow/length_spec.h"
#include "flow/optimize.h"
#include "flow/tuning.h"

namespace thrice::flow {

// One length that is tuned for.
struct LengthPoint {
  int64_t length = 0;
  ir::Bindings bindings;
  std::map<std::string, plan::PlannedWorkload> workloads;  // with facts and rule-chosen schedules of there
  std::map<std::string, Tuned> results;
};

// By workload hash: schedules of ascending buckets, the last for all that is longer too. One bucket where one
// schedule serves all lengths best.
using LengthBuckets = std::map<std::string, std::vector<artifact::Bucket>>;

// The points of a spec but the main one, with those regions of the plan whose operands' extents differ there.
// Regions within bodies of control nodes are left out: they keep one schedule.
std::vector<LengthPoint> length_points(const ir::Graph& graph, const plan::PlanResult& planned,
                                       const target::DeviceSpec& device, const LengthSpec& spec,
                                       const ir::Bindings& main);
// The middle one of the lengths that are tuned for: what the model is timed and reported at.
int64_t main_length(const LengthSpec& spec);

// measure_defaults and, where `tunes`, tune at the main extents and at every point. Time and trials that are
// left are shared out evenly.
void tune_lengths(const TuningContext& main, const std::map<std::string, plan::PlannedWorkload>& workloads,
                  std::vector<LengthPoint>& points, bool tunes, double deadline_us);

// Times every point's best schedules at every point, side by side, and splits the lengths among them: by
// dynamic programming over the lengths (plan/buckets.h), with times between points on straight lines. A
// bucket more must win 2% of the region's time. Where a region cannot be timed so it keeps one schedule, with
// a note.
LengthBuckets choose_buckets(const TuningContext& main,
                             const std::map<std::string, plan::PlannedWorkload>& workloads,
                             std::vector<LengthPoint>& points, const LengthSpec& spec,
                             std::vector<std::string>& notes);

// The full gate, and `races` where it is not null, for each bucket's schedule at its shortest and its longest
// length. A region of which one fails keeps its one schedule, with a note. What the checker said is added to
// `report`.
void confirm_buckets(const TuningContext& main, const ir::Graph& graph, const LengthSpec& spec,
                     const ir::Bindings& bindings, const std::vector<LengthPoint>& points,
                     LengthBuckets& buckets, const worker::RaceChecker* races, RaceReport& report,
                     std::vector<std::string>& notes);

// The shortest and the longest length; empty without a spec.
std::vector<ir::Bindings> length_ends(const LengthSpec& spec, const ir::Bindings& bindings);

// Original and best at every point, alternating.
std::vector<LengthReport> time_lengths(backend::Device& device, exec::Executor& original,
                                       exec::Executor& best, const std::vector<LengthPoint>& points,
                                       uint64_t seed);

// Sets the buckets of the plan's regions, and as schedule beyond them the last one's.
void set_buckets(const LengthBuckets& buckets, const std::string& symbol, artifact::Plan& plan);

}  // namespace thrice::flow
