#include "family/delta_rule/delta_rule.h"

#include <fmt/format.h>

#include "family/delta_rule/chunks.h"
#include "family/delta_rule/columns.h"
#include "family/drafted.h"
#include "ir/delta_rule.h"

namespace thrice::family {

namespace {

class DeltaRule final : public DraftedFamily {
 public:
  std::string_view name() const override { return "delta_rule"; }

  Refusal match(const Workload& workload) const override {
    std::set<ir::NodeId> core;
    for (size_t n = 0; n < workload.graph.nodes.size(); ++n)
      if (ir::is_delta_rule(workload.graph.nodes[n])) core.insert(static_cast<ir::NodeId>(n));
    if (core.empty()) return "there is no delta rule";
    if (auto refusal = refuse_inlining(workload, core)) return refusal;
    return refuse_draft([&] { make_draft(workload, columns_schedule(1), false); });
  }

  Schedule default_schedule(const Workload& workload, const std::vector<Fact>& facts,
                            const DeviceSpec& device) const override {
    const DeltaRuleForm form = find_delta_rule(workload.graph);
    if (device.api == target::Api::kCuda) {
      const Schedule chunks = default_chunks(form, ir::bind(workload.graph, facts), device);
      if (!refuse_chunks(workload, form, chunks, device)) return chunks;
    }
    return columns_schedule(device.is_cpu ? 8 : 64);
  }

  ScheduleSpace space(const Workload& workload, const std::vector<Fact>& facts,
                      const DeviceSpec& device) const override {
    ScheduleSpace space;
    const DeltaRuleForm form = find_delta_rule(workload.graph);
    if (device.api == target::Api::kCuda &&
        !refuse_chunks(workload, form, default_chunks(form, ir::bind(workload.graph, facts), device), device))
      space.tactics.push_back({"delta_rule", "chunks", chunks_parameters(device)});
    const std::vector<int64_t> threads =
        device.is_cpu ? std::vector<int64_t>{1, 8, 64} : std::vector<int64_t>{32, 64, 128};
    space.tactics.push_back({"delta_rule", "columns", {{"threads", threads}}});
    return space;
  }

  Refusal illegal(const Workload& workload, const Schedule& schedule,
                  const DeviceSpec& device) const override {
    if (schedule.family == "delta_rule" && schedule.tactic == "columns") {
      if (schedule.get("threads") < 1) return "threads are at least 1";
      return refuse_device(workload, device, schedule.get("threads"), 0);
    }
    if (schedule.family == "delta_rule" && schedule.tactic == "chunks")
      return refuse_chunks(workload, find_delta_rule(workload.graph), schedule, device);
    return fmt::format("delta_rule has no tactic '{}'", schedule.tactic);
  }

 private:
  static Schedule columns_schedule(int64_t threads) {
    return {"delta_rule", "columns", {{"threads", threads}}};
  }
  ProgramDraft make_draft(const Workload& workload, const Schedule& schedule, bool) const override {
    ProgramDraft draft(workload);
    const DeltaRuleForm form = find_delta_rule(draft.graph());
    if (schedule.tactic == "chunks")
      emit_chunks(draft, form, schedule);
    else
      emit_columns(draft, form, schedule.get("threads"));
    return draft;
  }
};

}  // namespace

const Family& delta_rule_family() {
  static const DeltaRule kFamily;
  return kFamily;
}

}  // namespace thrice::family
