// thrice bench: a release (or a model with rule-chosen schedules) timed beside its original operators.
#include <fmt/format.h>
#include <thrice/status.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/session_options.h"
#include "flow/build.h"
#include "flow/whole_model.h"
#include "plan/planner.h"
#include "report/table.h"
#include "transform/transform.h"

namespace thrice::cli {

namespace {

std::unique_ptr<exec::Executor> planned(const backend::DevicePtr& device,
                                        const std::shared_ptr<jit::KernelCache>& cache,
                                        const std::shared_ptr<const ir::Graph>& graph,
                                        const std::string& planner, const ir::Bindings& bindings,
                                        bool allow_slow) {
  plan::PlanOptions options;
  options.planner = planner;
  options.bindings = bindings;
  options.allow_slow = allow_slow;
  auto plan = std::make_shared<artifact::Plan>(plan::make_plan(*graph, device->spec(), options).plan);
  return std::make_unique<exec::Executor>(
      exec::make_executable(device, graph, plan, flow::program_source(device, cache, nullptr)));
}

int run(const Arguments& arguments) {
  const std::string path = *arguments.get("FILE");
  for (const std::string& against : arguments.all("--against"))
    if (against != "original")
      throw Error(Code::kUnsupported, fmt::format("--against '{}': only original is known", against));
  const flow::Settings settings = settings_from(arguments);
  const backend::DevicePtr device = backend::open_device(settings.device);
  const auto cache = std::make_shared<jit::KernelCache>(device, settings.cache_folder + "/kernels");
  std::vector<std::string> notes;
  std::shared_ptr<const ir::Graph> graph;
  std::shared_ptr<const release::Release> release;
  if (is_release(path)) {
    release = std::make_shared<const release::Release>(release::read_release(path));
    graph = release->graph;
  } else {
    auto imported = std::make_shared<ir::Graph>(frontend::import_model(path, import_options(arguments)));
    transform::run_transforms(*imported, {});
    graph = imported;
  }
  const ir::Bindings bindings = bindings_for(*graph, arguments, &notes);
  const auto original = planned(device, cache, graph, "original", bindings, true);
  std::unique_ptr<exec::Executor> best;
  if (release)
    best = std::make_unique<exec::Executor>(
        exec::make_executable(device, graph, release->plan, flow::program_source(device, release, cache)));
  else
    best = planned(device, cache, graph, settings.planner, bindings, true);
  const std::vector<measure::Timing> times =
      flow::time_models(*device, *original, *best, bindings, settings.seed);
  if (arguments.has("--json")) {
    fmt::print("{}\n", nlohmann::json{{"file", path},
                                      {"device", device->spec().name},
                                      {"original_us", times[0].median_us},
                                      {"original_spread_us", times[0].spread_us},
                                      {"best_us", times[1].median_us},
                                      {"best_spread_us", times[1].spread_us},
                                      {"samples", times[1].samples},
                                      {"speedup", times[0].median_us / times[1].median_us},
                                      {"notes", notes}}
                           .dump(2));
    return 0;
  }
  for (const std::string& note : notes) fmt::print("assumed {}\n", note);
  report::Table table({"on " + device->spec().name, "median", "spread", "a second"});
  table.add({"original, operator by operator", report::microseconds(times[0].median_us),
             report::microseconds(times[0].spread_us), fmt::format("{:.1f}", 1e6 / times[0].median_us)});
  table.add({release ? "release" : "model, rule-chosen schedules", report::microseconds(times[1].median_us),
             report::microseconds(times[1].spread_us), fmt::format("{:.1f}", 1e6 / times[1].median_us)});
  fmt::print("{}speed-up {:.2f}x\n", table.str({0}), times[0].median_us / times[1].median_us);
  return 0;
}

}  // namespace

Command bench_command() {
  std::vector<Option> options = model_options();
  for (const Option& o : settings_options()) options.push_back(o);
  options.push_back({"--against", "NAME", "original (default)", true});
  return {"bench",
          "time a release or a model beside its original operators",
          "thrice bench model.thrice --dims batch=1",
          {{"FILE", "release or ONNX file"}},
          options,
          run};
}

}  // namespace thrice::cli
