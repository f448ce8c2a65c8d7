// How equal two runs of `thrice optimize --json` from cold chose. Where they chose different schedules for a
// workload, the two are timed here against each other, alternating, in the state of the caches by which
// schedules were chosen: times of two runs differ by more than choices may.
//   bench_choices MODEL A.json B.json [--device cuda:0] [--shape INPUT=D,...] [--dims NAME=N,...] [--out
//   FILE]
// Weights of a stripped model are random. bench/same_choices.py compares without a device.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/clock.h"
#include "base/file.h"
#include "flow/tuning.h"
#include "frontend/import.h"
#include "transform/transform.h"

namespace {

using namespace thrice;  // NOLINT: a program of one file
using nlohmann::json;
using Regions = std::map<std::string, json>;  // by workload

// "x=batch,3,48,width" -> x and its fields.
std::pair<std::string, std::vector<std::string>> named_list(const std::string& text) {
  std::vector<std::string> fields;
  std::istringstream list(text.substr(text.find('=') + 1));
  for (std::string field; std::getline(list, field, ',');) fields.push_back(field);
  return {text.substr(0, text.find('=')), fields};
}

Regions regions_of(const std::string& path) {
  Regions regions;
  const json report = json::parse(read_text(path));
  for (const json& region : report.at("regions")) regions[region.at("workload")] = region;
  return regions;
}

class Known {
 public:
  Known(const std::string& model, const std::string& device, const frontend::ImportOptions& import,
        const ir::Bindings& bindings)
      : device_(backend::open_device(device)), graph_(frontend::import_model(model, import)) {
    transform::run_transforms(graph_, {});
    plan::PlanOptions options;
    options.bindings = bindings;
    options.planner = "original";
    workloads_ = plan::make_plan(graph_, device_->spec(), options).workloads;
    options.planner = flow::Settings().planner;
    double model_bytes = 0;
    for (auto& [hash, work] : plan::make_plan(graph_, device_->spec(), options).workloads) {
      model_bytes += flow::operand_bytes(work) * static_cast<double>(work.uses.size());
      workloads_.insert_or_assign(hash, work);
    }
    timing_ = flow::timing_policy({}, device_->spec(), model_bytes);
    runner_ =
        std::make_unique<measure::TrialRunner>(device_, std::make_shared<jit::KernelCache>(device_, ""));
  }

  std::array<double, 2> times(const std::string& workload, const std::string& a, const std::string& b) {
    const plan::PlannedWorkload& planned = workloads_.at(workload);
    measure::Oracle oracle(planned.workload, planned.facts);
    measure::TimingOptions options;
    options.cold = timing_.cold;
    options.settle_us = timing_.settle_us;
    options.rest_us = timing_.rest_us;
    options.min_samples = 25;
    const auto t =
        runner_->compare(planned.workload, *planned.family,
                         {artifact::Schedule::parse(a), artifact::Schedule::parse(b)}, oracle, options);
    return {t[0].median_us, t[1].median_us};
  }
  const target::DeviceSpec& spec() const { return device_->spec(); }
  bool cold() const { return timing_.cold; }

 private:
  backend::DevicePtr device_;
  ir::Graph graph_;
  std::map<std::string, plan::PlannedWorkload> workloads_;
  flow::TimingPolicy timing_;
  std::unique_ptr<measure::TrialRunner> runner_;
};

json compare(Known& known, const Regions& a, const Regions& b) {
  int64_t both = 0, equal = 0, near = 0;
  json rows = json::array();
  for (const auto& [workload, x] : a) {
    const auto it = b.find(workload);
    if (it == b.end()) continue;
    const json& y = it->second;
    ++both;
    json row = {{"name", x.at("name")},
                {"uses", x.at("uses")},
                {"first", x.at("schedule")},
                {"second", y.at("schedule")},
                {"trials", {x.at("trials"), y.at("trials")}}};
    if (x.at("schedule") == y.at("schedule")) {
      ++equal;
      ++near;
    } else {
      const auto us = known.times(workload, x.at("schedule"), y.at("schedule"));
      const double apart = std::max(us[0], us[1]) / std::min(us[0], us[1]) - 1;
      near += apart <= 0.01;
      row["us"] = us;
      row["apart"] = apart;
    }
    rows.push_back(row);
  }
  const auto all = static_cast<int64_t>(a.size() + b.size());
  return {{"workloads", both},
          {"equal", equal},
          {"equal_or_within_1_percent", near},
          {"share", both ? static_cast<double>(near) / static_cast<double>(both) : 0},
          {"only_in_one", all - 2 * both},
          {"caches", known.cold() ? "cold" : "warm"},
          {"regions", rows}};
}

}  // namespace

int main(int argc, char** argv) {
  ::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);
  std::string device, out;
  frontend::ImportOptions import;
  import.random_weights = true;
  ir::Bindings bindings;
  try {
    if (argc < 4)
      throw std::runtime_error("bench_choices MODEL A.json B.json: see the head of bench/choices.cc");
    for (int i = 4; i + 1 < argc; i += 2) {
      const std::string flag = argv[i], value = argv[i + 1];
      if (flag == "--device") {
        device = value;
      } else if (flag == "--out") {
        out = value;
      } else if (flag == "--shape") {
        const auto [name, fields] = named_list(value);
        for (const std::string& f : fields)
          import.input_shapes[name].push_back(std::isdigit(f[0]) ? ir::Dim(std::stoll(f))
                                                                 : ir::Dim::symbol(f));
      } else if (flag == "--dims") {
        for (const std::string& pair : named_list("=" + value).second)
          bindings[pair.substr(0, pair.find('='))] = std::stoll(pair.substr(pair.find('=') + 1));
      } else {
        throw std::runtime_error("no flag '" + flag + "'");
      }
    }
    Known known(argv[1], device, import, bindings);
    json result = compare(known, regions_of(argv[2]), regions_of(argv[3]));
    result["device"] = known.spec().name;
    result["driver"] = known.spec().driver;
    result["unix_time"] = unix_time();
    if (!out.empty()) std::ofstream(out) << result.dump(1) << "\n";
    std::cout << fmt::format("{} of {} equal or within 1% ({} equal)\n",
                             result["equal_or_within_1_percent"].get<int64_t>(),
                             result["workloads"].get<int64_t>(), result["equal"].get<int64_t>());
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
