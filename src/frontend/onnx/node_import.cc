#include "frontend/onnx/node_import.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>

#include "frontend/onnx/import_state.h"

namespace thrice::frontend::onnx {
namespace {

using Bindings = std::map<std::string, ModelAttribute>;

std::string full_name(const ModelNode& node) {
  return node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
}

int64_t opset_of(const ImportState& state, const ModelNode& node) {
  const auto& opsets = *state.opsets.back();
  if (const auto found = opsets.find(node.domain); found != opsets.end()) return found->second;
  // Files often forget to import the domain of a contributed operator; ONNX's own set must be there.
  if (!node.domain.empty()) return 1;
  throw Error(Code::kInvalidModel,
              fmt::format("node '{}' is ai.onnx.{}, but the model imports no version of ai.onnx",
                          node.label(), node.op_type));
}

// Inside a function: attribute references replaced by what the caller gave.
ModelNode resolve_references(const ModelNode& node, const Bindings& bindings) {
  ModelNode resolved = node;
  resolved.attributes.clear();
  for (const auto& attribute : node.attributes) {
    if (attribute.ref_name.empty()) {
      resolved.attributes.push_back(attribute);
      continue;
    }
    // An attribute that nobody gave is absent, as if it had not been written.
    if (const auto found = bindings.find(attribute.ref_name); found != bindings.end()) {
      ModelAttribute given = found->second;
      if (given.kind != attribute.kind && attribute.kind != ModelAttribute::kUndefined) {
        throw Error(Code::kInvalidModel,
                    fmt::format("node '{}' ({}): attribute '{}' refers to '{}', which has another type",
                                node.label(), node.op_type, attribute.name, attribute.ref_name));
      }
      given.name = attribute.name;
      resolved.attributes.push_back(std::move(given));
    }
  }
  return resolved;
}

const ModelFunction* find_function(const Model& model, const ModelNode& node) {
  for (const auto& function : model.functions) {
    if (function.domain == node.domain && function.name == node.op_type &&
        function.overload == node.overload) {
      return &function;
    }
  }
  return nullptr;
}

struct DepthGuard {
  explicit DepthGuard(ImportState& state) : state(state) {
    if (++state.depth > kMaxImportDepth) {
      --state.depth;
      throw Error(Code::kInvalidModel,
                  fmt::format("functions and bodies are nested more than {} deep (a function that "
                              "calls itself?)",
                              kMaxImportDepth));
    }
  }
  ~DepthGuard() { --state.depth; }
  ImportState& state;
};

void import_function(GraphBuilder& builder, const ModelNode& node, const ModelFunction& function) {
  ImportState& state = builder.state();
  const DepthGuard guard(state);
  if (node.inputs.size() > function.inputs.size() || node.outputs.size() > function.outputs.size()) {
    throw Error(Code::kInvalidModel, fmt::format("node '{}' gives function '{}' more operands than it has",
                                                 node.label(), function.name));
  }
  Bindings bindings;
  for (const auto& attribute : function.default_attributes) bindings[attribute.name] = attribute;
  for (const auto& attribute : node.attributes) bindings[attribute.name] = attribute;
  std::vector<ValueId> operands(function.inputs.size(), ir::kNoValue);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i].empty()) operands[i] = builder.resolve(node.inputs[i]);
  }
  builder.push_scope(true);
  for (size_t i = 0; i < operands.size(); ++i) builder.define(function.inputs[i], operands[i]);
  state.opsets.push_back(&function.opsets);
  state.references.push_back(&bindings);
  const auto leave = [&] {
    state.opsets.pop_back();
    state.references.pop_back();
    builder.pop_scope();
  };
  std::vector<ValueId> results(node.outputs.size(), ir::kNoValue);
  try {
    import_nodes(builder, function.nodes);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      try {
        if (!node.outputs[i].empty()) results[i] = builder.resolve(function.outputs[i]);
      } catch (const RefusedOperand&) {
        results[i] = kRefusedValue;
      }
    }
  } catch (...) {
    leave();
    throw;
  }
  leave();
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i].empty()) builder.define(node.outputs[i], results[i]);
  }
}

