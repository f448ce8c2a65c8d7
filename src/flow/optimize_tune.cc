// Schedules: the rules' checked, others searched, and fusions that lose undone.
#include <algorithm>

#include "flow/choose.h"
#include "flow/deployed_plan.h"
#include "flow/in_place.h"
#include "flow/memory_budget.h"
#include "flow/optimize_run.h"

namespace thrice::flow {

void OptimizeRun::prepare_trials() {
  if (settings_.check_races) {  // now: a tool that is not there is told before minutes of work
    worker::RaceCheckOptions how;
    how.kernels = settings_.cache_folder + "/kernels";
    races_.emplace(device_->spec(), how);
  }
  if (!request_.record_path.empty()) record_ = std::make_unique<store::TrialLog>(request_.record_path);
  open_store();
  guard_.emplace(hardware::system_source(), report_.target, settings_.agent_config.hardware_constraints);
  context_ = {device_,    &*runner_, store_.get(),    environment_, &settings_,
              &listener_, &results_, &report_.trials, &*guard_,     record_.get()};
  double model_bytes = 0;
  for (const auto& [hash, work] : planned_.workloads)
    model_bytes += operand_bytes(work) * static_cast<double>(work.uses.size());
  context_.timing = timing_policy(settings_, device_->spec(), model_bytes);
  if (!context_.timing.sentence.empty()) report_.notes.push_back(context_.timing.sentence);
  probe();
  context_.peaks = &spec_;
  if (!spec_.is_cpu)  // there kernels are compiled at their first launch, and not beside it
    for (const auto& [hash, work] : original_.workloads)
      if (!planned_.workloads.count(hash)) context_.later.push_back(&work);
}

void OptimizeRun::check_defaults() {
  phases_.run("build and check", [&] { measure_defaults(context_, planned_.workloads, "build and check"); });
  report_.usable_s = (monotonic_us() - imported_us_) * 1e-6;
  // What failed as a default is no part of the original either.
  std::map<std::string, Tuned> replaced;
  for (const auto& [hash, tuned] : results_) {
    if (tuned.note.empty()) continue;
    report_.notes.push_back(tuned.note);
    replaced[hash].schedule = tuned.default_schedule;
  }
  set_schedules(planned_.plan, results_);
  set_schedules(original_.plan, replaced);
  if (settings_.memory_budget_bytes > 0)
    keep_within(settings_.memory_budget_bytes, graph_, bindings_, planned_, results_, report_.notes);
  known_ = original_.workloads;
  known_.insert(planned_.workloads.begin(), planned_.workloads.end());
  paused_us_ = monotonic_us();
}

std::unique_ptr<exec::Executor> OptimizeRun::make_executor(const artifact::Plan& plan,
                                                           std::vector<BuiltProgram>* built) const {
  return std::make_unique<exec::Executor>(exec::make_executable(
      device_, graph_, std::make_shared<artifact::Plan>(plan), program_source(device_, cache_, built)));
}

void OptimizeRun::build_original() {
  others_.begin(sources_of(*runner_, planned_.plan, known_));
  const exec::ProgramSource programs = program_source(device_, cache_, nullptr);
  const auto plan = std::make_shared<artifact::Plan>(original_.plan);
  plain_ = phases_.run("build original", [&] {
    return std::make_unique<exec::Executor>(exec::make_executable(
        device_, graph_, plan,
        [&](const ir::Workload& workload, const family::Family& family, const artifact::Schedule& schedule) {
          runner_->fetch(runner_->generate(workload, family, schedule));
          return programs(workload, family, schedule);
        }));
  });
}

void OptimizeRun::set_planned() {
  set_schedules(planned_.plan, results_);
  set_buckets(buckets_, lengths_.symbol, planned_.plan);
}

void OptimizeRun::tune() {
  const double deadline_us =
      began_us_ + settings_.budget_s * 1e6 + (monotonic_us() - paused_us_);  // releasing early cost nothing
  if (lengths_.symbol.empty()) {
    phases_.run("tune", [&] { flow::tune(context_, planned_.workloads, deadline_us); });
  } else {
    points_ = length_points(*graph_, planned_, device_->spec(), lengths_, bindings_);
    phases_.run("tune", [&] { tune_lengths(context_, planned_.workloads, points_, tunes(), deadline_us); });
    buckets_ = phases_.run("choose by length", [&] {
      return choose_buckets(context_, planned_.workloads, points_, lengths_, report_.notes);
    });
  }
  set_planned();
  if (settings_.memory_budget_bytes > 0)
    keep_within(settings_.memory_budget_bytes, graph_, bindings_, planned_, results_, report_.notes);
}

void OptimizeRun::choose() {
  if (!plain_) build_original();  // a search had its memory
  phases_.run("choose", [&] {
    const int64_t budget = settings_.memory_budget_bytes;
    const auto original_steps = timed_steps(original_.plan, step_times(*plain_, bindings_, settings_.seed));
    const artifact::Plan fused = planned_.plan;
    if (keep_faster_side(original_steps,
                         step_times(*make_executor(planned_.plan, nullptr), bindings_, settings_.seed),
                         planned_.plan, report_.notes, *graph_))
      set_planned();
    if (budget > 0 && total_memory(graph_, planned_.plan, bindings_) > budget) {
      planned_.plan = fused;
      report_.notes.push_back("the memory budget has no room for that: they stay fused");
    }
    const bool in_place =
        settings_.in_place == "on" || (settings_.in_place == "auto" && spec_.api != target::Api::kCuda);
    if (in_place && lengths_.symbol.empty()) {
      deployed(planned_.plan, known_, results_);
      write_in_place(graph_, bindings_, planned_.plan, results_, report_.notes);
    }
  });
}

}  // namespace thrice::flow
