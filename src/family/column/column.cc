#include "family/column/column.h"

#include <fmt/format.h>

#include <optional>

#include "family/choices.h"
#include "family/column/column_kernel.h"
#include "family/column/column_split.h"
#include "family/row_kernel.h"

namespace thrice::family {

namespace {

void build(ProgramDraft& draft, const Schedule& s) {
  const RowForm form = analyse_rows(draft);
  if (s.tactic == "lanes") {
    draft.kernels.push_back(column_kernel(draft, form, {s.get("threads"), s.get("lanes")}, "column0"));
    return;
  }
  if (s.tactic == "split") {
    column_split_kernels(draft, form, {s.get("lanes"), s.get("warps"), s.get("splits")});
    return;
  }
  RowSchedule general;
  general.threads = s.get("threads");
  general.rows = s.get("rows");
  general.accumulators = s.get("accumulators");
  draft.kernels.push_back(row_kernel(draft, form, general, "column0"));
}

bool has_lanes(const Workload& workload) {
  return !refuse_draft([&] {
    ProgramDraft draft(workload);
    column_kernel(draft, analyse_rows(draft), {}, "probe");
  });
}

bool splits(const Workload& workload) {
  return !refuse_draft([&] {
    ProgramDraft draft(workload);
    column_split_kernels(draft, analyse_rows(draft), {});
  });
}

constexpr int64_t kMostSplits = 1024;

// Where columns alone would leave a card idle: blocks share the rows, in parts that are worth a block's
// start.
std::optional<ColumnSplit> choose_split(const Workload& workload, const RowForm& form, const Facts& facts,
                                        const DeviceSpec& device) {
  const int64_t kept = kept_columns(form, facts), columns = form.row_count(facts);
  const int64_t rows = form.column_count(facts);
  constexpr int64_t kWarp = 32, kLeastRows = 64, kBlocks = 6;  // a multiprocessor's, of eight warps
  if (device.api != target::Api::kCuda || kept < kWarp || rows < 2 * kLeastRows ||
      columns >= int64_t{256} * device.compute_units || !splits(workload))
    return std::nullopt;
  ColumnSplit split;
  size_t widest = 2;
  for (const ir::ValueId v : workload.graph.inputs)
    if (!workload.graph.value(v).type.shape.empty())
      widest = std::max(widest, dtype_bytes(workload.graph.value(v).type.dtype));
  split.lanes = static_cast<int64_t>(16 / widest);
  while (split.lanes > 1 && kept < kWarp * split.lanes) split.lanes /= 2;
  const int64_t tiles = columns / kept * ceil_div(kept, kWarp * split.lanes);
  while (tiles * split.splits < kBlocks * device.compute_units && rows / split.splits >= 2 * kLeastRows &&
         split.splits < kMostSplits)
    split.splits *= 2;
  return split;
}

}  // namespace

Refusal ColumnFamily::match(const Workload& workload) const {
  if (auto refusal = refuse_inlining(workload, reduction_nodes(workload.graph))) return refusal;
  return refuse_draft([&] {
    ProgramDraft draft(workload);
    row_kernel(draft, analyse_rows(draft), {}, "column0");
  });
}

Schedule ColumnFamily::default_schedule(const Workload& workload, const std::vector<Fact>& input_facts,
                                        const DeviceSpec& device) const {
  const Facts facts = ir::bind(workload.graph, input_facts);
  ProgramDraft draft(workload);
  const RowForm form = analyse_rows(draft);
  const int64_t kept = kept_columns(form, facts);
  const int64_t rows = std::max<int64_t>(1, form.row_count(facts));
  const int64_t columns = std::max<int64_t>(1, form.column_count(facts));
  if (const auto split = choose_split(workload, form, facts, device))
    return {"column", "split", {{"lanes", split->lanes}, {"warps", split->warps}, {"splits", split->splits}}};
  if (kept >= 4 && has_lanes(workload)) {
    if (!device.is_cpu) return {"column", "lanes", {{"threads", kept >= 128 ? 128 : 32}, {"lanes", 1}}};
    // Enough work-groups for all cores, else as many neighbouring columns as stay in registers and cache
    // lines.
    int64_t lanes = 64;
    while (lanes > 16 && rows / lanes < 2 * device.compute_units) lanes /= 2;
    return {"column", "lanes", {{"threads", 1}, {"lanes", lanes}}};
  }
  const int64_t take =
      device.is_cpu
          ? power_of_two_at_least(std::min<int64_t>(std::max<int64_t>(1, 8192 / columns),
                                                    std::max<int64_t>(1, rows / (4 * device.compute_units))))
          : 1;
  return {"column",
          "general",
          {{"threads", device.is_cpu ? 1 : 64}, {"rows", take}, {"accumulators", device.is_cpu ? 16 : 4}}};
}

ScheduleSpace ColumnFamily::space(const Workload& workload, const std::vector<Fact>& facts,
                                  const DeviceSpec& device) const {
  const Schedule chosen = default_schedule(workload, facts, device);
  const auto choices = [&](const char* tactic, const char* name, std::vector<int64_t> list) {
    return chosen.tactic == tactic ? with_choice(std::move(list), chosen.get(name)) : list;
  };
  using List = std::vector<int64_t>;
  ScheduleSpace space;
  if (has_lanes(workload))
    space.tactics.push_back(
        {"column",
         "lanes",
         {{"threads", choices("lanes", "threads", device.is_cpu ? List{1} : List{32, 64, 128, 256})},
          {"lanes", choices("lanes", "lanes", device.is_cpu ? List{16, 32, 64, 128, 256} : List{1, 2, 4})}}});
  space.tactics.push_back(
      {"column",
       "general",
       {{"threads", choices("general", "threads", device.is_cpu ? List{1} : List{32, 64, 128, 256})},
        {"rows", choices("general", "rows", device.is_cpu ? List{1, 4, 16, 64} : List{1})},
        {"accumulators", choices("general", "accumulators", List{1, 4, 16})}}});
  if (device.api == target::Api::kCuda && splits(workload))
    space.tactics.push_back({"column",
                             "split",
                             {{"lanes", choices("split", "lanes", List{1, 2, 4, 8})},
                              {"warps", List{4, 8, 16}},
                              {"splits", choices("split", "splits", List{1, 4, 16, 64})}}});
  return space;
}

Refusal ColumnFamily::illegal(const Workload& workload, const Schedule& schedule,
                              const DeviceSpec& device) const {
  if (schedule.tactic == "split") {
    const int64_t lanes = schedule.get("lanes"), warps = schedule.get("warps"),
                  parts = schedule.get("splits");
    if (device.api != target::Api::kCuda) return "columns are shared among blocks for CUDA only";
    if (!splits(workload)) return "not one reduction of neighbouring axes with one element a column";
    if (!is_power_of_two(lanes) || lanes > 16 || warps < 1 || parts < 1 || parts > kMostSplits)
      return fmt::format("lanes are a power of two up to 16, warps and splits at least 1, splits at most {}",
                         kMostSplits);
    return refuse_device(workload, device, 32 * warps, 32 * warps * lanes * 8);
  }
  if (schedule.tactic != "lanes" && schedule.tactic != "general")
    return fmt::format("column has no tactic '{}'", schedule.tactic);
  if (schedule.tactic == "lanes") {
    if (!has_lanes(workload)) return "no trailing axis is kept by all reductions";
    if (schedule.get("lanes") < 1 || schedule.get("lanes") > 1024) return "lanes are 1 to 1024";
  } else if (!is_power_of_two(schedule.get("accumulators")) || schedule.get("rows") < 1) {
    return "accumulators are a power of two, rows at least 1";
  }
  if (schedule.get("threads") < 1) return "threads are at least 1";
  return refuse_device(workload, device, schedule.get("threads"), 0);
}

ProgramText ColumnFamily::emit(const Workload& workload, const Schedule& schedule, const DeviceSpec&) const {
  return draft_of(workload, schedule, [&](ProgramDraft& d) { build(d, schedule); })->text();
}

LaunchPlan ColumnFamily::launch(const Workload& workload, const Schedule& schedule,
                                const std::vector<Fact>& facts) const {
  return draft_of(workload, schedule, [&](ProgramDraft& d) { build(d, schedule); })->launch(facts);
}

}  // namespace thrice::family
