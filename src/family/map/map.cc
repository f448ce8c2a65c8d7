#include "family/map/map.h"

#include <fmt/format.h>

#include <algorithm>

#include "family/choices.h"
#include "family/emitter.h"
#include "family/map/map_tile.h"

namespace thrice::family {

using ir::Dim;
using ir::ValueId;

namespace {

// Outputs of one shape share a kernel, so that their common parts are computed once.
std::vector<std::vector<size_t>> group_outputs(const ir::Graph& graph) {
  std::vector<std::vector<size_t>> groups;
  for (size_t o = 0; o < graph.outputs.size(); ++o) {
    const auto& shape = graph.value(graph.outputs[o]).type.shape;
    const auto same = [&](const std::vector<size_t>& group) {
      return graph.value(graph.outputs[group[0]]).type.shape == shape;
    };
    const auto it = std::find_if(groups.begin(), groups.end(), same);
    if (it != groups.end())
      it->push_back(o);
    else
      groups.push_back({o});
  }
  return groups;
}

void store_all(Emitter& e, const std::vector<size_t>& group, const Coords& coords) {
  std::vector<std::string> elements;
  for (const size_t o : group) elements.push_back(e.value(e.graph().outputs[o], coords));
  for (size_t k = 0; k < group.size(); ++k) e.store(group[k], coords, elements[k]);
}

KernelDraft flat_kernel(ProgramDraft& draft, const std::string& symbol, const std::vector<size_t>& group,
                        int64_t threads) {
  Emitter e(draft, symbol);
  const ValueId y = e.graph().outputs[group[0]];
  const Index n = e.elements(y);
  const Index i = e.index().var("i", ir::num_elements(e.graph().value(y).type.shape));
  e.line(fmt::format("const int i = TH_BLOCK * {} + TH_THREAD;", threads));
  e.open(fmt::format("if (i < {})", e.text(n)));
  store_all(e, group, e.split(i, y));
  e.close();
  return e.finish(
      [y, threads](const Facts& facts, artifact::Launch& launch) {
        set_grid(launch, ceil_div(elements_at(facts, y), threads), threads);
      },
      threads);
}

// Extents [0, cut) of `value` form the rows, [cut, rank) the columns.
struct Box {
  ValueId value;
  size_t cut;
  int64_t rows(const Facts& f) const { return range(f, 0, cut); }
  int64_t columns(const Facts& f) const {
    return range(f, cut, f[static_cast<size_t>(value)].type.shape.size());
  }
  static int64_t product(const std::vector<Dim>& shape, size_t b, size_t e) {
    int64_t n = 1;
    for (size_t a = b; a < e; ++a) n *= shape[a].value();
    return n;
  }
  int64_t range(const Facts& f, size_t b, size_t e) const {
    return product(f[static_cast<size_t>(value)].type.shape, b, e);
  }
};

struct VectorShape {
  int64_t threads = 1, items = 1, rows = 1;
  bool in_place = false;
};

// Writes the kernel with the axes from `cut` on joined; says whether its inner loop divides.
KernelDraft vector_kernel(ProgramDraft& draft, const std::string& symbol, const std::vector<size_t>& group,
                          size_t cut, const VectorShape& v, bool* divides) {
  Emitter e(draft, symbol);
  const ValueId y = e.graph().outputs[group[0]];
  const auto& shape = e.graph().value(y).type.shape;
  const std::vector<Index> dims = e.dims(y);
  const auto at = [](const auto& all, size_t b, size_t end) {
    using Vector = std::decay_t<decltype(all)>;
    return Vector(all.begin() + static_cast<std::ptrdiff_t>(b),
                  all.begin() + static_cast<std::ptrdiff_t>(end));
  };
  const Dim columns = ir::num_elements(at(shape, cut, shape.size()));
  const Dim rows = ir::num_elements(at(shape, 0, cut));
  const Box box{y, cut};
  const int64_t width = v.threads * v.items;
  const std::string ncols =
      e.text(e.index().extent(columns, [box](const Facts& f) { return box.columns(f); }));
  const bool one_row = rows.is_const() && rows.value() == 1;
  Coords outer(cut, e.constant(0));
  if (one_row) {
    e.line(fmt::format("const int c0 = TH_BLOCK * {};", width));
  } else {
    const std::string nrows = e.text(e.index().extent(rows, [box](const Facts& f) { return box.rows(f); }));
    const std::string tiles = e.text(e.index().extent(
        "column tiles", [box, width](const Facts& f) { return ceil_div(box.columns(f), width); }));
    e.line(fmt::format("const int c0 = TH_BLOCK % {} * {};", tiles, width));
    e.line(fmt::format("const int r0 = TH_BLOCK / {} * {};", tiles, v.rows));
    e.line(fmt::format("const int r1 = th_min_int(r0 + {}, {});", v.rows, nrows));
    e.line(fmt::format("const int c1 = th_min_int(c0 + {}, {});", width, ncols));
    const Index row = e.open_loop("r0", "r1", "1", rows);
    outer = e.index().split(row, at(dims, 0, cut));
  }
  if (one_row) e.line(fmt::format("const int c1 = th_min_int(c0 + {}, {});", width, ncols));
  // Rows' coordinates before the loop over columns, where they cost once a row.
  for (const Index c : outer) e.text(c);
  // One work-item a group: a CPU, whose compiler (LLVM) would find that the buffers overlap, and not
  // vectorise.
  if (v.in_place && v.threads == 1) e.line("#pragma clang loop vectorize(assume_safety)");
  const Index j = e.open_loop("c0 + TH_THREAD", "c1", fmt::format("{}", v.threads), columns);
  Coords coords = outer;
  for (const Index c : e.index().split(j, at(dims, cut, dims.size()))) coords.push_back(c);
  store_all(e, group, coords);
  if (divides != nullptr) *divides = e.divides(j);
  e.close();
  if (!one_row) e.close();
  return e.finish(
      [box, width, v](const Facts& f, artifact::Launch& launch) {
        set_grid(launch, ceil_div(box.columns(f), width) * ceil_div(box.rows(f), v.rows), v.threads);
      },
      v.threads);
}

// Elements that make 16 bytes of the widest type among the outputs and the operands of their size.
int64_t pack_lanes(const ir::Graph& graph) {
  size_t widest = 1;
  const Dim all = ir::num_elements(graph.value(graph.outputs[0]).type.shape);
  for (const ValueId y : graph.outputs) widest = std::max(widest, dtype_bytes(graph.value(y).type.dtype));
  for (const ValueId x : graph.inputs)
    if (ir::num_elements(graph.value(x).type.shape) == all)
      widest = std::max(widest, dtype_bytes(graph.value(x).type.dtype));
  return std::min<int64_t>(8, static_cast<int64_t>(16 / widest));
}

struct PackShape {
  int64_t threads = 1, items = 1, lanes = 1;
};

// A work-item takes `items` packs of neighbours of one row, all loaded before the first is computed. Rows
// whose length is no multiple of a pack begin within one, so that those between are where wide loads may be.
KernelDraft pack_kernel(ProgramDraft& draft, const std::string& symbol, const std::vector<size_t>& group,
                        size_t cut, const PackShape& p) {
  Emitter e(draft, symbol);
  const ValueId y = e.graph().outputs[group[0]];
  const auto& shape = e.graph().value(y).type.shape;
  const std::vector<Index> dims = e.dims(y);
  const auto at = static_cast<std::ptrdiff_t>(cut);
  const Dim columns = ir::num_elements(ir::Shape(shape.begin() + at, shape.end()));
  const Dim rows = ir::num_elements(ir::Shape(shape.begin(), shape.begin() + at));
  const bool one_row = rows.is_const() && rows.value() == 1;
  const bool ragged = !(columns.is_const() && columns.value() % p.lanes == 0);
  const Box box{y, cut};
  const int64_t lanes = p.lanes, slack = lanes - 1 + (ragged && !one_row ? lanes - 1 : 0);
  const auto packs_a_row = [box, lanes, slack](const Facts& f) {
    return box.columns(f) == 0 ? 0 : (box.columns(f) + slack) / lanes;
  };
  const auto packs = [box, packs_a_row](const Facts& f) { return packs_a_row(f) * box.rows(f); };
  const std::string n = e.text(e.index().extent(columns, [box](const Facts& f) { return box.columns(f); }));
  const std::string all = e.text(e.index().extent("packs", packs));
  const std::string each = columns.is_const() ? fmt::format("{}", (columns.value() + slack) / lanes)
                                              : e.text(e.index().extent("packs a row", packs_a_row));
  Emitter::Packs pack;
  pack.lane = e.index().var("col", columns);
  pack.lanes = lanes;
  pack.places = p.items;
  pack.place = "u";
  if (ragged) {
    pack.full = fmt::format("c >= 0 && c + {} <= {}", lanes, n);
    pack.first = "-c";
    pack.end = fmt::format("{} - c", n);
  }
  const Index row = one_row ? e.constant(0) : e.index().var("row", rows);
  pack.even = e.index().add(e.index().mul(row, e.product({dims.begin() + at, dims.end()})), pack.lane);
  const auto open_item = [&] {
    e.line("TH_UNROLL");
    e.open(fmt::format("for (int u = 0; u < {}; ++u)", p.items));
    e.line(fmt::format("const int i = TH_BLOCK * {} + u * {} + TH_THREAD;", p.threads * p.items, p.threads));
    e.open(fmt::format("if (i < {})", all));
    if (one_row) {
      e.line(fmt::format("const int c = i * {};", lanes));
      return;
    }
    e.line(fmt::format("const int row = (int)((th_u32)i / (th_u32){});", each));
    const std::string shift = ragged ? fmt::format(" - (row * {} & {})", n, lanes - 1) : "";
    e.line(fmt::format("const int c = (i - row * {}) * {}{};", each, lanes, shift));
  };
  const auto write = [&] {
    Coords coords = e.index().split(row, {dims.begin(), dims.begin() + at});
    for (const Index c : e.index().split(pack.lane, {dims.begin() + at, dims.end()})) coords.push_back(c);
    store_all(e, group, coords);
  };
  open_item();
  e.load_packs(pack, "c", write);
  e.close();
  e.close();
  open_item();
  e.use_packs(pack, "c", ragged ? fmt::format("(th_u32)col < (th_u32){}", n) : "", write);
  e.close();
  e.close();
  return e.finish(
      [packs, p](const Facts& f, artifact::Launch& launch) {
        set_grid(launch, ceil_div(packs(f), p.threads * p.items), p.threads);
      },
      p.threads);
}

// The leftmost cut whose inner loop has no division; the last axis alone when there is none.
size_t choose_cut(const Workload& workload, const std::vector<size_t>& group) {
  ProgramDraft draft(workload);
  const size_t rank = workload.graph.value(workload.graph.outputs[group[0]]).type.shape.size();
  for (size_t cut = 0; cut + 1 < rank; ++cut) {
    bool divides = false;
    vector_kernel(draft, "probe", group, cut, {}, &divides);
    if (!divides) return cut;
  }
  return rank == 0 ? 0 : rank - 1;
}

// The outputs of a region that turn do so in tiles; its other ones, if any, are written element by element.
KernelDraft turn_or_flat(ProgramDraft& draft, const std::string& symbol, const std::vector<size_t>& group,
                         int64_t threads) {
  const auto turn = find_turn(draft.workload(), group);
  return turn ? turn_kernel(draft, symbol, group, *turn, threads)
              : flat_kernel(draft, symbol, group, threads);
}

// Shared memory of the kernels that turn; nullopt where some outputs do not.
std::optional<int64_t> turn_bytes(const Workload& workload) {
  constexpr int64_t kStatic = 48 * 1024;  // more is to be had by launches that ask for it alone
  int64_t most = 0;
  for (const std::vector<size_t>& group : group_outputs(workload.graph)) {
    const auto turn = find_turn(workload, group);
    if (!turn || refuse_draft([&] {
          ProgramDraft draft(workload);
          turn_kernel(draft, "probe", group, *turn, 256);
        }))
      return std::nullopt;
    most = std::max(most, turn_shared_bytes(workload.graph, *turn));
  }
  return most <= kStatic ? std::optional(most) : std::nullopt;
}
bool has_turn(const Workload& workload) { return turn_bytes(workload).has_value(); }

void build(ProgramDraft& draft, const Schedule& schedule) {
  const auto groups = group_outputs(draft.graph());
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::string symbol = fmt::format("map{}", g);
    if (schedule.tactic == "flat")
      draft.kernels.push_back(flat_kernel(draft, symbol, groups[g], schedule.get("threads")));
    else if (schedule.tactic == "tile")
      draft.kernels.push_back(turn_or_flat(draft, symbol, groups[g], schedule.get("threads")));
    else if (schedule.tactic == "pack")
      draft.kernels.push_back(
          pack_kernel(draft, symbol, groups[g], choose_cut(draft.workload(), groups[g]),
                      {schedule.get("threads"), schedule.get("items"), schedule.get("lanes")}));
    else
      draft.kernels.push_back(vector_kernel(draft, symbol, groups[g], choose_cut(draft.workload(), groups[g]),
                                            {schedule.get("threads"), schedule.get("items"),
                                             schedule.get("rows"), schedule.get("in_place", 0) != 0},
                                            nullptr));
  }
}

// Columns and rows of the largest output at the facts that a schedule is chosen for.
constexpr int64_t kPackedElements = 32768;  // fewer take less time than a card needs to begin with them
struct Extent {
  int64_t rows = 1, columns = 1;
};
Extent largest(const Workload& workload, const std::vector<Fact>& input_facts) {
  const Facts facts = ir::bind(workload.graph, input_facts);
  Extent best{0, 0};
  for (const auto& group : group_outputs(workload.graph)) {
    const size_t cut = choose_cut(workload, group);
    const Box box{workload.graph.outputs[group[0]], cut};
    if (box.rows(facts) * box.columns(facts) >= best.rows * best.columns)
      best = {box.rows(facts), box.columns(facts)};
  }
  return best;
}

}  // namespace

