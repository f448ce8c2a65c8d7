#include "frontend/import.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <filesystem>

#include "base/log.h"
#include "frontend/onnx/decode.h"
#include "frontend/onnx/extent_text.h"
#include "frontend/onnx/external_data.h"
#include "frontend/onnx/graph_builder.h"
#include "frontend/onnx/import_state.h"
#include "frontend/onnx/node_import.h"
#include "frontend/onnx/random_weights.h"
#include "ir/infer.h"

namespace thrice::frontend {
namespace {

using ir::ValueId;
using onnx::GraphBuilder;
using onnx::ImportState;
using onnx::Model;
using onnx::ModelGraph;
using onnx::ModelValueInfo;

constexpr int64_t kNewestOpset =
    24;  // operators of newer sets are imported by their last known form, with a warning

// Symbols fixed by the user, directly or through a number given for an extent that the model names.
std::map<std::string, int64_t> fixed_symbols(const ModelGraph& graph, const ImportOptions& options) {
  std::map<std::string, int64_t> fixed = options.symbols;
  for (const auto& input : graph.inputs) {
    const auto given = options.input_shapes.find(input.name);
    if (given == options.input_shapes.end()) continue;
    for (size_t axis = 0; axis < std::min(given->second.size(), input.shape.size()); ++axis) {
      const auto& extent = input.shape[axis];
      if (extent.symbol.empty() || !given->second[axis].is_const()) continue;
      const int64_t number = given->second[axis].value();
      const auto [at, added] = fixed.emplace(extent.symbol, number);
      if (!added && at->second != number) {
        throw Error(Code::kInvalidArgument,
                    fmt::format("the symbol '{}' is given as {} and as {} (input '{}', axis {})",
                                extent.symbol, at->second, number, input.name, axis));
      }
    }
  }
  for (const auto& [symbol, number] : fixed) {
    if (number < 0) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("the symbol '{}' is given as {}; extents are not negative", symbol, number));
    }
  }
  return fixed;
}

// "past + 1" is an expression where inputs name "past" alone, for a run must be able to bind it; otherwise it
// is a symbol of that name.
ir::Dim named_extent(const std::string& text, const ModelGraph& graph, const ImportOptions& options,
                     const std::map<std::string, int64_t>& fixed) {
  const std::optional<ir::Dim> parsed = onnx::parse_extent(text);
  if (!parsed || parsed->is_const()) return ir::Dim::symbol(text);
  const auto stands_alone = [&](const std::string& symbol) {
    return fixed.count(symbol) > 0 ||
           std::any_of(graph.inputs.begin(), graph.inputs.end(), [&](const ModelValueInfo& input) {
             if (options.known_inputs.count(input.name) > 0 || options.input_shapes.count(input.name) > 0)
               return false;
             return std::any_of(input.shape.begin(), input.shape.end(), [&](const auto& extent) {
               return !extent.is_number && extent.symbol == symbol;
             });
           });
  };
  for (const std::string& symbol : parsed->symbols())
    if (!stands_alone(symbol)) return ir::Dim::symbol(text);
  return parsed->substitute(fixed);
}

ir::Shape input_shape(GraphBuilder& builder, const ModelGraph& graph, const ModelValueInfo& input,
                      const ImportOptions& options, const std::map<std::string, int64_t>& fixed) {
  const auto given = options.input_shapes.find(input.name);
  if (given != options.input_shapes.end()) {
    if (input.ranked && given->second.size() != input.shape.size()) {
      throw Error(
          Code::kInvalidArgument,
          fmt::format("input '{}' has rank {} in the model, but the given shape {} has {}", input.name,
                      input.shape.size(), ir::shape_str(given->second), given->second.size()));
    }
    ir::Shape shape;
    for (const auto& extent : given->second) shape.push_back(extent.substitute(fixed));
    return shape;
  }
  if (!input.ranked) {
    throw Error(
        Code::kUnsupported,
        fmt::format("input '{}' has no declared rank; give its shape: --shape \"{}=N,3,224,224\" (names are "
                    "allowed for extents that vary)",
                    input.name, input.name));
  }
  ir::Shape shape;
  for (size_t axis = 0; axis < input.shape.size(); ++axis) {
    const auto& extent = input.shape[axis];
    if (extent.is_number) {
      shape.push_back(extent.number);
    } else if (extent.symbol.empty()) {
      shape.push_back(builder.fresh_symbol(fmt::format("{}.{}", input.name, axis)));
    } else if (const auto number = fixed.find(extent.symbol); number != fixed.end()) {
      shape.push_back(number->second);
    } else {
      shape.push_back(named_extent(extent.symbol, graph, options, fixed));
    }
  }
  return shape;
}

void refuse_if_no_tensor(const ModelValueInfo& info, const char* role) {
  if (!info.unsupported.empty()) {
    throw Error(Code::kUnsupported,
                fmt::format("{} '{}' is {}; thrice runs models whose inputs and outputs are tensors", role,
                            info.name, info.unsupported));
  }
}

void add_input(GraphBuilder& builder, const ModelGraph& graph, const ModelValueInfo& input,
               const ImportOptions& options, const std::map<std::string, int64_t>& fixed) {
  refuse_if_no_tensor(input, "input");
  if (!input.typed) {
    throw Error(Code::kInvalidModel, fmt::format("input '{}' has no element type", input.name));
  }
  const auto known = options.known_inputs.find(input.name);
  if (known == options.known_inputs.end()) {
    builder.define(
        input.name,
        builder.add_input({input.dtype, input_shape(builder, graph, input, options, fixed)}, input.name));
    return;
  }
  if (known->second.dtype() != input.dtype) {
    throw Error(Code::kInvalidArgument,
                fmt::format("the constant for input '{}' is {}, the model asks for {}", input.name,
                            dtype_name(known->second.dtype()), dtype_name(input.dtype)));
  }
  builder.define(input.name, builder.constant(known->second, input.name));
}

