#include "flow/optimize.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/hash.h"
#include "codegen/generate.h"
#include "flow/build.h"
#include "flow/tuning.h"
#include "flow/whole_model.h"
#include "ir/check.h"
#include "measure/probe.h"
#include "transform/transform.h"

namespace thrice::flow {

namespace {

std::string bindings_text(const ir::Bindings& bindings) {
  std::string text;
  for (const auto& [symbol, value] : bindings) text += fmt::format("{}{}={}", text.empty() ? "" : " ", symbol, value);
  return text;
}

// Runs one phase, logs and times it.
class Phases {
 public:
  Phases(OptimizeReport& report, const Listener& listener) : report_(report), listener_(listener) {}
  template <class Body>
  auto run(const std::string& name, Body body) {
    listener_.tell({name, "", 0, 0, 0, -1});
    const double begin = monotonic_us();
    struct Stop {
      Phases& phases;
      const std::string& name;
      double begin;
      ~Stop() { phases.report_.phases.push_back({name, (monotonic_us() - begin) / 1e6}); }
    } stop{*this, name, begin};
    return body();
  }

 private:
  OptimizeReport& report_;
  const Listener& listener_;
};

// A fused region whose tuned kernel lost against its own operators one by one is taken apart again: never slower.
void keep_faster_side(const artifact::Plan& original, artifact::Plan& plan, const std::map<std::string, Tuned>& results, std::vector<std::string>& notes,
                      const ir::Graph& graph) {
  std::map<int32_t, const artifact::PlanStep*> step_of;
  for (const auto& segment : original.segments)
    for (const auto& step : segment.steps)
      for (int32_t n : step.nodes) step_of[n] = &step;
  for (auto& segment : plan.segments) {
    std::vector<artifact::PlanStep> steps;
    for (auto& step : segment.steps) {
      std::vector<const artifact::PlanStep*> parts;
      std::set<int32_t> covered;
      for (int32_t n : step.nodes)
        if (const auto it = step_of.find(n); it != step_of.end() && std::find(parts.begin(), parts.end(), it->second) == parts.end()) {
          parts.push_back(it->second);
          covered.insert(it->second->nodes.begin(), it->second->nodes.end());
        }
      double apart = 0;
      bool known = step.kind == artifact::StepKind::kRegion && parts.size() > 1 && covered.size() == step.nodes.size() && results.count(step.workload);
      for (const auto* part : parts) {
        const auto it = results.find(part->workload);
        known = known && (part->kind == artifact::StepKind::kAlias || it != results.end());
        if (it != results.end()) apart += it->second.best.time_us;
      }
      if (!known || !(apart < 0.98 * results.at(step.workload).best.time_us)) {
        steps.push_back(std::move(step));
        continue;
      }
      notes.push_back(fmt::format("{}: its operators one by one are faster ({:.1f} us against {:.1f} us); not fused", plan::region_name(graph, step.nodes), apart,
                                  results.at(step.workload).best.time_us));
      for (const auto* part : parts) steps.push_back(*part);
    }
    segment.steps = std::move(steps);
  }
}

void set_schedules(artifact::Plan& plan, const std::map<std::string, Tuned>& results) {
  for (auto& segment : plan.segments)
    for (auto& step : segment.steps)
      if (const auto it = results.find(step.workload); step.kind == artifact::StepKind::kRegion && it != results.end()) step.schedule = it->second.schedule;
  for (auto& body : plan.bodies) set_schedules(body.plan[0], results);
}

// Every region of the deployed plan with what its operators cost one by one.
void report_regions(const plan::PlanResult& original, const artifact::Plan& plan, const std::map<std::string, plan::PlannedWorkload>& workloads,
                    const std::map<std::string, Tuned>& results, const ir::Graph& graph, const target::DeviceSpec& spec, OptimizeReport& report) {
  std::map<int32_t, const artifact::PlanStep*> step_of;
  for (const auto& segment : original.plan.segments)
    for (const auto& step : segment.steps)
      for (int32_t n : step.nodes) step_of[n] = &step;
  std::map<std::string, RegionReport> regions;
  std::vector<std::string> order;
  for (const auto& segment : plan.segments)
    for (const auto& step : segment.steps) {
      if (step.kind != artifact::StepKind::kRegion || !results.count(step.workload)) continue;
      auto [it, is_new] = regions.try_emplace(step.workload);
      RegionReport& r = it->second;
      if (!is_new) {
        ++r.uses;
        continue;
      }
      order.push_back(step.workload);
      const Tuned& tuned = results.at(step.workload);
      r.name = plan::region_name(graph, step.nodes);
      r.family = step.schedule.family;
      r.schedule = step.schedule.str();
      r.workload = step.workload;
      r.now_us = tuned.best.time_us;
      r.error = tuned.best.error;
      r.error_limit = tuned.best.error_limit;
      r.trials = tuned.trials;
      std::set<const artifact::PlanStep*> parts;
      for (int32_t n : step.nodes)
        if (step_of.count(n)) parts.insert(step_of.at(n));
      r.original_us = 0;
      for (const auto* part : parts)
        if (const auto o = results.find(part->workload); o != results.end()) r.original_us += o->second.by_default.time_us;
      const auto planned = workloads.find(step.workload);
      if (planned != workloads.end() && spec.bandwidth_gbs > 0 && spec.f32_gflops > 0) {
        const family::Work work = family::count_work(planned->second.workload, planned->second.facts);
        const double light_us = std::max(work.bytes / (spec.bandwidth_gbs * 1e3), work.flops / (spec.f32_gflops * 1e3));
        r.light_share = light_us / r.now_us;
      }
    }
  for (const std::string& hash : order) report.regions.push_back(regions[hash]);
  std::stable_sort(report.regions.begin(), report.regions.end(), [](const RegionReport& a, const RegionReport& b) { return a.now_us * a.uses > b.now_us * b.uses; });
}

}  // namespace

OptimizeReport optimize(const OptimizeRequest& request) {
  OptimizeReport report;
  const Settings& settings = request.settings;
  const Listener& listener = request.listener;
  Phases phases(report, listener);
  const auto stop_if_cancelled = [&] {
    if (listener.stop()) throw Error(Code::kCancelled, "stopped before there was anything to keep");
  };
  report.model = request.model_path;

  const backend::DevicePtr device = backend::open_device(settings.device);
  report.device = device->spec().name;
  report.target = device->spec().id;
  const bool runs = device->spec().api != target::Api::kNull;

  auto graph = std::make_shared<ir::Graph>(phases.run("import", [&] { return frontend::import_model(request.model_path, request.import); }));
  phases.run("transform", [&] { return transform::run_transforms(*graph, {}); });
  stop_if_cancelled();
  const ir::Bindings bindings = request.bindings ? request.bindings(*graph) : ir::Bindings{};
  report.timed_at = bindings_text(bindings);

  plan::PlanOptions options;
  options.allow_slow = request.import.allow_slow;
  options.bindings = bindings;
  options.planner = "original";
  const plan::PlanResult original = phases.run("plan", [&] { return plan::make_plan(*graph, device->spec(), options); });
  options.planner = settings.planner;
  plan::PlanResult planned = phases.run("plan", [&] { return plan::make_plan(*graph, device->spec(), options); });
  for (const std::string& step : planned.slow_steps) report.notes.push_back("runs on the host (--allow-slow): " + step);
  stop_if_cancelled();

  const auto cache = std::make_shared<jit::KernelCache>(device, settings.cache_folder + "/kernels");
  measure::TrialRunner runner(device, cache);
  target::DeviceSpec spec = device->spec();
  std::map<std::string, Tuned> results;
  std::unique_ptr<store::Store> store;
  if (runs) {
    std::string notice;
    store = std::make_unique<store::Store>(settings.store_path, &notice);
    if (!notice.empty()) report.notes.push_back(notice);
    TuningContext context{device, &runner, store.get(), store->put_environment(environment_json(*device)), &settings, &listener, &results, &report.trials};
    const double deadline_us = monotonic_us() + settings.budget_s * 1e6;
    phases.run("build and check", [&] {
      measure_defaults(context, planned.workloads, "check fused regions");
      measure_defaults(context, original.workloads, "check original operators");
      return 0;
    });
    spec = phases.run("probe", [&] { return measure::probe_peaks(*device, *cache); });
    if (request.tune && !listener.stop()) phases.run("tune", [&] { return tune(context, planned.workloads, deadline_us), 0; });
    keep_faster_side(original.plan, planned.plan, results, report.notes, *graph);
    set_schedules(planned.plan, results);
    if (request.tune) phases.run("verify", [&] { return confirm(context, planned.workloads, report.notes), 0; });
    set_schedules(planned.plan, results);
  } else {
    report.notes.push_back("null device: nothing was run, timed or verified");
  }

  auto final_plan = std::make_shared<artifact::Plan>(planned.plan);
  auto original_plan = std::make_shared<artifact::Plan>(original.plan);
  std::vector<BuiltProgram> built;
  const auto best_code = phases.run("build", [&] { return exec::make_executable(device, graph, final_plan, program_source(device, cache, &built)); });
  report.constant_bytes = best_code->constant_bytes;
  exec::Executor best(best_code);
  if (runs) {
    exec::Executor plain(exec::make_executable(device, graph, original_plan, program_source(device, cache, nullptr)));
    const ModelCheck check = phases.run("verify model", [&] { return check_model(best, plain, bindings, settings.seed, listener); });
    report.verified = check.verified;
    report.max_error = check.max_error;
    report.error_limit = check.error_limit;
    report.notes.insert(report.notes.end(), check.notes.begin(), check.notes.end());
    if (!check.verified) throw Error(Code::kWrongResult, "the optimized model is not right, nothing was released: " + check.reason);
    const auto times = phases.run("time model", [&] { return time_models(*device, plain, best, bindings, settings.seed); });
    report.original_us = times[0].median_us;
    report.original_spread_us = times[0].spread_us;
    report.best_us = times[1].median_us;
    report.best_spread_us = times[1].spread_us;
    report.speedup = report.original_us / report.best_us;
    report.throughput_per_s = 1e6 / report.best_us;
    report.peak_bytes = best.peak_bytes();
    report.original_peak_bytes = plain.peak_bytes();
    report.arena_lower_bound = best.arena_lower_bound();
  }
  std::map<std::string, plan::PlannedWorkload> all = original.workloads;
  for (const auto& [hash, w] : planned.workloads) all[hash] = w;
  report_regions(original, *final_plan, all, results, *graph, spec, report);
  report.plan_digest = final_plan->digest();
  report.cancelled = listener.stop();

  if (!request.release_path.empty()) {
    phases.run("release", [&] {
      release::write_release(request.release_path, make_release(report, *device, graph, final_plan, built, planned.slow_steps));
      return 0;
    });
    report.release = request.release_path;
  }
  return report;
}

}  // namespace thrice::flow
