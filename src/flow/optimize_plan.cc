// From a model's file to plans with rule-chosen schedules.
#include <fmt/format.h>
#include <thrice/status.h>

#include <set>

#include "flow/environment.h"
#include "flow/memory_budget.h"
#include "flow/optimize_run.h"
#include "ir/inputs.h"
#include "transform/transform.h"
#include "tune/agent.h"
#include "worker/runner.h"

namespace thrice::flow {

namespace {

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

OptimizeRun::OptimizeRun(const OptimizeRequest& request)
    : request_(request),
      settings_(request.settings),
      listener_(request.listener),
      begun_us_(monotonic_us()),
      phases_(report_.phases, request.listener),
      target_(open_target(request.settings.device)),
      device_(target_.device),
      spec_(device_->spec()),
      others_(request.worker, with_ptx(spec_, target_.also), request.settings.cache_folder + "/kernels") {
  tune::require_agent(settings_.agent);  // now, not after minutes of building
  report_.model = request.model_path;
  report_.device = spec_.name;
  report_.target = spec_.id;
  report_.planner = settings_.planner;
}

void OptimizeRun::stop_if_cancelled() const {
  if (listener_.stop()) throw Error(Code::kCancelled, "stopped before there was anything to keep");
}

void OptimizeRun::import_model() {
  graph_ = std::make_shared<ir::Graph>(
      phases_.run("import", [&] { return frontend::import_model(request_.model_path, request_.import); }));
  imported_us_ = monotonic_us();
  phases_.run("transform", [&] { return transform::run_transforms(*graph_, {}); });
  stop_if_cancelled();
}

void OptimizeRun::bind_extents() {
  if (request_.bindings) bindings_ = request_.bindings(*graph_);
  if (!settings_.lengths.empty()) {
    if (settings_.memory_budget_bytes > 0)
      throw Error(Code::kInvalidArgument,
                  "--lengths and --memory-budget exclude each other: a budget is kept "
                  "at one length; give the longest as --dims");
    if (request_.packed_mask)
      throw Error(Code::kInvalidArgument,
                  "--lengths and --packed exclude each other: without padding a "
                  "region's extents follow the tokens of a batch");
    std::set<std::string> symbols;
    for (const auto& [symbol, value] : bindings_) symbols.insert(symbol);
    lengths_ = parse_lengths(settings_.lengths, symbols);
    bindings_[lengths_.symbol] = main_length(lengths_);
  }
  bindings_of_inputs_ = bindings_;
  report_.timed_at = bindings_text(bindings_);
}

void OptimizeRun::leave_out_padding() {
  if (!request_.packed_mask) return;
  phases_.run("pack", [&] {
    padded_.graph = std::make_shared<const ir::Graph>(*graph_);
    padded_.packing = transform::pack_tokens(*graph_, *request_.packed_mask);
    const int64_t rows = drawn_rows(*graph_, padded_.packing, bindings_, settings_.seed);
    bindings_[padded_.packing.rows] = rows;
    report_.timed_at += fmt::format("{}tokens={}", report_.timed_at.empty() ? "" : " ", rows);
    report_.notes.push_back(fmt::format(
        "packed: padding of the mask '{}' is left out of all work; tuned and timed with {} tokens",
        padded_.packing.mask, rows));
  });
}

void OptimizeRun::open_store() {
  if (store_) return;
  std::string notice;
  store_ = std::make_unique<store::Store>(settings_.store_path, &notice);
  if (!notice.empty()) report_.notes.push_back(notice);
  environment_ = store_->put_environment(environment_json(*device_));
}

// Counts as the begin of the budget: nothing before it is tuning.
void OptimizeRun::probe() {
  if (began_us_ >= 0) return;
  began_us_ = monotonic_us();
  phases_.run("probe", [&] {
    try {
      spec_ = runner_->probe();
    } catch (const Error& error) {  // shares of light are then not shown, and nothing is too fast
      report_.notes.push_back(fmt::format("the device's peaks are not known: {}", error.what()));
    }
  });
}

void OptimizeRun::plan() {
  cache_ = std::make_shared<jit::KernelCache>(device_, settings_.cache_folder + "/kernels");
  runner_.emplace(device_, trial_place(request_.worker, device_, cache_, settings_));
  plan::PlanOptions options;
  options.allow_slow = request_.import.allow_slow;
  options.bindings = bindings_;
  const auto make = [&] { return plan::make_plan(*graph_, device_->spec(), options); };
  options.planner = "original";
  original_ = phases_.run("plan", make);
  options.planner = settings_.planner;
  if (settings_.planner == "dp" && target_.runs) {  // prices want records and peaks
    open_store();
    probe();
    options.costs = &costs_.emplace(*store_, environment_, spec_);
  }
  planned_ = phases_.run("plan", make);
  report_.fusion = planned_.fusion;
}

void OptimizeRun::fit_memory_budget() {
  if (const int64_t budget = settings_.memory_budget_bytes; budget > 0)
    phases_.run("plan", [&] {
      const auto changed =
          fit_memory(graph_, planned_.plan, planned_.workloads,
                     frugal_schedules(planned_.workloads, device_->spec()), bindings_, budget, report_.notes);
      for (const auto& [hash, schedule] : changed) planned_.workloads.at(hash).schedule = schedule;
    });
  report_.notes.insert(report_.notes.end(), planned_.orders.begin(), planned_.orders.end());
  for (const std::string& step : planned_.slow_steps)
    report_.notes.push_back("runs on the host (--allow-slow): " + step);
  stop_if_cancelled();
}

}  // namespace thrice::flow
