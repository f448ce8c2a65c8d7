#include "flow/agent_train.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>

#include "base/file.h"
#include "flow/search.h"
#include "store/store.h"

namespace thrice::flow {

using tune::Context;
using tune::context_text;
using tune::parse_context;
using tune::Task;

Task task_of(const tune::RecordedSpace& space) {
  Task task;
  task.group = space.family.empty() ? space.group : space.family;
  for (const auto& [name, value] : space.device) task.context[name] = std::log2(1 + std::abs(value));
  for (size_t i = 0; i < space.times.size(); ++i) {
    const bool ok = !std::isnan(space.times[i]);
    task.samples.push_back(
        {space.space.schedule(space.space.listed()[i]), ok, ok ? std::log(space.times[i]) : 0});
  }
  return task;
}

std::shared_ptr<const tune::Prior> prior_without(const std::vector<tune::RecordedSpace>& spaces,
                                                 const tune::RecordedSpace& space) {
  std::vector<Task> tasks;
  for (const tune::RecordedSpace& other : spaces)
    if (&other != &space && other.group == space.group) tasks.push_back(task_of(other));
  if (tasks.empty()) return nullptr;
  tune::GroupNet::TrainOptions options;
  options.steps = 16000;
  const tune::Knowledge knowledge = tune::train_knowledge(tasks, options);
  if (knowledge.nets.empty()) return nullptr;  // too few samples
  return std::make_shared<tune::NetPrior>(knowledge.nets.at(0), task_of(space).context);
}

std::vector<Task> tasks_of_store(const store::Store& store) {
  std::map<std::string, Task> tasks;
  for (const artifact::TuningRecord& r : store.all()) {
    const std::string facts = store.workload_facts(r.workload, r.shape, r.environment);
    if (facts.empty()) continue;
    Task& task = tasks[r.workload + "\n" + r.shape + "\n" + r.environment];
    if (task.samples.empty()) {
      task.group = r.schedule.family;
      task.context = parse_context(facts);
    }
    const tune::Told told = told_of(r.measurement, Reward());
    task.samples.push_back({r.schedule, told.ok, told.cost});
  }
  std::vector<Task> result;
  for (auto& [key, task] : tasks) result.push_back(std::move(task));
  return result;
}

std::vector<Task> read_tasks(const std::string& path) {
  if (!std::filesystem::exists(path)) throw Error(Code::kNotFound, fmt::format("there is no '{}'", path));
  if (!std::filesystem::is_directory(path)) {
    const std::string text = tune::read_plain_or_gz(path);
    if (text.rfind("SQLite format 3", 0) == 0) return tasks_of_store(store::Store(path));
    if (text.rfind("thrice samples", 0) == 0) return parse_tasks(text, path);
  }
  std::vector<Task> tasks;
  for (const tune::RecordedSpace& space : tune::read_spaces(path)) tasks.push_back(task_of(space));
  return tasks;
}

std::string tasks_text(const std::vector<Task>& tasks) {
  std::string text = fmt::format("thrice samples\nfeatures {}\n", tune::Knowledge::kFeatureVersion);
  for (const Task& task : tasks) {
    text += fmt::format("task {} | {}\n", task.group, context_text(task.context));
    for (const tune::Sample& s : task.samples)
      text += s.ok ? fmt::format("{:.5f} {}\n", s.cost, s.schedule.str())
                   : fmt::format("x {}\n", s.schedule.str());
  }
  return text;
}

std::vector<Task> parse_tasks(const std::string& text, const std::string& name) {
  std::vector<Task> tasks;
  std::istringstream stream(text);
  std::string line;
  int number = 0;
  while (std::getline(stream, line)) {
    ++number;
    const auto corrupt = [&](const char* what) {
      throw Error(Code::kCorrupt, fmt::format("{}, line {}: {}", name, number, what));
    };
    if (number == 1) continue;
    if (number == 2) {
      if (line != fmt::format("features {}", tune::Knowledge::kFeatureVersion))
        throw Error(Code::kUnsupported, fmt::format("'{}' has other features ('{}')", name, line));
      continue;
    }
    if (line.rfind("task ", 0) == 0) {
      const size_t bar = line.find(" | ");
      if (bar == std::string::npos) corrupt("'task GROUP | FACTS' expected");
      tasks.push_back({line.substr(5, bar - 5), parse_context(line.substr(bar + 3)), {}});
      continue;
    }
    const size_t space = line.find(' ');
    if (tasks.empty() || space == std::string::npos) corrupt("'COST SCHEDULE' expected");
    tune::Sample sample;
    sample.ok = line[0] != 'x';
    sample.cost = sample.ok ? std::strtod(line.c_str(), nullptr) : 0;
    sample.schedule = artifact::Schedule::parse(line.substr(space + 1));
    tasks.back().samples.push_back(std::move(sample));
  }
  return tasks;
}

Context context_of(const plan::PlannedWorkload& planned, const target::DeviceSpec& device) {
  Context context;
  const auto put = [&](const char* name, double value) {
    context[name] = std::log2(1 + std::max(0.0, value));
  };
  const family::Work work = family::count_work(planned.workload, planned.facts);
  put("flops", work.flops);
  put("bytes", work.bytes);
  put("intensity", work.flops / std::max(1.0, work.bytes));
  const ir::Graph& graph = planned.workload.graph;
  const std::vector<ir::Fact> facts = ir::bind(graph, planned.facts);
  double elements = 1, last = 1, largest = 1;
  if (!graph.outputs.empty())
    for (const ir::Dim& extent : facts[static_cast<size_t>(graph.outputs[0])].type.shape) {
      last = static_cast<double>(extent.value());
      elements *= last;
      largest = std::max(largest, last);
    }
  put("out", elements);
  put("out_last", last);
  put("out_largest", largest);
  put("flops_an_output", work.flops / std::max(1.0, elements));
  put("nodes", static_cast<double>(graph.nodes.size()));
  put("compute_units", device.compute_units);
  put("l2", static_cast<double>(device.l2_bytes));
  put("bandwidth", device.bandwidth_gbs);
  put("f32_gflops", device.f32_gflops);
  put("warp", device.warp_size);
  put("cpu", device.is_cpu ? 1 : 0);
  return context;
}

tune::Knowledge knowledge_of(const Settings& settings) {
  if (settings.agent_file.empty()) return tune::Knowledge::shipped();
  return tune::Knowledge::parse(read_text(settings.agent_file), settings.agent_file);
}

}  // namespace thrice::flow
