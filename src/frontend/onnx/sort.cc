#include "frontend/onnx/sort.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <queue>
#include <unordered_map>
#include <unordered_set>

namespace thrice::frontend::onnx {
namespace {

// Names of a graph and, through `outer`, of the graphs around it.
struct Names {
  std::unordered_set<std::string> own;
  const Names* outer = nullptr;
  bool knows(const std::string& name) const {
    for (const Names* scope = this; scope != nullptr; scope = scope->outer) {
      if (scope->own.count(name) != 0) return true;
    }
    return false;
  }
};

void add_own_names(const ModelGraph& graph, std::unordered_set<std::string>& own) {
  for (const auto& input : graph.inputs) own.insert(input.name);
  for (const auto& tensor : graph.initializers) own.insert(tensor.name);
  for (const auto& node : graph.nodes) own.insert(node.outputs.begin(), node.outputs.end());
}

void add_used_names(const ModelNode& node, std::unordered_set<std::string>& used);

// What a body takes from outside.
void add_free_names(const ModelGraph& body, std::unordered_set<std::string>& used) {
  std::unordered_set<std::string> own, inside;
  add_own_names(body, own);
  for (const auto& node : body.nodes) add_used_names(node, inside);
  for (const auto& output : body.outputs) inside.insert(output.name);
  for (const auto& name : inside) {
    if (own.count(name) == 0) used.insert(name);
  }
}

void add_used_names(const ModelNode& node, std::unordered_set<std::string>& used) {
  for (const auto& input : node.inputs) {
    if (!input.empty()) used.insert(input);
  }
  for (const auto& attribute : node.attributes) {
    if (attribute.graph) add_free_names(*attribute.graph, used);
  }
}

[[noreturn]] void refuse_cycle(const std::vector<ModelNode>& nodes, const std::vector<int>& waiting_for,
                               const std::vector<std::vector<size_t>>& needs, const std::string& where) {
  // Walking backwards over unplaced producers must meet a node again: that loop is the cycle.
  size_t at = 0;
  while (waiting_for[at] == 0) ++at;
  std::vector<size_t> path;
  std::unordered_map<size_t, size_t> seen;
  while (seen.emplace(at, path.size()).second) {
    path.push_back(at);
    for (const size_t producer : needs[at]) {
      if (waiting_for[producer] != 0) {
        at = producer;
        break;
      }
    }
  }
  constexpr size_t kNamed = 6;  // enough to find it, few enough to read
  std::string names;
  const size_t begin = seen[at];
  for (size_t i = begin; i < path.size() && i < begin + kNamed; ++i) {
    names +=
        fmt::format("{}'{}' ({})", i == begin ? "" : " <- ", nodes[path[i]].label(), nodes[path[i]].op_type);
  }
  if (path.size() - begin > kNamed) names += " <- ...";
  throw Error(
      Code::kInvalidModel,
      fmt::format("{}: nodes feed each other in a cycle: {}; a graph must be free of cycles", where, names));
}

void sort_nodes(std::vector<ModelNode>& nodes, const Names& names, const std::string& where) {
  std::unordered_map<std::string, size_t> producer;
  for (size_t n = 0; n < nodes.size(); ++n) {
    for (const auto& output : nodes[n].outputs) {
      if (!output.empty()) producer.emplace(output, n);
    }
  }
  std::vector<std::vector<size_t>> needs(nodes.size()), feeds(nodes.size());
  std::vector<int> waiting_for(nodes.size(), 0);
  for (size_t n = 0; n < nodes.size(); ++n) {
    std::unordered_set<std::string> used;
    add_used_names(nodes[n], used);
    for (const auto& name : used) {
      if (const auto found = producer.find(name); found != producer.end()) {
        needs[n].push_back(found->second);
        feeds[found->second].push_back(n);
        ++waiting_for[n];
      } else if (!names.knows(name)) {
        throw Error(Code::kInvalidModel,
                    fmt::format("{}: node '{}' ({}) uses '{}', which no node, input or initializer defines",
                                where, nodes[n].label(), nodes[n].op_type, name));
      }
    }
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>>
      ready;  // lowest index first keeps sorted files as is
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (waiting_for[n] == 0) ready.push(n);
  }
  std::vector<ModelNode> sorted;
  sorted.reserve(nodes.size());
  std::vector<size_t> order;
  while (!ready.empty()) {
    const size_t n = ready.top();
    ready.pop();
    order.push_back(n);
    for (const size_t next : feeds[n]) {
      if (--waiting_for[next] == 0) ready.push(next);
    }
  }
  if (order.size() != nodes.size()) refuse_cycle(nodes, waiting_for, needs, where);
  for (const size_t n : order) sorted.push_back(std::move(nodes[n]));
  nodes = std::move(sorted);
}

void define_once(std::unordered_set<std::string>& own, const std::string& name, const std::string& where) {
  if (!own.insert(name).second) {
    throw Error(Code::kInvalidModel, fmt::format("{}: '{}' is defined twice", where, name));
  }
}

void sort_in(ModelGraph& graph, const Names* outer, const std::string& where) {
  Names names{{}, outer};
  for (const auto& input : graph.inputs) define_once(names.own, input.name, where + " (inputs)");
  std::unordered_set<std::string>
      initializers;  // an initializer may give the default of an input of its name
  for (const auto& tensor : graph.initializers) {
    define_once(initializers, tensor.name, where + " (initializers)");
    names.own.insert(tensor.name);
  }
  for (const auto& node : graph.nodes) {
    for (const auto& output : node.outputs) {
      if (!output.empty()) {
        define_once(names.own, output, fmt::format("{}: node '{}' ({})", where, node.label(), node.op_type));
      }
    }
  }
  sort_nodes(graph.nodes, names, where);
  for (const auto& output : graph.outputs) {
    if (!names.knows(output.name)) {
      throw Error(
          Code::kInvalidModel,
          fmt::format("{}: output '{}' is defined by no node, input or initializer", where, output.name));
    }
  }
  for (auto& node : graph.nodes) {
    for (auto& attribute : node.attributes) {
      if (attribute.graph) {
        sort_in(*attribute.graph, &names,
                fmt::format("{}, body '{}' of node '{}'", where, attribute.name, node.label()));
      }
    }
  }
}

}  // namespace

void sort_graph(ModelGraph& graph) { sort_in(graph, nullptr, "graph"); }

void sort_function(ModelFunction& function) {
  // A function body is a graph whose inputs and outputs have no types.
  ModelGraph body;
  body.nodes = std::move(function.nodes);
  for (const auto& input : function.inputs) body.inputs.push_back({input});
  for (const auto& output : function.outputs) body.outputs.push_back({output});
  sort_in(body, nullptr, fmt::format("function '{}'", function.name));
  function.nodes = std::move(body.nodes);
}

}  // namespace thrice::frontend::onnx
