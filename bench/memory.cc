// Device memory that plans of exported networks take, with rule-chosen schedules, beside the least that any
// arena could be; no device is needed.
//
//   ninja -C build/release bench_memory && build/release/bench_memory build/release/data OUTPUT.json
//
// Networks: tests/data/README.md. Two devices are planned for: the null device (whose rules are those of a
// CPU) and a card of sm_90a. Symbols named batch are 1, others 128.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "backend/backend.h"
#include "base/clock.h"
#include "base/file.h"
#include "exec/in_place.h"
#include "exec/predict.h"
#include "frontend/import.h"
#include "plan/planner.h"
#include "report/table.h"
#include "transform/transform.h"

using namespace thrice;
namespace fs = std::filesystem;

namespace {

std::vector<fs::path> networks(const fs::path& data) {
  std::vector<fs::path> files;
  for (const char* archive : {"networks", "zoo"})
    for (const auto& entry : fs::directory_iterator(data / archive)) {
      if (entry.path().extension() == ".onnx") files.push_back(entry.path());
      if (fs::exists(entry.path() / "model.onnx")) files.push_back(entry.path() / "model.onnx");
    }
  std::sort(files.begin(), files.end());
  return files;
}

ir::Bindings extents(const ir::Graph& graph) {
  ir::Bindings bindings;
  for (const ir::ValueId input : graph.inputs)
    for (const ir::Dim& dim : graph.value(input).type.shape)
      for (const std::string& symbol : dim.symbols()) bindings[symbol] = symbol == "batch" ? 1 : 128;
  return bindings;
}

// As rules and binding see an H200.
target::DeviceSpec hopper() {
  target::DeviceSpec card;
  card.api = target::Api::kCuda;
  card.id = card.name = "sm_90a";
  card.architecture = "sm_90a";
  card.compute_units = 132;
  card.max_threads_per_block = 1024;
  card.max_shared_bytes = 48 << 10;
  card.optin_shared_bytes = 227 << 10;
  card.has_f64 = card.has_f16_arithmetic = card.has_int64_atomics = true;
  card.max_alloc_bytes = card.memory_bytes = int64_t{141} << 30;
  return card;
}

nlohmann::json measured(const std::shared_ptr<const ir::Graph>& graph, const target::DeviceSpec& device,
                        const char* planner) {
  plan::PlanOptions options;
  options.planner = planner;
  options.bindings = extents(*graph);
  plan::PlanResult planned = plan::make_plan(*graph, device, options);
  const auto plan = std::make_shared<artifact::Plan>(std::move(planned.plan));
  const exec::PredictedMemory memory =
      exec::predict_memory(*exec::resolve_plan(graph, plan), options.bindings);
  nlohmann::json j = {{"arena_bytes", memory.use.arena},
                      {"arena_lower_bound_bytes", memory.use.arena_lower_bound},
                      {"pool_bytes", memory.use.pool},
                      {"weight_bytes", memory.use.weights},
                      {"held_weight_bytes", memory.use.held},
                      {"peak_bytes", memory.use.peak()},
                      {"lower_bound_bytes", memory.lower_bound()},
                      {"fullest", memory.fullest}};
  // With results over operands where rules' schedules allow it (docs/decisions/0017).
  const auto schedules = exec::in_place_schedules(graph, *plan, options.bindings);
  auto shared = std::make_shared<artifact::Plan>(*plan);
  exec::set_schedules(*shared, schedules);
  const exec::PredictedMemory less =
      exec::predict_memory(*exec::resolve_plan(graph, shared), options.bindings);
  j["in_place"] = {{"regions", schedules.size()},
                   {"arena_bytes", less.use.arena},
                   {"arena_lower_bound_bytes", less.use.arena_lower_bound},
                   {"peak_bytes", less.use.peak()}};
  if (!memory.missing.empty()) j["missing"] = memory.missing;
  if (!planned.orders.empty()) j["orders"] = planned.orders;
  return j;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: bench_memory DATA_FOLDER OUTPUT.json\n");
    return 2;
  }
  nlohmann::json all = nlohmann::json::array();
  report::Table table(
      {"network", "device", "peak", "bound", "ratio", "arena/bound", "operators apart", "weights held"});
  double sum = 0, worst = 1;
  int count = 0, failed = 0;
  const target::DeviceSpec devices[] = {backend::open_device("null:0")->spec(), hopper()};
  for (const fs::path& file : networks(argv[1])) {
    const std::string name = file.stem() == "model" ? file.parent_path().filename() : file.stem();
    try {
      frontend::ImportOptions import;
      import.random_weights = true;
      auto graph = std::make_shared<ir::Graph>(frontend::import_model(file.string(), import));
      transform::run_transforms(*graph, {});
      nlohmann::json row = {{"network", name}, {"extents", extents(*graph)}};
      for (const target::DeviceSpec& device : devices) {
        nlohmann::json fused = measured(graph, device, "greedy");
        fused["operators_apart"] = measured(graph, device, "original");
        const double arena = fused["arena_bytes"], bound = fused["arena_lower_bound_bytes"],
                     ratio = bound > 0 ? arena / bound : 1, peak = fused["peak_bytes"],
                     apart = fused["operators_apart"]["peak_bytes"], weights = fused["weight_bytes"],
                     least = fused["lower_bound_bytes"];
        sum += std::log(ratio);
        worst = std::max(worst, ratio);
        ++count;
        table.add(
            {name, device.id, report::bytes(peak), report::bytes(least),
             fmt::format("{:.3f}", least > 0 ? peak / least : 1), fmt::format("{:.3f}", ratio),
             report::bytes(apart),
             weights > 0 ? fmt::format("{:.3f}", fused["held_weight_bytes"].get<double>() / weights) : "-"});
        row[device.api == target::Api::kCuda ? "sm_90a" : "null"] = std::move(fused);
      }
      all.push_back(std::move(row));
    } catch (const Error& error) {
      ++failed;
      fmt::print(stderr, "{}: {}\n", name, error.what());
    }
  }
  const double mean = count > 0 ? std::exp(sum / count) : 1;
  write_file_atomic(argv[2], nlohmann::json({{"date", fmt::format("{:%Y-%m-%d}", fmt::gmtime(unix_time()))},
                                             {"command", "bench_memory build/release/data OUTPUT.json"},
                                             {"extents", "batch 1, other symbols 128"},
                                             {"arena_over_bound_geomean", mean},
                                             {"arena_over_bound_worst", worst},
                                             {"networks", all}})
                                     .dump(1) +
                                 "\n");
  fmt::print("{}\narena over its lower bound: geometric mean {:.4f}, worst {:.4f}; {} networks failed\n",
             table.str({0, 1}), mean, worst, failed);
  return failed > 0;
}
