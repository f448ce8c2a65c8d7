// If, Loop, Scan: their bodies become graphs. Extents of carried values that change between steps become
// symbols, and the body is imported again with them, because import functions decide by shapes.
#include <fmt/format.h>
#include <thrice/status.h>

#include "frontend/onnx/body.h"
#include "frontend/onnx/graph_builder.h"
#include "frontend/onnx/import_state.h"
#include "frontend/onnx/node_import.h"
#include "frontend/onnx/ops/groups.h"

namespace thrice::frontend::onnx {
namespace {

// Every round frees at least one extent, so a body of few carried values settles in two or three.
constexpr int kMaxTypingRounds = 8;

const ModelGraph& graph_attr(const NodeContext& ctx, const char* name) {
  const ModelAttribute* attribute = ctx.node().find(name);
  if (attribute == nullptr || !attribute->graph)
    ctx.invalid(fmt::format("attribute '{}' (a graph) is missing", name));
  return *attribute->graph;
}

// A condition or trip count: ONNX asks for rank 0, exporters also write one element of rank 1.
ValueId scalar_operand(NodeContext& ctx, ValueId value, DType dtype, const char* what) {
  if (value == ir::kNoValue) return value;
  if (ctx.dtype(value) != dtype) {
    ctx.invalid(
        fmt::format("{} is {}, it must be {}", what, dtype_name(ctx.dtype(value)), dtype_name(dtype)));
  }
  if (ctx.rank(value) == 0) return value;
  if (ctx.rank(value) > 1)
    ctx.invalid(fmt::format("{} has rank {}, it must be a scalar", what, ctx.rank(value)));
  return ctx.emit(Op::reshape, {value, ctx.ints({})});
}

void check_counts(const NodeContext& ctx, size_t have, size_t want, const char* what) {
  if (have != want) ctx.invalid(fmt::format("the body has {} {}, the node asks for {}", have, what, want));
}

void check_formal(const NodeContext& ctx, const ModelValueInfo& formal, const ir::Type& type) {
  if (!formal.unsupported.empty())
    ctx.refuse(fmt::format("body value '{}' is {}", formal.name, formal.unsupported));
  if (formal.typed && formal.dtype != type.dtype) {
    ctx.invalid(fmt::format("body input '{}' is declared as {}, it is given {}", formal.name,
                            dtype_name(formal.dtype), dtype_name(type.dtype)));
  }
}

void import_taken_branch(NodeContext& ctx, const ModelGraph& branch) {
  GraphBuilder& builder = ctx.builder();
  builder.push_scope(false);
  std::vector<ValueId> results;
  try {
    results = import_body(builder, branch);
  } catch (...) {
    builder.pop_scope();
    throw;
  }
  builder.pop_scope();
  for (size_t i = 0; i < results.size(); ++i) ctx.set_output(i, results[i]);
}

void import_if(NodeContext& ctx) {
  const ModelGraph& then_graph = graph_attr(ctx, "then_branch");
  const ModelGraph& else_graph = graph_attr(ctx, "else_branch");
  check_counts(ctx, then_graph.outputs.size(), ctx.num_outputs(), "results (then_branch)");
  check_counts(ctx, else_graph.outputs.size(), ctx.num_outputs(), "results (else_branch)");
  check_counts(ctx, then_graph.inputs.size() + else_graph.inputs.size(), 0, "inputs");
  const ValueId condition = scalar_operand(ctx, ctx.input(0), DType::kBool, "the condition");
  if (const auto known = ctx.known_ints(condition)) {
    import_taken_branch(ctx, (*known)[0] != 0 ? then_graph : else_graph);
    return;
  }
  ir::Node node;
  node.op = Op::if_;
  node.inputs = {condition};
  GraphBuilder then_body(ctx.builder()), else_body(ctx.builder());
  const auto then_results = import_body(then_body, then_graph);
  const auto else_results = import_body(else_body, else_graph);
  close_bodies({&then_body, &else_body}, {then_results, else_results}, node);
  const auto outputs = ctx.builder().emit_node(std::move(node), ctx.num_outputs());
  for (size_t i = 0; i < outputs.size(); ++i) ctx.set_output(i, outputs[i]);
}

struct TypedBody {
  std::unique_ptr<GraphBuilder> builder;
  std::vector<ValueId> results;
};

// Imports a body whose formal inputs have the types `inputs`; those at [first, first + count) are carried to
// the results from `first_result` on, and their types are widened until they hold.
TypedBody import_typed_body(NodeContext& ctx, const ModelGraph& graph, std::vector<ir::Type> inputs,
                            size_t first, size_t count, size_t first_result) {
  check_counts(ctx, graph.inputs.size(), inputs.size(), "inputs");
  for (int round = 0; round < kMaxTypingRounds; ++round) {
    TypedBody body{std::make_unique<GraphBuilder>(ctx.builder()), {}};
    for (size_t i = 0; i < inputs.size(); ++i) {
      check_formal(ctx, graph.inputs[i], inputs[i]);
      body.builder->define(graph.inputs[i].name, body.builder->add_input(inputs[i], graph.inputs[i].name));
    }
    body.results = import_body(*body.builder, graph);
    bool settled = true;
    for (size_t i = 0; i < count; ++i) {
      ir::Type& before = inputs[first + i];
      const ir::Type& after = body.builder->type(body.results[first_result + i]);
      if (before.dtype != after.dtype) {
        ctx.invalid(fmt::format("carried value '{}' is {} before the step and {} after it",
                                graph.inputs[first + i].name, dtype_name(before.dtype),
                                dtype_name(after.dtype)));
      }
      if (before.shape.size() != after.shape.size()) {
        ctx.refuse(fmt::format(
            "carried value '{}' has rank {} before the step and {} after it; thrice needs a fixed rank",
            graph.inputs[first + i].name, before.shape.size(), after.shape.size()));
      }
      for (size_t axis = 0; axis < before.shape.size(); ++axis) {
        if (before.shape[axis] == after.shape[axis]) continue;
        const bool freed = !before.shape[axis].is_const() && round > 0;
        if (freed && before.shape[axis].str().rfind("carried.", 0) == 0) continue;
        before.shape[axis] = ctx.builder().fresh_symbol(fmt::format("carried.{}.{}", i, axis));
        settled = false;
      }
    }
    if (settled) return body;
  }
  ctx.refuse("the shapes of its carried values do not settle; export the model with fixed shapes there");
}

void import_loop(NodeContext& ctx) {
  const ModelGraph& graph = graph_attr(ctx, "body");
  const size_t num_carried = ctx.num_inputs() < 2 ? 0 : ctx.num_inputs() - 2;
  if (ctx.num_outputs() < num_carried || graph.outputs.size() < 1 + num_carried) {
    ctx.invalid("it has fewer results than carried values");
  }
  const size_t num_stacked = graph.outputs.size() - 1 - num_carried;
  check_counts(ctx, ctx.num_outputs(), num_carried + num_stacked, "results behind the condition");
  ir::Node node;
  node.op = Op::loop;
  node.inputs = {scalar_operand(ctx, ctx.optional_input(0), DType::kI64, "the trip count"),
                 scalar_operand(ctx, ctx.optional_input(1), DType::kBool, "the condition")};
  std::vector<ir::Type> types = {{DType::kI64, {}}, {DType::kBool, {}}};
  for (size_t i = 0; i < num_carried; ++i) {
    node.inputs.push_back(ctx.input(2 + i));
    types.push_back(ctx.type(node.inputs.back()));
  }
  node.attrs = {{"num_carried", static_cast<int64_t>(num_carried)},
                {"num_scan_outputs", static_cast<int64_t>(num_stacked)}};
  TypedBody body = import_typed_body(ctx, graph, types, 2, num_carried, 1);
  NodeContext inside(*body.builder, ctx.node(), ctx.opset());
  body.results[0] = scalar_operand(inside, body.results[0], DType::kBool, "the body's condition");
  close_bodies({body.builder.get()}, {body.results}, node);
  const auto outputs = ctx.builder().emit_node(std::move(node), num_carried + num_stacked);
  for (size_t i = 0; i < outputs.size(); ++i) ctx.set_output(i, outputs[i]);
}

void refuse_scan8(NodeContext& ctx) {
  ctx.refuse("Scan of opset 8 (with a batch axis) is not supported; convert the model to opset 9 or newer");
}

// The same value with one axis at another place: scans themselves run along axis 0 only.
ValueId move_axis(NodeContext& ctx, ValueId value, int64_t from, int64_t to) {
  if (from == to) return value;
  std::vector<int64_t> perm;
  for (int64_t axis = 0; axis < static_cast<int64_t>(ctx.rank(value)); ++axis)
    if (axis != from) perm.push_back(axis);
  perm.insert(perm.begin() + to, from);
  return ctx.emit(Op::transpose, {value}, {{"perm", perm}});
}

void import_scan(NodeContext& ctx) {
  const ModelGraph& graph = graph_attr(ctx, "body");
  const int64_t given = ctx.int_attr("num_scan_inputs");
  if (given < 1 || given > static_cast<int64_t>(ctx.num_inputs()))
    ctx.invalid("num_scan_inputs is out of range");
  const auto num_scanned = static_cast<size_t>(given);
  const size_t num_carried = ctx.num_inputs() - num_scanned;
  if (graph.outputs.size() < num_carried) ctx.invalid("the body has fewer results than carried values");
  const size_t num_stacked = graph.outputs.size() - num_carried;
  check_counts(ctx, ctx.num_outputs(), graph.outputs.size(), "results");
  const auto list = [&](const char* name, size_t count) {
    auto values = ctx.ints_attr(name);
    if (values.empty()) values.assign(count, 0);
    if (values.size() != count)
      ctx.invalid(fmt::format("attribute '{}' has {} entries, not {}", name, values.size(), count));
    return values;
  };
  ScanLayout layout{list("scan_input_axes", num_scanned), list("scan_input_directions", num_scanned),
                    list("scan_output_axes", num_stacked), list("scan_output_directions", num_stacked)};
  std::vector<ValueId> carried, scanned;
  std::vector<ir::Type> types;
  for (size_t i = 0; i < num_carried; ++i) {
    carried.push_back(ctx.input(i));
    types.push_back(ctx.type(carried.back()));
  }
  for (size_t i = 0; i < num_scanned; ++i) {
    const ValueId whole = ctx.input(num_carried + i);
    scanned.push_back(move_axis(ctx, whole, ctx.axis(whole, layout.input_axes[i]), 0));
    layout.input_axes[i] = 0;
    ir::Type type = ctx.type(scanned.back());
    type.shape.erase(type.shape.begin());
    types.push_back(std::move(type));
  }
  TypedBody body = import_typed_body(ctx, graph, types, 0, num_carried, 0);
  const std::vector<int64_t> output_axes = layout.output_axes;
  layout.output_axes.assign(num_stacked, 0);
  const auto outputs = emit_scan(ctx, *body.builder, carried, scanned, body.results, layout);
  for (size_t i = 0; i < outputs.size(); ++i)
    ctx.set_output(i, i < num_carried ? outputs[i]
                                      : move_axis(ctx, outputs[i], 0,
                                                  ctx.axis(outputs[i], output_axes[i - num_carried])));
}

}  // namespace

std::vector<OperatorImport> control_imports() {
  return {{"", "If", 1, import_if},
          {"", "Loop", 1, import_loop},
          {"", "Scan", 8, refuse_scan8},
          {"", "Scan", 9, import_scan}};
}

}  // namespace thrice::frontend::onnx
