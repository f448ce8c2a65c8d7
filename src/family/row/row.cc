#include "family/row/row.h"

#include <fmt/format.h>

#include <optional>

#include "family/choices.h"
#include "family/row/row_tile.h"
#include "family/row_kernel.h"

namespace thrice::family {

using ir::ValueId;

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

RowTile parse_tile(const Schedule& s) {
  return {s.get("threads"), s.get("rows"), s.get("lanes"), s.get("keep", 0) != 0};
}

void build(ProgramDraft& draft, const Schedule& schedule) {
  const RowForm form = analyse_rows(draft);
  if (schedule.tactic == "tile") {
    draft.kernels.push_back(row_tile_kernel(draft, form, parse_tile(schedule), "row0"));
    return;
  }
  draft.kernels.push_back(row_kernel(draft, form, parse(schedule), "row0"));
}

bool stashes(const Workload& workload) {
  ProgramDraft draft(workload);
  return can_stash(draft, analyse_rows(draft));
}

// Operands that a work-item of a tile holds, each in packs of `lanes`, in registers of 4 bytes.
int64_t tile_registers(const ProgramDraft& draft, const RowForm& form, const RowTile& tile, int64_t columns) {
  int64_t bytes = 0;
  for (const ValueId v : draft.graph().inputs) {
    const auto& type = draft.graph().value(v).type;
    const ir::Dim all = ir::num_elements(type.shape);
    const bool row_alone = all.is_const() && all.value() <= columns;  // weights are read where they are used
    if (!row_alone && !draft.input_name(v).empty() && all.str() != form.rows.str())
      bytes += static_cast<int64_t>(dtype_bytes(type.dtype));
  }
  return bytes * tile.lanes * tile_packs(columns, tile) / 4;
}

constexpr int64_t kTileRegisters =
    64;  // more would spill, or leave too few work-items for the memory's latency

// Elements that make 16 bytes of the widest operand that has more than one element a row.
int64_t lanes_of(const ir::Graph& graph, const RowForm& form) {
  size_t widest = 2;
  for (const auto* values : {&graph.inputs, &graph.outputs})
    for (const ValueId v : *values) {
      const auto& type = graph.value(v).type;
      if (!type.shape.empty() && !(ir::num_elements(type.shape) == form.rows))
        widest = std::max(widest, dtype_bytes(type.dtype));
    }
  return static_cast<int64_t>(16 / widest);
}

// Whether an output reads what the last reduction computes of each element, at that element.
bool keeps(const Workload& workload, const RowForm& form, RowTile tile) {
  tile.keep = true;
  bool reads = false;
  const bool refused =
      refuse_draft([&] {
        ProgramDraft draft(workload);
        const std::string text = row_tile_kernel(draft, form, tile, "probe").text;
        const size_t written = text.find("kept[u *");
        reads = written != std::string::npos && text.find("kept[u *", written + 1) != std::string::npos;
      }).has_value();
  return reads && !refused;
}

// A tile whose work-items hold a few packs each: two where rows are few, so that latency is hidden by
// threads; at most four, or eight of a row that a whole block of 1024 or one warp has.
std::optional<RowTile> choose_tile(const ProgramDraft& draft, const RowForm& form, const Facts& facts,
                                   const DeviceSpec& device) {
  const int64_t columns = tile_columns(draft, form);
  if (device.api != target::Api::kCuda || columns < 32) return std::nullopt;
  RowTile tile;
  tile.lanes = lanes_of(draft.graph(), form);
  while (tile.lanes > 1 && columns < 32 * tile.lanes) tile.lanes /= 2;
  const bool few = form.row_count(facts) < 8 * device.compute_units;
  const int64_t packs = ceil_div(columns, tile.lanes);
  while (tile.threads < 1024 && ceil_div(packs, tile.threads) > (few ? 2 : tile.threads == 32 ? 6 : 4))
    tile.threads *= 2;
  if (tile.threads == 32) tile.rows = few ? 4 : 8;
  // Packs at the ends of odd rows cost each element a test: only within a warp is that less than a second
  // pass.
  if (columns % tile.lanes != 0 && tile.threads > 32) return std::nullopt;
  if (tile_packs(columns, tile) > 8 || tile_registers(draft, form, tile, columns) > kTileRegisters)
    return std::nullopt;
  tile.keep =
      keeps(draft.workload(), form, tile) &&
      tile_packs(columns, tile) * tile.lanes + tile_registers(draft, form, tile, columns) <= kTileRegisters;
  return tile;
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
  if (const auto tile = choose_tile(draft, form, facts, device))
    return {"row",
            "tile",
            {{"threads", tile->threads}, {"rows", tile->rows}, {"lanes", tile->lanes}, {"keep", tile->keep}}};
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
  ProgramDraft draft(workload);
  if (device.api == target::Api::kCuda && tile_columns(draft, analyse_rows(draft)) > 0)
    space.tactics.push_back({"row",
                             "tile",
                             {{"threads", {32, 64, 128, 256, 512, 1024}},
                              {"rows", {1, 2, 4, 8}},
                              {"lanes", {1, 2, 4, 8}},
                              {"keep", {0, 1}}}});
  return space;
}

Refusal RowFamily::illegal(const Workload& workload, const Schedule& schedule,
                           const DeviceSpec& device) const {
  if (schedule.tactic == "tile") {
    if (device.api != target::Api::kCuda) return "tiles of rows are written for CUDA";
    ProgramDraft draft(workload);
    const RowForm form = analyse_rows(draft);
    const RowTile tile = parse_tile(schedule);
    const int64_t columns = tile_columns(draft, form);
    if (columns == 0) return "rows are not of one length that is known beforehand";
    if (!is_power_of_two(tile.threads) || tile.threads < 32 || !is_power_of_two(tile.lanes) ||
        tile.lanes > 16)
      return "threads are a power of two from 32 on, lanes one up to 16";
    if (tile.rows < 1 || (tile.rows > 1 && tile.threads > 32)) return "only warps share a block";
    if (tile_packs(columns, tile) > 16 || tile_registers(draft, form, tile, columns) > 2 * kTileRegisters)
      return "a work-item would hold too much of a row";
    if (tile.keep && !keeps(workload, form, tile)) return "no output reads what the last reduction computes";
    return refuse_device(workload, device, tile.threads * tile.rows, 0);
  }
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
