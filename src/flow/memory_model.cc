#include "flow/memory_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "family/in_place.h"

namespace thrice::flow {

namespace {

using analysis::RegionChoice;
using artifact::Schedule;
using plan::PlannedWorkload;

// Bytes of values (no scratch) that are alive at one time while each step of the segment runs.
std::vector<int64_t> values_alive(const exec::SegmentMemory& segment) {
  std::vector<int64_t> live(static_cast<size_t>(segment.num_moments) + 1, 0);
  for (const exec::BoundPiece& piece : segment.pieces)
    if (!piece.is_scratch)
      for (int m = piece.first; m <= piece.last; ++m) live[static_cast<size_t>(m)] += piece.bytes;
  std::vector<int64_t> alive;
  for (size_t s = 0; s < segment.first_moment.size(); ++s) {
    const int end = s + 1 < segment.first_moment.size() ? segment.first_moment[s + 1] : segment.num_moments;
    alive.push_back(*std::max_element(live.begin() + segment.first_moment[s],
                                      live.begin() + std::max(end, segment.first_moment[s] + 1)));
  }
  return alive;
}

// In place of a time: the region's work at a terabyte and a hundred teraflops a second, half as much again
// for each step down in the order of rules. Only ratios between regions count.
double guessed_us(const PlannedWorkload& planned, size_t place) {
  const family::Work work = family::count_work(planned.workload, planned.facts);
  return (work.bytes / 1e6 + work.flops / 1e8) * (1 + 0.5 * static_cast<double>(place));
}

}  // namespace

ScheduleNeed need_of(const PlannedWorkload& planned, const Schedule& schedule) {
  const artifact::LaunchPlan launches = planned.family->launch(planned.workload, schedule, planned.facts);
  ScheduleNeed need;
  for (size_t t = 0; t < launches.temporary_bytes.size(); ++t)
    (launches.temporary_kept[t] ? need.kept : need.scratch) += launches.temporary_bytes[t];
  const std::vector<family::KernelUse> uses = planned.family->uses(planned.workload, schedule);
  const ir::Graph& graph = planned.workload.graph;
  size_t buffer = 0;
  for (size_t i = 0; i < graph.inputs.size() && !uses.empty(); ++i) {
    if (ir::is_shape_input(planned.workload, i)) continue;
    const auto needs = [&](const family::KernelUse& use) { return !use.once && use.touches[buffer]; };
    if (graph.value(graph.inputs[i]).is_weight && std::none_of(uses.begin(), uses.end(), needs)) {
      const ir::Type& type = planned.facts[i].type;
      need.kept -=
          ir::num_elements(ir::static_shape(type.shape)) * static_cast<int64_t>(dtype_bytes(type.dtype));
    }
    ++buffer;
  }
  need.kept *= static_cast<int64_t>(std::max<size_t>(planned.uses.size(), 1));
  return need;
}

MemoryModel model_memory(const artifact::Plan& plan, const exec::PredictedMemory& at,
                         const std::map<std::string, PlannedWorkload>& workloads,
                         const Alternatives& alternatives, const ScheduleTimes& times) {
  MemoryModel model;
  std::map<std::string, int64_t> values;  // the most beside any use
  std::map<std::string, Schedule> now;
  for (const exec::SegmentMemory& segment : at.segments) {
    const std::vector<int64_t> alive = values_alive(segment);
    for (size_t s = 0; s < alive.size(); ++s) {
      const artifact::PlanStep& step = plan.segments[segment.segment].steps[s];
      const bool is_known = step.kind == artifact::StepKind::kRegion && workloads.count(step.workload);
      if (is_known) {
        int64_t& most = values[step.workload];
        most = std::max(most, alive[s]);
        now[step.workload] = step.schedule;
      }
      model.floor = std::max(model.floor, alive[s]);
    }
  }
  int64_t kept = 0, peak = model.floor;
  for (const auto& [hash, schedule] : now) {
    const PlannedWorkload& planned = workloads.at(hash);
    const double uses = static_cast<double>(std::max<size_t>(planned.uses.size(), 1));
    const auto known = times.find(hash);
    std::vector<Schedule> schedules{schedule};
    if (const auto others = alternatives.find(hash); others != alternatives.end())
      for (const Schedule& other : others->second)
        if (std::find(schedules.begin(), schedules.end(), other) == schedules.end())
          schedules.push_back(other);
    std::vector<RegionChoice> choices;
    std::vector<Schedule> kept_schedules;
    for (size_t i = 0; i < schedules.size(); ++i) {
      const ScheduleNeed need = need_of(planned, schedules[i]);
      RegionChoice choice{0, need.kept, values[hash] + need.scratch};
      const auto us = known == times.end() ? std::map<std::string, double>::const_iterator()
                                           : known->second.find(family::apart(schedules[i]).str());
      const bool is_timed = known != times.end() && us != known->second.end();
      if (schedules.size() > 1) model.is_measured = model.is_measured && is_timed;
      choice.time = uses * (is_timed ? us->second : guessed_us(planned, i));
      const auto beats = [&](const RegionChoice& c) {
        return c.time <= choice.time && c.kept <= choice.kept && c.peak <= choice.peak;
      };
      if (i > 0 && std::any_of(choices.begin(), choices.end(), beats)) continue;
      choices.push_back(choice);
      kept_schedules.push_back(schedules[i]);
    }
    kept += choices[0].kept;
    peak = std::max(peak, choices[0].peak);
    if (choices.size() == 1) {
      model.rest += choices[0].kept;
      model.floor = std::max(model.floor, choices[0].peak);
      continue;
    }
    model.regions.push_back(hash);
    model.schedules.push_back(std::move(kept_schedules));
    model.choices.push_back(std::move(choices));
  }
  model.rest += at.use.total() - kept - peak;
  return model;
}

analysis::MemoryFront front_of(const MemoryModel& model) {
  analysis::MemoryFront front = analysis::memory_front(model.choices, model.floor);
  for (analysis::FrontPoint& point : front.points) point.bytes += model.rest;
  return front;
}

std::vector<artifact::MemoryPoint> describe(const MemoryModel& model, const analysis::MemoryFront& front,
                                            const std::map<std::string, PlannedWorkload>& workloads) {
  constexpr size_t kPoints = 64, kNamed = 3;
  std::vector<artifact::MemoryPoint> points;
  const size_t n = front.points.size();
  for (size_t i = 0; i < std::min(n, kPoints); ++i) {
    const analysis::FrontPoint& point =
        front.points[n <= kPoints ? i : i * (n - 1) / (kPoints - 1)];  // both ends stay
    artifact::MemoryPoint told{point.bytes, model.is_measured ? point.time : -1, ""};
    size_t changed = 0;
    for (size_t r = 0; r < model.regions.size(); ++r) {
      if (point.choices[r] == 0 || ++changed > kNamed) continue;
      told.change += fmt::format("{}{}: '{}'", told.change.empty() ? "" : "; ",
                                 workloads.at(model.regions[r]).uses.front(),
                                 model.schedules[r][point.choices[r]].str());
    }
    if (changed > kNamed) told.change += fmt::format("; and {} more", changed - kNamed);
    points.push_back(std::move(told));
  }
  return points;
}

}  // namespace thrice::flow