Refusal MapFamily::match(const Workload& workload) const {
  if (auto refusal = refuse_inlining(workload)) return refusal;
  return refuse_draft([&] {
    ProgramDraft draft(workload);
    Schedule flat{"map", "flat", {{"threads", 64}}};
    build(draft, flat);
  });
}

Schedule MapFamily::default_schedule(const Workload& workload, const std::vector<Fact>& facts,
                                     const DeviceSpec& device) const {
  const Extent e = largest(workload, facts);
  if (device.is_cpu) {
    // A work-group of one item runs a plain loop that the CPU compiler vectorises; enough work a group to
    // hide its start (some 100 ns), at least a few groups a core.
    const int64_t total = std::max<int64_t>(1, e.rows * e.columns);
    const int64_t share = std::max<int64_t>(1024, total / (4 * device.compute_units));
    const int64_t work = std::min<int64_t>(16384, power_of_two_at_least(share));
    const int64_t items = std::min(work, power_of_two_at_least(std::max<int64_t>(1, e.columns)));
    return {"map",
            "vector",
            {{"threads", 1},
             {"items", std::max<int64_t>(items, 16)},
             {"rows", std::max<int64_t>(1, work / items)}}};
  }
  if (device.api == target::Api::kCuda && e.rows * e.columns >= kPackedElements && has_turn(workload))
    return {"map", "tile", {{"threads", 256}}};
  const int64_t lanes = pack_lanes(workload.graph);
  if (device.api == target::Api::kCuda && lanes > 1 && e.columns >= 4 * lanes &&
      e.rows * e.columns >= kPackedElements) {
    const int64_t packs = e.rows * e.columns / lanes, full = int64_t{2048} * device.compute_units;
    return {"map", "pack", {{"threads", 256}, {"items", packs >= 4 * full ? 2 : 1}, {"lanes", lanes}}};
  }
  if (e.columns < 64 || e.rows == 0) return {"map", "flat", {{"threads", 256}}};
  const int64_t threads = std::min<int64_t>(256, power_of_two_at_least(e.columns));
  const int64_t blocks = e.rows * ceil_div(e.columns, threads);
  const int64_t items = blocks >= 16 * device.compute_units ? 4 : 1;
  return {"map", "vector", {{"threads", threads}, {"items", items}, {"rows", 1}}};
}

