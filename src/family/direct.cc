#include "family/direct.h"

#include <fmt/format.h>

#include "family/choices.h"

namespace thrice::family {

using ir::ValueId;

const ir::Node& DirectFamily::core_node(const ir::Graph& graph) const {
  const ir::Node* found = nullptr;
  for (const auto& node : graph.nodes) {
    if (core().count(node.op) == 0) continue;
    if (found != nullptr) throw NotMatched{"more than one such operator in the region"};
    found = &node;
  }
  if (found == nullptr) throw NotMatched{fmt::format("there is no operator of the {} family", name())};
  for (const ValueId y : graph.outputs) {
    bool own = false;
    for (const ValueId o : found->outputs) own = own || o == y;
    if (!own) throw NotMatched{"what comes after the operator is not fused with it"};
  }
  return *found;
}

Refusal DirectFamily::match(const Workload& workload) const {
  std::set<ir::NodeId> cores;
  for (size_t n = 0; n < workload.graph.nodes.size(); ++n)
    if (core().count(workload.graph.nodes[n].op) != 0) cores.insert(static_cast<ir::NodeId>(n));
  if (cores.empty()) return fmt::format("there is no operator of the {} family", name());
  if (auto refusal = refuse_inlining(workload, cores)) return refusal;
  return refuse_draft([&] {
    ProgramDraft draft(workload);
    build(draft, core_node(draft.graph()), 1);
  });
}

Schedule DirectFamily::default_schedule(const Workload&, const std::vector<Fact>&,
                                        const DeviceSpec& device) const {
  return {std::string(name()), "direct", {{"threads", device.is_cpu ? 8 : 128}}};
}

ScheduleSpace DirectFamily::space(const Workload&, const std::vector<Fact>&, const DeviceSpec& device) const {
  const std::vector<int64_t> threads =
      device.is_cpu ? std::vector<int64_t>{1, 8, 64} : std::vector<int64_t>{32, 64, 128, 256};
  return {{{std::string(name()), "direct", {{"threads", threads}}}}};
}

Refusal DirectFamily::illegal(const Workload& workload, const Schedule& schedule,
                              const DeviceSpec& device) const {
  if (schedule.tactic != "direct") return fmt::format("{} has no tactic '{}'", name(), schedule.tactic);
  if (schedule.get("threads") < 1) return "threads are at least 1";
  return refuse_device(workload, device, schedule.get("threads"), 0);
}

ProgramText DirectFamily::emit(const Workload& workload, const Schedule& schedule, const DeviceSpec&) const {
  return draft_of(workload, schedule,
                  [&](ProgramDraft& d) { build(d, core_node(d.graph()), schedule.get("threads")); })
      ->text();
}

LaunchPlan DirectFamily::launch(const Workload& workload, const Schedule& schedule,
                                const std::vector<Fact>& facts) const {
  return draft_of(workload, schedule,
                  [&](ProgramDraft& d) { build(d, core_node(d.graph()), schedule.get("threads")); })
      ->launch(facts);
}

Index DirectFamily::open_items(Emitter& e, const ir::Dim& bound, Index count, int64_t threads) {
  e.line(fmt::format("const int i = TH_BLOCK * {} + TH_THREAD;", threads));
  e.open(fmt::format("if (i < {})", e.text(count)));
  return e.index().var("i", bound);
}

KernelDraft DirectFamily::finish_items(Emitter& e, Source count, int64_t threads) {
  e.close();
  return e.finish(
      [count, threads](const Facts& facts, artifact::Launch& launch) {
        set_grid(launch, ceil_div(count(facts), threads), threads);
      },
      threads);
}

int DirectFamily::output_of(const ir::Graph& graph, ValueId value) {
  for (size_t o = 0; o < graph.outputs.size(); ++o)
    if (graph.outputs[o] == value) return static_cast<int>(o);
  return -1;
}

}  // namespace thrice::family