void refuse_outputs(GraphBuilder& builder, const ModelNode& node) {
  for (const auto& output : node.outputs) {
    if (!output.empty()) builder.define(output, kRefusedValue);
  }
}

std::string no_import_message(const ModelNode& node, int64_t opset) {
  const std::string head = fmt::format("{} (opset {}, node '{}')", full_name(node), opset, node.label());
  if (node.domain == "ai.onnx.ml")
    return head + ": classical machine learning operators are outside of thrice's scope";
  if (node.domain.empty() && opset < 7) {
    return head + ": operator sets older than 7 are not read; convert the model with onnx.version_converter";
  }
  return head +
         ": thrice has no such operator; export the model without it (a newer or older opset, or its parts)";
}

void import_one(GraphBuilder& builder, const ModelNode& node) {
  ImportState& state = builder.state();
  if (++state.num_imported > kMaxImportedNodes) {
    throw Error(Code::kInvalidModel,
                fmt::format("the model unfolds to more than {} nodes (functions that call functions?)",
                            kMaxImportedNodes));
  }
  const int64_t opset = opset_of(state, node);
  const OperatorImport* entry = find_import(node.domain, node.op_type, opset);
  const ModelFunction* function = entry == nullptr ? find_function(state.model, node) : nullptr;
  if (function != nullptr) {
    import_function(builder, node, *function);
    return;
  }
  if (entry == nullptr) {
    state.refusals.push_back(no_import_message(node, opset));
    refuse_outputs(builder, node);
    return;
  }
  const ir::Origin outer_origin = builder.origin();
  builder.set_origin({full_name(node), node.label(), opset});
  NodeContext context(builder, node, opset);
  entry->import(context);
  for (const auto& output : node.outputs) {
    if (output.empty()) continue;
    try {
      builder.resolve(output);
    } catch (const Error&) {
      throw Error(Code::kUnsupported, fmt::format("{} (opset {}, node '{}'): output '{}' is not supported",
                                                  full_name(node), opset, node.label(), output));
    }
  }
  builder.set_origin(outer_origin);
}

bool is_labelled(const std::string& message, const ModelNode& node) {
  return message.find(fmt::format("node '{}'", node.label())) != std::string::npos;
}

}  // namespace

void import_nodes(GraphBuilder& builder, const std::vector<ModelNode>& nodes) {
  ImportState& state = builder.state();
  for (const auto& written : nodes) {
    ModelNode resolved;
    const ModelNode* node = &written;
    const bool has_reference = std::any_of(written.attributes.begin(), written.attributes.end(),
                                           [](const ModelAttribute& a) { return !a.ref_name.empty(); });
    if (has_reference) {
      static const Bindings kNone;
      resolved = resolve_references(written, state.references.empty() ? kNone : *state.references.back());
      node = &resolved;
    }
    try {
      for (const auto& input : node->inputs) {
        if (!input.empty()) builder.resolve(input);  // skips consumers of refused nodes
      }
      import_one(builder, *node);
    } catch (const RefusedOperand&) {
      refuse_outputs(builder, *node);
    } catch (const Error& error) {
      const std::string message =
          is_labelled(error.what(), *node)
              ? std::string(error.what())
              : fmt::format("{} (node '{}'): {}", full_name(*node), node->label(), error.what());
      if (error.code() != Code::kUnsupported) throw Error(error.code(), message);
      state.refusals.push_back(message);
      refuse_outputs(builder, *node);
    }
  }
}

std::vector<ValueId> import_body(GraphBuilder& body, const ModelGraph& graph) {
  const DepthGuard guard(body.state());
  for (const auto& initializer : graph.initializers) {
    if (initializer.stripped) {
      throw Error(Code::kInvalidModel,
                  fmt::format("initializer '{}' was stripped; give --random-weights SEED", initializer.name));
    }
    body.define(initializer.name, body.constant(initializer.tensor, initializer.name));
  }
  import_nodes(body, graph.nodes);
  std::vector<ValueId> results;
  for (const auto& output : graph.outputs) results.push_back(body.resolve(output.name));
  return results;
}

}  // namespace thrice::frontend::onnx