void check_names(const ModelGraph& graph, const ImportOptions& options) {
  const auto check = [&](const std::string& name) {
    std::string known;
    for (const auto& input : graph.inputs) {
      if (input.name == name) return;
      known += (known.empty() ? "" : ", ") + input.name;
    }
    throw Error(Code::kInvalidArgument,
                fmt::format("the model has no input '{}'; its inputs are: {}", name, known));
  };
  for (const auto& [name, shape] : options.input_shapes) check(name);
  for (const auto& [name, tensor] : options.known_inputs) check(name);
}

[[noreturn]] void refuse(const std::vector<std::string>& refusals) {
  constexpr size_t kListed = 30;  // the rest is of the same kinds
  std::vector<std::string> unique;
  for (const auto& line : refusals) {
    if (std::find(unique.begin(), unique.end(), line) == unique.end()) unique.push_back(line);
  }
  std::string text = unique.size() == 1
                         ? "the model cannot be run: "
                         : fmt::format("the model cannot be run, {} nodes are not supported:", unique.size());
  for (size_t i = 0; i < std::min(unique.size(), kListed); ++i)
    text += (unique.size() == 1 ? "" : "\n  ") + unique[i];
  if (unique.size() > kListed) text += fmt::format("\n  and {} more", unique.size() - kListed);
  throw Error(Code::kUnsupported, text);
}

// Gives every graph output a node of its own, so that callers may write into one output without touching an
// input, a weight or another output.
ValueId own_output(GraphBuilder& builder, ValueId value) {
  const auto& graph = builder.graph();
  const bool listed = std::find(graph.outputs.begin(), graph.outputs.end(), value) != graph.outputs.end();
  if (graph.value(value).producer >= 0 && !listed) return value;
  ir::Node node;
  node.op = ir::Op::identity;
  node.inputs = {value};
  return builder.emit_node(std::move(node), 1, false)[0];
}

ir::Graph import_decoded(const Model& model, const ImportOptions& options) {
  ImportState state{model, options};
  state.opsets.push_back(&model.opsets);
  GraphBuilder builder(state);
  check_names(model.graph, options);
  if (const auto opset = model.opsets.find(""); opset != model.opsets.end() && opset->second > kNewestOpset) {
    log(LogLevel::kWarning,
        "the model uses operator set {}, newer than {}: operators are read as their last known form",
        opset->second, kNewestOpset);
  }
  const auto fixed = fixed_symbols(model.graph, options);
  for (const auto& input : model.graph.inputs) {
    for (const auto& extent : input.shape) state.symbols.insert(extent.symbol);
  }
  std::set<std::string> defaults;
  for (const auto& initializer : model.graph.initializers) {
    if (options.known_inputs.count(initializer.name) != 0) continue;
    if (initializer.stripped) {
      throw Error(
          Code::kInvalidModel,
          fmt::format("initializer '{}' has no data: the file was stripped (docs/stripped_models.md); give "
                      "--random-weights SEED, or use the full model",
                      initializer.name));
    }
    defaults.insert(initializer.name);
    builder.define(initializer.name, builder.constant(initializer.tensor, initializer.name));
  }
  for (const auto& input : model.graph.inputs) {
    if (defaults.count(input.name) == 0) add_input(builder, model.graph, input, options, fixed);
  }
  if (model.graph.outputs.empty())
    throw Error(Code::kInvalidModel,
                "the graph has no output, so there is nothing to compute; name its results as outputs");
  for (const auto& output : model.graph.outputs) refuse_if_no_tensor(output, "output");
  onnx::import_nodes(builder, model.graph.nodes);
  if (!state.refusals.empty()) refuse(state.refusals);

  ir::Graph& graph = builder.graph();
  graph.name = model.graph.name;
  graph.metadata = model.metadata;
  for (const auto& output : model.graph.outputs) {
    builder.set_origin({"Identity", output.name, 0});
    const ValueId value = own_output(builder, builder.resolve(output.name));
    const DType dtype = builder.type(value).dtype;
    if (output.typed && output.dtype != dtype) {
      throw Error(Code::kInvalidModel, fmt::format("output '{}' is declared as {}, but its node computes {}",
                                                   output.name, dtype_name(output.dtype), dtype_name(dtype)));
    }
    graph.outputs.push_back(value);
    graph.output_names.push_back(output.name);
  }
  ir::infer_graph(graph);  // bodies get the same types and symbols as any later inference gives
  return std::move(graph);
}

}  // namespace

ir::Graph import_model_bytes(std::span<const std::byte> bytes, const std::string& folder,
                             const ImportOptions& options) {
  Model model = onnx::decode_model(bytes, {folder, options.max_model_bytes});
  if (options.random_weights && model.num_stripped > 0) onnx::fill_random_weights(model, options.weight_seed);
  return import_decoded(model, options);
}

ir::Graph import_model(const std::string& path, const ImportOptions& options) {
  const auto file = onnx::map_file(path);
  const auto parent = std::filesystem::path(path).parent_path();
  try {
    return import_model_bytes(file->bytes, parent.empty() ? "." : parent.string(), options);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace thrice::frontend
