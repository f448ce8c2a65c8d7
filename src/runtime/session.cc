#include "runtime/session.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>

namespace thrice::runtime {

Session::Session(backend::DevicePtr device, std::shared_ptr<const release::Release> release,
                 const exec::ProgramSource& programs)
    : release_(std::move(release)),
      code_(exec::make_executable(std::move(device), release_->graph, release_->plan, programs)),
      executor_(std::make_unique<exec::Executor>(code_)) {}

std::vector<ir::Tensor> Session::run(const std::vector<ir::Tensor>& inputs, const exec::RunOptions& options) {
  return executor_->run_host(inputs, options);
}

std::vector<ir::Tensor> Session::run(const std::map<std::string, ir::Tensor>& inputs,
                                     const exec::RunOptions& options) {
  const ir::Graph& graph = *release_->graph;
  std::string names;
  for (const std::string& name : graph.input_names) names += (names.empty() ? "" : ", ") + name;
  std::vector<ir::Tensor> ordered;
  for (const std::string& name : graph.input_names) {
    const auto it = inputs.find(name);
    if (it == inputs.end())
      throw Error(Code::kInvalidArgument,
                  fmt::format("input '{}' is missing; the model takes: {}", name, names));
    ordered.push_back(it->second);
  }
  for (const auto& [name, tensor] : inputs)
    if (std::find(graph.input_names.begin(), graph.input_names.end(), name) == graph.input_names.end())
      throw Error(Code::kInvalidArgument,
                  fmt::format("the model has no input '{}'; it takes: {}", name, names));
  return run(ordered, options);
}

}  // namespace thrice::runtime
