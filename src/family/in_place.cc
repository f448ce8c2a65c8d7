#include "family/in_place.h"

#include <fmt/format.h>

#include <algorithm>

namespace thrice::family {

using ir::Dim;
using ir::ValueId;

namespace {

// Values whose element i is computed from element i of `input`; empty where something else is too.
std::vector<ValueId> followers(const ir::Graph& graph, ValueId input) {
  const Dim all = ir::num_elements(graph.value(input).type.shape);
  std::vector<ValueId> found{input};
  for (const ir::Node& node : graph.nodes) {
    const auto follows = [&](ValueId v) { return std::find(found.begin(), found.end(), v) != found.end(); };
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!follows(node.inputs[i])) continue;
      const bool keeps_places = ir::is_elementwise(node.op) || (node.op == ir::Op::reshape && i == 0);
      if (!keeps_places || node.outputs.size() != 1 ||
          !(ir::num_elements(graph.value(node.outputs[0]).type.shape) == all))
        return {};
      if (!follows(node.outputs[0])) found.push_back(node.outputs[0]);
    }
  }
  return found;
}

}  // namespace

std::vector<Share> shares_of(const Family& family, const Workload& workload, const Schedule& schedule) {
  const auto* in_place = dynamic_cast<const InPlaceFamily*>(&family);
  if (in_place == nullptr || schedule.get("in_place", 0) == 0) return {};
  return in_place->shares(workload, schedule);
}

std::vector<std::vector<Share>> share_choices(const std::vector<Share>& shares) {
  std::vector<std::vector<Share>> choices;
  for (size_t first = 0; first < shares.size(); ++first) {
    std::vector<Share> taken;
    for (size_t i = 0; i < shares.size(); ++i) {
      const Share& share = shares[(first + i) % shares.size()];
      if (std::none_of(taken.begin(), taken.end(),
                       [&](const Share& t) { return t.input == share.input || t.output == share.output; }))
        taken.push_back(share);
    }
    std::sort(taken.begin(), taken.end(), [](const Share& a, const Share& b) { return a.input < b.input; });
    if (std::find(choices.begin(), choices.end(), taken) == choices.end()) choices.push_back(taken);
  }
  return choices;
}

Schedule in_place(const Family& family, const Workload& workload, const Schedule& schedule) {
  Schedule other = schedule;
  other.set("in_place", 1);
  return shares_of(family, workload, other).empty() ? schedule : other;
}

Schedule apart(Schedule schedule) {
  std::erase_if(schedule.values, [](const auto& value) { return value.first == "in_place"; });
  return schedule;
}

void drop_restrict(const ProgramDraft& draft, const std::vector<Share>& shares, ProgramText& program) {
  const auto drop = [&](const std::string& name) {
    const std::string promise = fmt::format("* TH_RESTRICT {},", name), without = fmt::format("* {},", name);
    for (size_t at = program.text.find(promise); at != std::string::npos; at = program.text.find(promise, at))
      program.text.replace(at, promise.size(), without);
  };
  for (const Share& share : shares) {
    drop(draft.input_name(draft.graph().inputs[share.input]));
    drop(draft.output_name(share.output));
  }
}

std::vector<Share> elementwise_shares(const Workload& workload) {
  const ir::Graph& graph = workload.graph;
  std::vector<Share> shares;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const ir::Value& input = graph.value(graph.inputs[i]);
    if (ir::is_shape_input(workload, i) || input.is_weight) continue;
    const std::vector<ValueId> found = followers(graph, graph.inputs[i]);
    for (size_t o = 0; o < graph.outputs.size(); ++o)
      if (graph.outputs[o] != graph.inputs[i] &&
          graph.value(graph.outputs[o]).type.dtype == input.type.dtype &&
          std::find(found.begin(), found.end(), graph.outputs[o]) != found.end())
        shares.push_back({i, o});
  }
  return shares;
}

// The others store the last row or columns of a tile again where it reaches beyond an edge, or were not
// looked at.
bool stores_once(const std::string& gemm_tactic) {
  return gemm_tactic == "naive" || gemm_tactic == "vector" || gemm_tactic == "dot" || gemm_tactic == "panel";
}

std::vector<Share> epilogue_shares(const Workload& workload) {
  if (workload.graph.outputs.size() != 1) return {};
  return elementwise_shares(workload);
}

}  // namespace thrice::family
