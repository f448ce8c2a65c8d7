#include "cli/session_options.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <fstream>

#include "base/log.h"
#include "cli/model_options.h"
#include "flow/build.h"
#include "frontend/npy.h"
#include "ir/inputs.h"

namespace thrice::cli {

std::vector<Option> settings_options() {
  return {{"--config", "FILE", "settings in YAML (docs/settings.md)"},
          {"--target", "ID",
           "cuda:0, opencl:0, null:0 (default: the best found; see thrice devices); optimize: "
           "cuda:sm_80,sm_90a too"},
          {"--device", "ID", "the same as --target"},
          {"--cache", "FOLDER", "kernel cache (default ~/.cache/thrice)"},
          {"--store", "FILE", "tuning store (default: store.sqlite in the cache folder)"}};
}

flow::Settings settings_from(const Arguments& arguments) {
  flow::Settings settings;
  if (const auto file = arguments.get("--config")) flow::read_settings_file(*file, settings);
  if (const auto folder = arguments.get("--cache")) settings.cache_folder = *folder;
  flow::read_environment(settings);
  // Flags win over the environment.
  if (const auto folder = arguments.get("--cache")) {
    settings.cache_folder = *folder;
    settings.store_path = *folder + "/store.sqlite";
  }
  if (const auto path = arguments.get("--store")) settings.store_path = *path;
  const auto target = arguments.get("--target"), device = arguments.get("--device");
  if (target && device && *target != *device)
    throw Error(Code::kInvalidArgument,
                fmt::format("--target '{}' and --device '{}' are two names of one choice: give one", *target,
                            *device));
  if (target || device) settings.device = target ? *target : *device;
  if (const auto level = arguments.get("--log")) settings.log_level = *level;
  set_log_level(parse_log_level(settings.log_level));
  return settings;
}

bool is_release(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char magic[6] = {};
  file.read(magic, sizeof magic);
  return file && std::string(magic, sizeof magic) == "THRICE";
}

std::unique_ptr<runtime::Session> open_session(const std::string& path, const flow::Settings& settings) {
  const backend::DevicePtr device = backend::open_device(settings.device);
  const auto release = std::make_shared<const release::Release>(release::read_release(path));
  const auto cache = device->compiler()
                         ? std::make_shared<jit::KernelCache>(device, settings.cache_folder + "/kernels")
                         : nullptr;
  return std::make_unique<runtime::Session>(device, release, flow::program_source(device, release, cache));
}

std::vector<ir::Tensor> inputs_from(const ir::Graph& graph, const Arguments& arguments,
                                    std::vector<std::string>* notes) {
  std::vector<ir::Tensor> inputs(graph.inputs.size());
  std::vector<bool> given(graph.inputs.size(), false);
  size_t next = 0;
  for (const std::string& text : arguments.all("--input")) {
    const size_t at = text.find('=');
    std::string file = text;
    size_t i = next;
    if (at != std::string::npos) {
      std::string known;
      for (const std::string& name : graph.input_names) known += (known.empty() ? "" : ", ") + name;
      const auto it = std::find(graph.input_names.begin(), graph.input_names.end(), text.substr(0, at));
      if (it == graph.input_names.end())
        throw Error(Code::kInvalidArgument, fmt::format("--input: the model has no input '{}'; it takes: {}",
                                                        text.substr(0, at), known));
      i = static_cast<size_t>(it - graph.input_names.begin());
      file = text.substr(at + 1);
    }
    if (i >= inputs.size())
      throw Error(Code::kInvalidArgument,
                  fmt::format("--input: the model has only {} inputs", inputs.size()));
    inputs[i] = frontend::read_npy(file);
    given[i] = true;
    next = i + 1;
  }
  if (std::find(given.begin(), given.end(), false) == given.end()) return inputs;
  const ir::Bindings bindings = bindings_for(graph, arguments, notes);
  const std::vector<ir::Tensor> random = ir::make_inputs(
      graph, bindings, ir::InputKind::kUniform, static_cast<uint64_t>(arguments.integer("--seed", 1)));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (given[i]) continue;
    inputs[i] = random[i];
    if (notes)
      notes->push_back(fmt::format("input '{}' is random ({}): give one with --input {}=FILE.npy",
                                   graph.input_names[i], ir::shape_str(ir::to_shape(random[i].shape())),
                                   graph.input_names[i]));
  }
  return inputs;
}

}  // namespace thrice::cli
