// What is deployed: proved, timed, released.
#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <filesystem>

#include "family/in_place.h"
#include "flow/choose.h"
#include "flow/deployed_plan.h"
#include "flow/memory_budget.h"
#include "flow/optimize_run.h"
#include "library/memory.h"

namespace thrice::flow {

void OptimizeRun::prove_deployed(bool with_races) {
  const auto in_use = deployed(planned_.plan, known_, results_);
  phases_.run("verify", [&] { confirm(context_, in_use, report_.notes); });
  if (with_races && races_)
    phases_.run("check races",
                [&] { report_.races = check_races(context_, in_use, *races_, report_.notes); });
  if (!buckets_.empty())
    phases_.run("verify by length", [&] {
      confirm_buckets(context_, *graph_, lengths_, bindings_, points_, buckets_,
                      with_races && races_ ? &*races_ : nullptr, report_.races, report_.notes);
    });
  set_planned();
  if (checked_plan_ != planned_.plan.digest()) check_whole_model();
}

void OptimizeRun::check_whole_model() {
  checked_plan_.clear();
  built_.clear();
  best_ = phases_.run("build", [&] { return make_executor(planned_.plan, &built_); });
  check_ = phases_.run("verify model", [&] {
    return padded_.graph
               ? check_packed_model(*best_, *plain_, padded_, bindings_of_inputs_, settings_.seed, listener_)
               : check_model(*best_, *plain_, bindings_, settings_.seed, listener_,
                             length_ends(lengths_, bindings_));
  });
  report_.verified = check_.verified;
  report_.max_error = check_.max_error;
  report_.error_limit = check_.error_limit;
  if (!check_.verified)
    throw Error(
        Code::kWrongResult,
        fmt::format("the optimized model is not right, {}: {}",
                    report_.release.empty() ? "nothing was released" : "the release from before tuning stays",
                    check_.reason));
  checked_plan_ = planned_.plan.digest();
}

void OptimizeRun::release_early(bool searches) {
  // What a race checker is asked for is not released without it.
  if (request_.release_path.empty() || races_ || listener_.stop()) return;
  try {
    prove_deployed(false);
    write_release();
  } catch (const Error& error) {
    if (!searches || error.code() != Code::kWrongResult) throw;
    report_.verified = false;
    report_.notes.push_back(fmt::format("no release before tuning: {}", error.what()));
  }
  if (!searches) return;
  // Their memory is the trials' now.
  best_.reset();
  checked_plan_.clear();
  plain_.reset();
}

void OptimizeRun::prove() {
  report_explored();
  for (const std::string& note : guard_->notes()) report_.notes.push_back(note);
  for (const std::string& note : runner_->place().notes()) report_.notes.push_back(note);
  others_.begin(sources_of(*runner_, planned_.plan, known_));
  prove_deployed(true);
  report_.notes.insert(report_.notes.end(), check_.notes.begin(), check_.notes.end());
  remember_best();
}

void OptimizeRun::report_explored() {
  for (const auto& [hash, tuned] : results_) {
    if (tuned.attempts.empty()) continue;
    const std::vector<std::string>& uses = planned_.workloads.at(hash).uses;
    report_.explored.push_back({uses.front(), tuned.schedule.str(), static_cast<int64_t>(uses.size()),
                                tuned.by_default.time_us, tuned.best.time_us, tuned.attempts});
  }
  std::stable_sort(
      report_.explored.begin(), report_.explored.end(),
      [](const Explored& a, const Explored& b) { return a.attempts.size() > b.attempts.size(); });
}

// Regions that were taken apart too: what was best for them is a hint for others like them.
void OptimizeRun::remember_best() {
  const std::string network = std::filesystem::path(request_.model_path).stem().string();
  for (const auto& [hash, tuned] : results_)
    if (tuned.best.time_us > 0)
      library::remember(*store_, known_.at(hash), network, context_.environment, shape_key(known_.at(hash)),
                        family::apart(tuned.schedule), tuned.best.time_us);
}

void OptimizeRun::time() {
  if (buckets_.empty())  // a region has one schedule there
    report_.memory_front = memory_points(graph_, planned_, results_, device_->spec(), bindings_);
  phases_.run("time model", [&] {
    const auto times = time_models(*device_, *plain_, *best_, bindings_, settings_.seed);
    // Before runs that are watched step by step, which hold on to more.
    const exec::MemoryUse memory = best_->memory();
    report_.peak_bytes = memory.peak();
    report_.original_peak_bytes = plain_->peak_bytes();
    report_.arena_lower_bound = memory.arena_lower_bound;
    report_.constant_bytes = memory.weights;
    report_.held_weight_bytes = memory.held;
    report_.original_us = times[0].median_us;
    report_.original_spread_us = times[0].spread_us;
    report_.best_us = times[1].median_us;
    report_.best_spread_us = times[1].spread_us;
    report_.speedup = report_.original_us / report_.best_us;
    report_.throughput_per_s = 1e6 / report_.best_us;
    if (!spec_.is_cpu) {
      const LoadTimes loads = time_loads(*device_, *best_, bindings_, settings_.seed);
      report_.best_burst_us = loads.burst.median_us;
      report_.best_sustained_us = loads.sustained.median_us;
    }
    const auto original_steps = timed_steps(original_.plan, step_times(*plain_, bindings_, settings_.seed));
    report_regions(original_steps, planned_.plan, step_times(*best_, bindings_, settings_.seed), known_,
                   results_, *graph_, spec_, report_);
  });
  if (lengths_.symbol.empty()) return;
  phases_.run("time by length", [&] {
    report_.length_symbol = lengths_.symbol;
    report_.lengths = time_lengths(*device_, *plain_, *best_, points_, settings_.seed);
    report_.lengths.push_back({main_length(lengths_), report_.original_us, report_.best_us});
    std::sort(report_.lengths.begin(), report_.lengths.end(),
              [](const auto& a, const auto& b) { return a.length < b.length; });
  });
}

void OptimizeRun::build_unproved() {
  report_.notes.push_back(spec_.id + ": nothing was run, timed or verified");
  exec::make_executable(device_, graph_, std::make_shared<artifact::Plan>(planned_.plan),
                        program_source(device_, cache_, &built_));
}

void OptimizeRun::write_release() {
  report_.plan_digest = planned_.plan.digest();
  report_.cancelled = listener_.stop();
  if (request_.release_path.empty()) return;
  phases_.run("release", [&] {
    release::Release release =
        make_release(report_, *device_, graph_, std::make_shared<artifact::Plan>(planned_.plan), built_,
                     planned_.slow_steps);
    others_.add_to(release);
    release::write_release(request_.release_path, std::move(release));
  });
  report_.release = request_.release_path;
  if (report_.verified && report_.first_release_s < 0) {
    report_.first_release_s = (monotonic_us() - begun_us_) * 1e-6;
    listener_.tell({"released", request_.release_path, 0, 0, 0, -1});
  }
}

void OptimizeRun::release() {
  write_release();
  for (const std::string& architecture : target_.also)
    report_.notes.push_back(architecture + ": its binaries were built, not run");
}

}  // namespace thrice::flow