ScheduleSpace MapFamily::space(const Workload& workload, const std::vector<Fact>& facts,
                               const DeviceSpec& device) const {
  const Schedule chosen = default_schedule(workload, facts, device);
  ScheduleSpace space;
  const std::vector<int64_t> kThreads{32, 64, 128, 256, 512};
  const bool flat = chosen.tactic == "flat";
  space.tactics.push_back(
      {"map", "flat", {{"threads", flat ? with_choice(kThreads, chosen.get("threads")) : kThreads}}});
  const auto with = [&](std::vector<int64_t> choices, const char* name) {
    return chosen.tactic != "vector" ? choices : with_choice(std::move(choices), chosen.get(name));
  };
  if (device.is_cpu)
    space.tactics.push_back({"map",
                             "vector",
                             {{"threads", with({1, 8}, "threads")},
                              {"items", with({16, 64, 256, 1024, 4096, 16384}, "items")},
                              {"rows", with({1, 4, 16, 64, 256}, "rows")}}});
  else
    space.tactics.push_back({"map",
                             "vector",
                             {{"threads", with({32, 64, 128, 256, 512}, "threads")},
                              {"items", with({1, 2, 4, 8}, "items")},
                              {"rows", with({1, 2, 4}, "rows")}}});
  if (device.api == target::Api::kCuda && has_turn(workload))
    space.tactics.push_back({"map", "tile", {{"threads", {256}}}});
  if (device.api == target::Api::kCuda)
    space.tactics.push_back(
        {"map", "pack", {{"threads", {64, 128, 256, 512}}, {"items", {1, 2, 4}}, {"lanes", {2, 4, 8}}}});
  return space;
}

