#include "family/row/row.h"

#include <fmt/format.h>

#include "family/choices.h"
#include "family/row_kernel.h"

namespace thrice::family {

namespace {

RowSchedule parse(const Schedule& s) {
  RowSchedule r;
  r.block = s.tactic == "block";
  r.threads = s.get("threads");
  r.rows = s.get("rows", 1);
  r.accumulators = s.get("accumulators");
  r.stash = s.get("stash", 0) != 0;
  return r;
}

void build(ProgramDraft& draft, const Schedule& schedule) {
  const RowForm form = analyse_rows(draft);
  draft.kernels.push_back(row_kernel(draft, form, parse(schedule), "row0"));
}

bool stashes(const Workload& workload) {
  ProgramDraft draft(workload);
  return can_stash(draft, analyse_rows(draft));
}

}  // namespace

Refusal RowFamily::match(const Workload& workload) const {
  if (auto refusal = refuse_inlining(workload, reduction_nodes(workload.graph))) return refusal;
  return refuse_draft([&] {
    ProgramDraft draft(workload);
    const RowForm form = analyse_rows(draft);
    for (const auto& r : form.reductions) {
      const auto& shape = workload.graph.value(r.input).type.shape;
      for (size_t a = r.axes.inner.back() + 1; a < shape.size(); ++a)
        if (!(shape[a] == ir::Dim(1))) throw NotMatched{"the reduced axes are not the trailing ones"};
    }
    row_kernel(draft, form, {}, "row0");
  });
}

Schedule RowFamily::default_schedule(const Workload& workload, const std::vector<Fact>& input_facts,
                                     const DeviceSpec& device) const {
  const Facts facts = ir::bind(workload.graph, input_facts);
  ProgramDraft draft(workload);
  const RowForm form = analyse_rows(draft);
  const int64_t rows = std::max<int64_t>(1, form.row_count(facts));
  const int64_t columns = std::max<int64_t>(1, form.column_count(facts));
  const int64_t stash = can_stash(draft, form) ? 1 : 0;
  if (device.is_cpu) {
    const int64_t want = std::max<int64_t>(1, 8192 / columns);  // rows that hide a work-group's start
    const int64_t share = std::max<int64_t>(1, rows / (4 * device.compute_units));
    const int64_t take = power_of_two_at_least(std::min(want, share));
    return {"row", "item", {{"threads", 1}, {"rows", take}, {"accumulators", 16}, {"stash", stash}}};
  }
  if (columns <= 16)
    return {"row", "item", {{"threads", 128}, {"rows", 1}, {"accumulators", 1}, {"stash", 0}}};
  const int64_t threads =
      std::min<int64_t>(rows < 2 * device.compute_units ? 1024 : 256,
                        std::max<int64_t>(32, power_of_two_at_least(ceil_div(columns, 4))));
  return {"row",
          "block",
          {{"threads", std::min<int64_t>(threads, device.max_threads_per_block)},
           {"accumulators", 4},
           {"stash", 0}}};
}

ScheduleSpace RowFamily::space(const Workload& workload, const std::vector<Fact>& facts,
                               const DeviceSpec& device) const {
  const Schedule chosen = default_schedule(workload, facts, device);
  const std::vector<int64_t> stash = stashes(workload) ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0};
  const auto choices = [&](const char* tactic, const char* name, std::vector<int64_t> list) {
    return chosen.tactic == tactic ? with_choice(std::move(list), chosen.get(name)) : list;
  };
  ScheduleSpace space;
  const std::vector<int64_t> items =
      device.is_cpu ? std::vector<int64_t>{1} : std::vector<int64_t>{32, 64, 128, 256};
  const std::vector<int64_t> rows =
      device.is_cpu ? std::vector<int64_t>{1, 4, 16, 64, 256} : std::vector<int64_t>{1};
  space.tactics.push_back({"row",
                           "item",
                           {{"threads", choices("item", "threads", items)},
                            {"rows", choices("item", "rows", rows)},
                            {"accumulators", choices("item", "accumulators", {1, 4, 8, 16, 32})},
                            {"stash", stash}}});
  const std::vector<int64_t> threads =
      device.is_cpu ? std::vector<int64_t>{8, 64} : std::vector<int64_t>{32, 64, 128, 256, 512, 1024};
  space.tactics.push_back({"row",
                           "block",
                           {{"threads", choices("block", "threads", threads)},
                            {"accumulators", choices("block", "accumulators", {1, 2, 4, 8})},
                            {"stash", stash}}});
  return space;
}

Refusal RowFamily::illegal(const Workload& workload, const Schedule& schedule,
                           const DeviceSpec& device) const {
  if (schedule.tactic != "item" && schedule.tactic != "block")
    return fmt::format("row has no tactic '{}'", schedule.tactic);
  const RowSchedule r = parse(schedule);
  if (!is_power_of_two(r.threads) || !is_power_of_two(r.accumulators) || r.rows < 1)
    return "threads and accumulators are powers of two, rows at least 1";
  if (r.stash && !stashes(workload)) return "no output can keep the last reduction's input";
  const auto count = static_cast<int64_t>(reduction_nodes(workload.graph).size());
  return refuse_device(workload, device, r.threads, r.block ? count * r.threads * 12 : 0);
}

ProgramText RowFamily::emit(const Workload& workload, const Schedule& schedule, const DeviceSpec&) const {
  return draft_of(workload, schedule, [&](ProgramDraft& d) { build(d, schedule); })->text();
}

LaunchPlan RowFamily::launch(const Workload& workload, const Schedule& schedule,
                             const std::vector<Fact>& facts) const {
  return draft_of(workload, schedule, [&](ProgramDraft& d) { build(d, schedule); })->launch(facts);
}

}  // namespace thrice::family
