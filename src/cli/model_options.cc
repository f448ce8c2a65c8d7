#include "cli/model_options.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace thrice::cli {

namespace {

std::pair<std::string, std::string> split_pair(const std::string& text, const std::string& flag) {
  const size_t at = text.find('=');
  if (at == std::string::npos || at == 0)
    throw Error(Code::kInvalidArgument, fmt::format("{}: '{}' is not NAME=VALUE", flag, text));
  return {text.substr(0, at), text.substr(at + 1)};
}
std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');)
    if (!part.empty()) parts.push_back(part);
  return parts;
}
int64_t whole(const std::string& text, const std::string& flag) {
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (end == text.c_str() || *end || errno == ERANGE)
    throw Error(Code::kInvalidArgument, fmt::format("{}: '{}' is no whole number", flag, text));
  return value;
}

}  // namespace

std::vector<Option> model_options() {
  return {{"--dims", "NAME=N,...", "numbers for symbolic dimensions, e.g. batch=1,width=320", true},
          {"--shape", "INPUT=D,...",
           "overrides the shape of a model input; a word makes a symbol, e.g. x=1,3,48,width", true},
          {"--const", "INPUT=V,...",
           "fixes an integer input that decides the graph's structure, e.g. axes=0,2", true},
          {"--random-weights", "SEED", "fills the weights of a structure-only file (thrice strip)"},
          {"--allow-slow", "", "runs operators without a device kernel on the host, marked in every report"}};
}

frontend::ImportOptions import_options(const Arguments& arguments) {
  frontend::ImportOptions options;
  for (const std::string& text : arguments.all("--shape")) {
    const auto [name, list] = split_pair(text, "--shape");
    std::vector<ir::Dim> shape;
    for (const std::string& part : split_list(list)) {
      const bool is_number = part.find_first_not_of("0123456789") == std::string::npos;
      shape.push_back(is_number ? ir::Dim(whole(part, "--shape")) : ir::Dim::symbol(part));
    }
    options.input_shapes[name] = shape;
  }
  for (const std::string& text : arguments.all("--const")) {
    const auto [name, list] = split_pair(text, "--const");
    std::vector<int64_t> values;
    for (const std::string& part : split_list(list)) values.push_back(whole(part, "--const"));
    options.known_inputs[name] = ir::Tensor::ints(values);
  }
  options.allow_slow = arguments.has("--allow-slow");
  if (const auto seed = arguments.get("--random-weights")) {
    options.random_weights = true;
    options.weight_seed = static_cast<uint64_t>(whole(*seed, "--random-weights"));
  }
  return options;
}

ir::Bindings bindings_for(const ir::Graph& graph, const Arguments& arguments,
                          std::vector<std::string>* assumed) {
  ir::Bindings bindings;
  for (const std::string& list : arguments.all("--dims"))
    for (const std::string& text : split_list(list)) {
      const auto [name, value] = split_pair(text, "--dims");
      bindings[name] = whole(value, "--dims");
      if (bindings[name] < 0)
        throw Error(Code::kInvalidArgument, fmt::format("--dims: '{}' must not be negative", text));
    }
  std::set<std::string> symbols;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const ir::Shape& shape = graph.value(graph.inputs[i]).type.shape;
    for (size_t axis = 0; axis < shape.size(); ++axis)
      for (const std::string& symbol : shape[axis].symbols()) {
        symbols.insert(symbol);
        if (bindings.count(symbol)) continue;
        const bool image = shape.size() == 4;
        const int64_t guess = axis == 0 ? 1 : image ? 320 : 128;
        bindings[symbol] = guess;
        if (assumed)
          assumed->push_back(fmt::format("{} = {} (axis {} of input '{}'; set it with --dims {}=N)", symbol,
                                         guess, axis, graph.input_names[i], symbol));
      }
  }
  for (const auto& [name, value] : bindings)
    if (!symbols.count(name)) {
      std::string known;
      for (const std::string& s : symbols) known += (known.empty() ? "" : ", ") + s;
      throw Error(Code::kInvalidArgument,
                  fmt::format("--dims: the model has no symbolic dimension '{}'; it has: {}", name,
                              known.empty() ? "none" : known));
    }
  return bindings;
}

void refuse_overwriting(const std::string& model, const std::string& output, const std::string& flag) {
  std::error_code unknown;  // a file that is not there is no file to lose
  if (std::filesystem::equivalent(model, output, unknown))
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: '{}' is the model itself; name another file", flag, output));
}

}  // namespace thrice::cli
