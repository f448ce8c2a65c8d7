// thrice inspect: what a model computes, and where its work is.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "family/family.h"
#include "ir/check.h"
#include "plan/planner.h"
#include "report/table.h"
#include "transform/transform.h"

namespace thrice::cli {

namespace {

struct Row {
  int count = 0;
  double bytes = 0, flops = 0;
  bool is_variable = false;  // an extent depends on a symbol
};

bool has_symbol(const ir::Graph& graph, const ir::Node& node) {
  for (ir::ValueId v : node.outputs)
    if (v != ir::kNoValue && !ir::is_static(graph.value(v).type.shape)) return true;
  return false;
}

// Work of each operator of the model by itself (its nodes together), summed by operator name.
std::map<std::string, Row> rows_of(const ir::Graph& graph, const ir::Bindings& bindings) {
  std::map<int32_t, std::vector<ir::NodeId>> by_origin;
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (graph.nodes[n].origin >= 0) by_origin[graph.nodes[n].origin].push_back(static_cast<ir::NodeId>(n));
  const std::vector<ir::Fact> facts = plan::model_facts(graph, bindings);
  std::map<std::string, Row> rows;
  for (const auto& [origin, nodes] : by_origin) {
    Row& row = rows[graph.origins[static_cast<size_t>(origin)].op_type];
    ++row.count;
    for (ir::NodeId n : nodes) row.is_variable |= has_symbol(graph, graph.nodes[static_cast<size_t>(n)]);
    const auto on_host = [&](ir::NodeId n) {
      const ir::OpClass cls = ir::op_class(graph.nodes[static_cast<size_t>(n)].op);
      return cls == ir::OpClass::kHost || cls == ir::OpClass::kControl;
    };
    if (std::any_of(nodes.begin(), nodes.end(), on_host)) continue;
    const ir::Workload workload = ir::extract(graph, ir::make_region(graph, nodes));
    std::vector<ir::Fact> inputs;
    for (ir::ValueId v : workload.inputs) inputs.push_back(facts[static_cast<size_t>(v)]);
    const family::Work work = family::count_work(workload, inputs);
    row.bytes += work.bytes;
    row.flops += work.flops;
  }
  return rows;
}

int run(const Arguments& arguments) {
  set_log_level(parse_log_level(arguments.get("--log", "warning")));
  frontend::ImportOptions import = import_options(arguments);
  import.random_weights = true;  // of a structure-only file: nothing that is shown depends on their values
  ir::Graph graph = frontend::import_model(*arguments.get("MODEL"), import);
  if (arguments.has("--graph")) {
    fmt::print("{}", ir::print(graph));
    return 0;
  }
  std::vector<std::string> notes;
  const ir::Bindings bindings = bindings_for(graph, arguments, &notes);
  const auto rows = rows_of(graph, bindings);
  double weights = 0;
  for (const ir::Value& value : graph.values)
    if (value.constant) weights += static_cast<double>(value.constant->bytes());

  if (arguments.has("--json")) {
    nlohmann::json j = {{"model", graph.name},
                        {"operators", graph.origins.size()},
                        {"nodes", graph.nodes.size()},
                        {"weight_bytes", weights}};
    const auto list = [&](const std::vector<ir::ValueId>& ids, const std::vector<std::string>& names) {
      nlohmann::json array = nlohmann::json::array();
      for (size_t i = 0; i < ids.size(); ++i)
        array.push_back({{"name", names[i]},
                         {"dtype", dtype_name(graph.value(ids[i]).type.dtype)},
                         {"shape", ir::shape_str(graph.value(ids[i]).type.shape)}});
      return array;
    };
    j["inputs"] = list(graph.inputs, graph.input_names);
    j["outputs"] = list(graph.outputs, graph.output_names);
    j["notes"] = notes;
    for (const auto& [op, row] : rows)
      j["by_operator"][op] = {{"count", row.count},
                              {"bytes", row.bytes},
                              {"flops", row.flops},
                              {"length", row.is_variable ? "variable" : "fixed"}};
    fmt::print("{}\n", j.dump(2));
    return 0;
  }
  fmt::print("{}: {} operators, {} nodes, weights {}\n", graph.name.empty() ? "model" : graph.name,
             graph.origins.size(), graph.nodes.size(), report::bytes(weights));
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    fmt::print("  input  {} {} {}\n", graph.input_names[i],
               dtype_name(graph.value(graph.inputs[i]).type.dtype),
               ir::shape_str(graph.value(graph.inputs[i]).type.shape));
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    fmt::print("  output {} {} {}\n", graph.output_names[i],
               dtype_name(graph.value(graph.outputs[i]).type.dtype),
               ir::shape_str(graph.value(graph.outputs[i]).type.shape));
  for (const std::string& note : notes) fmt::print("  assumed {}\n", note);
  std::vector<std::pair<std::string, Row>> sorted(rows.begin(), rows.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.flops > b.second.flops; });
  report::Table table({"operator", "count", "MFLOP", "MB", "FLOP/byte", "lengths"});
  for (const auto& [op, row] : sorted)
    table.add({op, std::to_string(row.count), fmt::format("{:.2f}", row.flops / 1e6),
               fmt::format("{:.2f}", row.bytes / 1e6),
               row.bytes > 0 ? fmt::format("{:.2f}", row.flops / row.bytes) : "-",
               row.is_variable ? "variable" : "fixed"});
  fmt::print("\n{}", table.str({0}));
  return 0;
}

}  // namespace

Command inspect_command() {
  std::vector<Option> options = model_options();
  options.push_back({"--graph", "", "print the intermediate form, one node a line"});
  return {"inspect",
          "show a model's inputs, operators and work",
          "thrice inspect model.onnx --dims batch=1",
          {{"MODEL", "ONNX file"}},
          options,
          run};
}

}  // namespace thrice::cli
