#include "flow/optimize.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "base/clock.h"
#include "base/hash.h"
#include "codegen/generate.h"
#include "family/in_place.h"
#include "flow/build.h"
#include "flow/choose.h"
#include "flow/deployed_plan.h"
#include "flow/environment.h"
#include "flow/in_place.h"
#include "flow/lengths.h"
#include "flow/measured_cost.h"
#include "flow/memory_budget.h"
#include "flow/open_target.h"
#include "flow/other_binaries.h"
#include "flow/tuning.h"
#include "flow/whole_model.h"
#include "ir/check.h"
#include "ir/inputs.h"
#include "library/memory.h"
#include "transform/transform.h"
#include "tune/agent.h"
#include "worker/runner.h"

namespace thrice::flow {

namespace {

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

// Devices that run kernels are tried in a worker where one can be started; addresses of a worker on the CPU
// are limited to what is free beside the memory that the user wants left alone.
std::unique_ptr<measure::TrialPlace> trial_place(const std::string& worker, const backend::DevicePtr& device,
                                                 const std::shared_ptr<jit::KernelCache>& cache,
                                                 const Settings& settings) {
  if (worker.empty() || device->spec().api == target::Api::kNull) return measure::place_here(device, cache);
  worker::RunnerOptions options;
  options.executable = worker;
  constexpr int64_t kLeast = int64_t{4} << 30;  // what a driver with its compiler reserves, mostly untouched
  if (const int64_t free = device->spec().is_cpu ? device->free_memory_bytes() : -1; free > 0)
    options.limits.memory_bytes =
        kLeast +
        std::max<int64_t>(0, free - settings.agent_config.hardware_constraints.min_free_memory_bytes);
  return std::make_unique<worker::Runner>(device, cache, options);
}

// Positions that are no padding in the inputs that a packed model is timed with.
int64_t drawn_rows(const ir::Graph& graph, const transform::Packing& packing, const ir::Bindings& bindings,
                   uint64_t seed) {
  const ir::Type& type = graph.value(graph.inputs[packing.mask_input]).type;
  const ir::Tensor mask = ir::padding_mask(
      type.dtype, {type.shape[0].evaluate(bindings), type.shape[1].evaluate(bindings)}, seed);
  int64_t rows = 0;
  for (int64_t i = 0; i < mask.size(); ++i) rows += mask.as_int(i) != 0;
  return rows;
}

}  // namespace

OptimizeReport optimize(const OptimizeRequest& request) {
  const double begun_us = monotonic_us();
  OptimizeReport report;
  const Settings& settings = request.settings;
  const Listener& listener = request.listener;
  Phases phases(report, listener);
  const auto stop_if_cancelled = [&] {
    if (listener.stop()) throw Error(Code::kCancelled, "stopped before there was anything to keep");
  };
  report.model = request.model_path;
  tune::require_agent(settings.agent);  // now, not after minutes of building

  const OpenedTarget target = open_target(settings.device);
  const backend::DevicePtr& device = target.device;
  report.device = device->spec().name;
  report.target = device->spec().id;

  auto graph = std::make_shared<ir::Graph>(
      phases.run("import", [&] { return frontend::import_model(request.model_path, request.import); }));
  const double imported_us = monotonic_us();
  phases.run("transform", [&] { return transform::run_transforms(*graph, {}); });
  stop_if_cancelled();
  ir::Bindings bindings = request.bindings ? request.bindings(*graph) : ir::Bindings{};
  LengthSpec lengths;  // no symbol: one length
  if (!settings.lengths.empty()) {
    if (settings.memory_budget_bytes > 0)
      throw Error(Code::kInvalidArgument,
                  "--lengths and --memory-budget exclude each other: a budget is kept "
                  "at one length; give the longest as --dims");
    if (request.packed_mask)
      throw Error(Code::kInvalidArgument,
                  "--lengths and --packed exclude each other: without padding a "
                  "region's extents follow the tokens of a batch");
    std::set<std::string> symbols;
    for (const auto& [symbol, value] : bindings) symbols.insert(symbol);
    lengths = parse_lengths(settings.lengths, symbols);
    bindings[lengths.symbol] = main_length(lengths);
  }
  const ir::Bindings bindings_of_inputs = bindings;
  report.timed_at = bindings_text(bindings);
  PaddedModel padded;
  if (request.packed_mask)
    phases.run("pack", [&] {
      padded.graph = std::make_shared<const ir::Graph>(*graph);
      padded.packing = transform::pack_tokens(*graph, *request.packed_mask);
      const int64_t rows = drawn_rows(*graph, padded.packing, bindings, settings.seed);
      bindings[padded.packing.rows] = rows;
      report.timed_at += fmt::format("{}tokens={}", report.timed_at.empty() ? "" : " ", rows);
      report.notes.push_back(fmt::format(
          "packed: padding of the mask '{}' is left out of all work; tuned and timed with {} tokens",
          padded.packing.mask, rows));
      return 0;
    });

  const auto cache = std::make_shared<jit::KernelCache>(device, settings.cache_folder + "/kernels");
  measure::TrialRunner runner(device, trial_place(request.worker, device, cache, settings));
  target::DeviceSpec spec = device->spec();
  std::unique_ptr<store::Store> store;
  std::string environment;  // key in the store
  const auto open_store = [&] {
    if (store) return;
    std::string notice;
    store = std::make_unique<store::Store>(settings.store_path, &notice);
    if (!notice.empty()) report.notes.push_back(notice);
    environment = store->put_environment(environment_json(*device));
  };
  const auto probe = [&] {
    try {
      spec = runner.probe();
    } catch (const Error& error) {  // shares of light are then not shown, and nothing is too fast
      report.notes.push_back(fmt::format("the device's peaks are not known: {}", error.what()));
    }
    return 0;
  };

  plan::PlanOptions options;
  options.allow_slow = request.import.allow_slow;
  options.bindings = bindings;
  options.planner = "original";
  plan::PlanResult original =
      phases.run("plan", [&] { return plan::make_plan(*graph, device->spec(), options); });
  options.planner = report.planner = settings.planner;
  std::optional<MeasuredCost> costs;
  double began_us = -1;                           // of the budget
  if (settings.planner == "dp" && target.runs) {  // prices want records and peaks
    began_us = monotonic_us();
    open_store();
    phases.run("probe", probe);
    options.costs = &costs.emplace(*store, environment, spec);
  }
  plan::PlanResult planned =
      phases.run("plan", [&] { return plan::make_plan(*graph, device->spec(), options); });
  report.fusion = planned.fusion;
  const int64_t budget = settings.memory_budget_bytes;
  if (budget > 0)
    phases.run("plan", [&] {
      const auto changed =
          fit_memory(graph, planned.plan, planned.workloads,
                     frugal_schedules(planned.workloads, device->spec()), bindings, budget, report.notes);
      for (const auto& [hash, schedule] : changed) planned.workloads.at(hash).schedule = schedule;
      return 0;
    });
  report.notes.insert(report.notes.end(), planned.orders.begin(), planned.orders.end());
  for (const std::string& step : planned.slow_steps)
    report.notes.push_back("runs on the host (--allow-slow): " + step);
  stop_if_cancelled();

  std::optional<worker::RaceChecker> races;  // now: a tool that is not there is told before minutes of work
  if (settings.check_races && target.runs) {
    worker::RaceCheckOptions how;
    how.kernels = settings.cache_folder + "/kernels";
    races.emplace(device->spec(), how);
  }
  std::map<std::string, Tuned> results;
  std::unique_ptr<store::TrialLog> record;
  if (!request.record_path.empty()) record = std::make_unique<store::TrialLog>(request.record_path);
  OtherBinaries others(request.worker, with_ptx(device->spec(), target.also),
                       settings.cache_folder + "/kernels");
  const auto release_built = [&](const std::vector<BuiltProgram>& built) {
    report.plan_digest = planned.plan.digest();
    report.cancelled = listener.stop();
    if (request.release_path.empty()) return;
    phases.run("release", [&] {
      release::Release release = make_release(
          report, *device, graph, std::make_shared<artifact::Plan>(planned.plan), built, planned.slow_steps);
      others.add_to(release);
      release::write_release(request.release_path, std::move(release));
      return 0;
    });
    report.release = request.release_path;
    if (report.verified && report.first_release_s < 0) {
      report.first_release_s = (monotonic_us() - begun_us) * 1e-6;
      listener.tell({"released", request.release_path, 0, 0, 0, -1});
    }
  };
  if (target.runs) {
    open_store();
    DeviceGuard guard(hardware::system_source(), report.target, settings.agent_config.hardware_constraints);
    TuningContext context{device,    &runner,  store.get(),    environment, &settings,
                          &listener, &results, &report.trials, &guard,      record.get()};
    double model_bytes = 0;
    for (const auto& [hash, work] : planned.workloads)
      model_bytes += operand_bytes(work) * static_cast<double>(work.uses.size());
    context.timing = timing_policy(settings, device->spec(), model_bytes);
    if (!context.timing.sentence.empty()) report.notes.push_back(context.timing.sentence);
    if (began_us < 0) {
      began_us = monotonic_us();
      phases.run("probe", probe);
    }
    double deadline_us = began_us + settings.budget_s * 1e6;
    context.peaks = &spec;
    if (!spec.is_cpu)  // there kernels are compiled at their first launch, and not beside it
      for (const auto& [hash, work] : original.workloads)
        if (!planned.workloads.count(hash)) context.later.push_back(&work);
    phases.run("build and check",
               [&] { return measure_defaults(context, planned.workloads, "build and check"), 0; });
    report.usable_s = (monotonic_us() - imported_us) * 1e-6;
    for (const auto& [hash, tuned] : results)
      if (!tuned.note.empty()) report.notes.push_back(tuned.note);
    set_schedules(planned.plan, results);
    // What failed as a default is no part of the original either.
    std::map<std::string, Tuned> replaced;
    for (const auto& [hash, tuned] : results)
      if (!tuned.note.empty()) replaced[hash].schedule = tuned.default_schedule;
    set_schedules(original.plan, replaced);
    if (budget > 0) keep_within(budget, graph, bindings, planned, results, report.notes);
    std::map<std::string, plan::PlannedWorkload> known = original.workloads;
    known.insert(planned.workloads.begin(), planned.workloads.end());
    const double paused_us = monotonic_us();
    others.begin(sources_of(runner, planned.plan, known));
    const exec::ProgramSource programs = program_source(device, cache, nullptr);
    exec::Executor plain(phases.run("build original", [&] {
      return exec::make_executable(device, graph, std::make_shared<artifact::Plan>(original.plan),
                                   [&](const ir::Workload& workload, const family::Family& family,
                                       const artifact::Schedule& schedule) {
                                     runner.fetch(runner.generate(workload, family, schedule));
                                     return programs(workload, family, schedule);
                                   });
    }));
    const auto run_plan = [&](const artifact::Plan& plan, std::vector<BuiltProgram>* built) {
      return std::make_unique<exec::Executor>(exec::make_executable(
          device, graph, std::make_shared<artifact::Plan>(plan), program_source(device, cache, built)));
    };
    const bool by_length = !lengths.symbol.empty();
    std::vector<LengthPoint> points;
    LengthBuckets buckets;
    const auto set_planned = [&] {
      set_schedules(planned.plan, results);
      set_buckets(buckets, lengths.symbol, planned.plan);
    };
    const auto choose = [&] {
      const auto original_steps = timed_steps(original.plan, step_times(plain, bindings, settings.seed));
      const artifact::Plan fused = planned.plan;
      if (keep_faster_side(original_steps,
                           step_times(*run_plan(planned.plan, nullptr), bindings, settings.seed),
                           planned.plan, report.notes, *graph))
        set_planned();
      if (budget > 0 && total_memory(graph, planned.plan, bindings) > budget) {
        planned.plan = fused;
        report.notes.push_back("the memory budget has no room for that: they stay fused");
      }
      const bool in_place =
          settings.in_place == "on" || (settings.in_place == "auto" && spec.api != target::Api::kCuda);
      if (in_place && !by_length) {
        deployed(planned.plan, known, results);
        write_in_place(graph, bindings, planned.plan, results, report.notes);
      }
      return 0;
    };
    // Every deployed schedule through the full gate, then the whole model; and what goes into the release.
    std::vector<BuiltProgram> built;
    std::unique_ptr<exec::Executor> best;
    ModelCheck check;
    std::string checked_plan;  // digest
    const auto prove = [&](bool with_races) {
      const auto in_use = deployed(planned.plan, known, results);
      phases.run("verify", [&] { return confirm(context, in_use, report.notes), 0; });
      if (with_races && races)
        phases.run("check races",
                   [&] { return report.races = check_races(context, in_use, *races, report.notes), 0; });
      if (!buckets.empty())
        phases.run("verify by length", [&] {
          return confirm_buckets(context, *graph, lengths, bindings, points, buckets, report.notes), 0;
        });
      set_planned();
      if (checked_plan == planned.plan.digest()) return;
      checked_plan.clear();
      built.clear();
      best = phases.run("build", [&] { return run_plan(planned.plan, &built); });
      check = phases.run("verify model", [&] {
        return padded.graph
                   ? check_packed_model(*best, plain, padded, bindings_of_inputs, settings.seed, listener)
                   : check_model(*best, plain, bindings, settings.seed, listener,
                                 length_ends(lengths, bindings));
      });
      report.verified = check.verified;
      report.max_error = check.max_error;
      report.error_limit = check.error_limit;
      if (!check.verified)
        throw Error(Code::kWrongResult,
                    "the optimized model is not right, nothing was released: " + check.reason);
      checked_plan = planned.plan.digest();
    };

    const bool tunes = request.tune && !listener.stop();
    if (!tunes && !by_length) phases.run("choose", choose);
    // A release as soon as there can be one: what follows may be stopped at any time. What a race checker is
    // asked for is not released without it.
    if (!request.release_path.empty() && !races && !listener.stop()) try {
        prove(false);
        release_built(built);
      } catch (const Error& error) {
        if (!(tunes || by_length) || error.code() != Code::kWrongResult) throw;
        report.verified = false;
        report.notes.push_back(fmt::format("no release before tuning: {}", error.what()));
      }
    deadline_us += monotonic_us() - paused_us;
    if (tunes || by_length) {
      if (by_length) {
        points = length_points(*graph, planned, device->spec(), lengths, bindings);
        phases.run("tune",
                   [&] { return tune_lengths(context, planned.workloads, points, tunes, deadline_us), 0; });
        buckets = phases.run("choose by length", [&] {
          return choose_buckets(context, planned.workloads, points, lengths, report.notes);
        });
      } else {
        phases.run("tune", [&] { return tune(context, planned.workloads, deadline_us), 0; });
      }
      set_planned();
      if (budget > 0) keep_within(budget, graph, bindings, planned, results, report.notes);
      phases.run("choose", choose);
    }
    for (const auto& [hash, tuned] : results) {
      if (tuned.attempts.empty()) continue;
      const std::vector<std::string>& uses = planned.workloads.at(hash).uses;
      report.explored.push_back({uses.front(), tuned.schedule.str(), static_cast<int64_t>(uses.size()),
                                 tuned.by_default.time_us, tuned.best.time_us, tuned.attempts});
    }
    std::stable_sort(
        report.explored.begin(), report.explored.end(),
        [](const Explored& a, const Explored& b) { return a.attempts.size() > b.attempts.size(); });
    for (const std::string& note : guard.notes()) report.notes.push_back(note);
    for (const std::string& note : runner.place().notes()) report.notes.push_back(note);
    if (tunes || by_length) others.begin(sources_of(runner, planned.plan, known));
    prove(true);
    report.notes.insert(report.notes.end(), check.notes.begin(), check.notes.end());
    // Regions that were taken apart too: what was best for them is a hint for others like them.
    for (const auto& [hash, tuned] : results)
      if (tuned.best.time_us > 0)
        library::remember(*store, known.at(hash), std::filesystem::path(request.model_path).stem().string(),
                          context.environment, shape_key(known.at(hash)), family::apart(tuned.schedule),
                          tuned.best.time_us);
    report.memory_front = memory_points(graph, planned, results, device->spec(), bindings);
    phases.run("time model", [&] {
      const auto times = time_models(*device, plain, *best, bindings, settings.seed);
      // Before runs that are watched step by step, which hold on to more.
      const exec::MemoryUse memory = best->memory();
      report.peak_bytes = memory.peak();
      report.original_peak_bytes = plain.peak_bytes();
      report.arena_lower_bound = memory.arena_lower_bound;
      report.constant_bytes = memory.weights;
      report.held_weight_bytes = memory.held;
      report.original_us = times[0].median_us;
      report.original_spread_us = times[0].spread_us;
      report.best_us = times[1].median_us;
      report.best_spread_us = times[1].spread_us;
      report.speedup = report.original_us / report.best_us;
      report.throughput_per_s = 1e6 / report.best_us;
      if (!spec.is_cpu) {
        const LoadTimes loads = time_loads(*device, *best, bindings, settings.seed);
        report.best_burst_us = loads.burst.median_us;
        report.best_sustained_us = loads.sustained.median_us;
      }
      const auto original_steps = timed_steps(original.plan, step_times(plain, bindings, settings.seed));
      report_regions(original_steps, planned.plan, step_times(*best, bindings, settings.seed), known, results,
                     *graph, spec, report);
      return 0;
    });
    if (!lengths.symbol.empty())
      phases.run("time by length", [&] {
        report.length_symbol = lengths.symbol;
        report.lengths = time_lengths(*device, plain, *best, points, settings.seed);
        report.lengths.push_back({main_length(lengths), report.original_us, report.best_us});
        std::sort(report.lengths.begin(), report.lengths.end(),
                  [](const auto& a, const auto& b) { return a.length < b.length; });
        return 0;
      });
    release_built(built);
    for (const std::string& architecture : target.also)
      report.notes.push_back(architecture + ": its binaries were built, not run");
  } else {
    report.notes.push_back(device->spec().id + ": nothing was run, timed or verified");
    std::vector<BuiltProgram> built;
    exec::make_executable(device, graph, std::make_shared<artifact::Plan>(planned.plan),
                          program_source(device, cache, &built));
    release_built(built);
    for (const std::string& architecture : target.also)
      report.notes.push_back(architecture + ": its binaries were built, not run");
  }
  return report;
}

}  // namespace thrice::flow