Refusal MapFamily::illegal(const Workload& workload, const Schedule& schedule,
                           const DeviceSpec& device) const {
  if (schedule.tactic != "flat" && schedule.tactic != "vector" && schedule.tactic != "pack" &&
      schedule.tactic != "tile")
    return fmt::format("map has no tactic '{}'", schedule.tactic);
  if (schedule.tactic == "tile") {
    if (device.api != target::Api::kCuda) return "tiles that turn are written for CUDA";
    if (schedule.get("threads") != 256) return "tiles that turn take 256 threads";
    const auto shared = turn_bytes(workload);
    if (!shared) return "no operand's neighbours lie across the result's, or too many do";
    return refuse_device(workload, device, 256, *shared);
  }
  if (schedule.tactic == "pack") {
    if (device.api != target::Api::kCuda) return "packs are written for CUDA";
    if (!is_power_of_two(schedule.get("lanes")) || schedule.get("lanes") > 16)
      return "lanes are 1, 2, 4, 8 or 16";
  }
  if (schedule.get("in_place", 0) != 0 && shares(workload, schedule).empty())
    return "no result can lie where an operand lies";
  const int64_t threads = schedule.get("threads");
  if (threads < 1 || schedule.get("items", 1) < 1 || schedule.get("rows", 1) < 1)
    return "threads, items and rows are at least 1";
  return refuse_device(workload, device, threads, 0);
}

ProgramText MapFamily::emit(const Workload& workload, const Schedule& schedule, const DeviceSpec&) const {
  const auto draft = draft_of(workload, schedule, [&](ProgramDraft& d) { build(d, schedule); });
  ProgramText program = draft->text();
  if (schedule.get("in_place", 0) != 0) drop_restrict(*draft, shares(workload, schedule), program);
  return program;
}

std::vector<Share> MapFamily::shares(const Workload& workload, const Schedule& schedule) const {
  if (schedule.tactic == "tile" || group_outputs(workload.graph).size() != 1) return {};
  return elementwise_shares(workload);
}

LaunchPlan MapFamily::launch(const Workload& workload, const Schedule& schedule,
                             const std::vector<Fact>& facts) const {
  return draft_of(workload, schedule, [&](ProgramDraft& d) { build(d, schedule); })->launch(facts);
}

}  // namespace thrice::family
