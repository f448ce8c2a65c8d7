#include "family/attention/attention_split.h"

#include <fmt/format.h>

#include <algorithm>

#include "family/choices.h"
#include "family/template.h"

namespace thrice::family {

using ir::Dim;
using ir::Op;
using ir::ValueId;

namespace {

constexpr int64_t kMostRows = 16;    // rows a head: from here on tensor cores are worth their tiles
constexpr int64_t kLeastKeys = 256;  // below, a second launch costs more than the keys
constexpr int64_t kMostSums = 64;    // registers for sums a work-item
constexpr const char* kText = "portable/attention_split.h";

// The axis of a reshape's operand that runs fastest within its result's `axis`; -1 where there is none.
int fastest_inside(const ir::Shape& from, const ir::Shape& to, size_t axis) {
  Dim behind(1), rest(1);
  for (size_t a = axis + 1; a < to.size(); ++a) behind = behind * to[a];
  for (size_t a = from.size(); a-- > 0;) {
    const bool divides = from[a].is_const() && to[axis].is_const() && from[a].value() > 0 &&
                         to[axis].value() % from[a].value() == 0;
    // An axis of one element has no index that could run.
    if (rest == behind && (from[a] == to[axis] || divides) && !(from[a] == Dim(1)))
      return static_cast<int>(a);
    rest = rest * from[a];
  }
  return -1;
}

// How many heads that follow each other read one head of the operand, by views that the graph shows.
int64_t heads_of_one(const ir::Graph& graph, const AttentionForm& form, ValueId value) {
  const auto& heads = graph.value(form.logits).type.shape;
  const size_t rank = heads.size();
  if (rank < 3 || graph.value(value).type.shape.size() != rank || !heads[rank - 3].is_const()) return 1;
  const int64_t all = heads[rank - 3].value();
  auto axis = static_cast<int>(rank) - 3;
  if (graph.value(value).type.shape[rank - 3] == Dim(1)) return std::max<int64_t>(all, 1);
  for (ir::NodeId n = graph.value(value).producer; n >= 0; n = graph.value(value).producer) {
    const ir::Node& node = graph.nodes[static_cast<size_t>(n)];
    const auto& to = graph.value(value).type.shape;
    ValueId from = node.inputs[0];
    if (node.op == Op::transpose) {
      axis = static_cast<int>(node.ints_attr("perm")[static_cast<size_t>(axis)]);
    } else if (node.op == Op::reshape) {
      axis = fastest_inside(graph.value(from).type.shape, to, static_cast<size_t>(axis));
    } else if (node.op == Op::expand) {
      const auto& inner = graph.value(from).type.shape;
      const Dim& spread = to[static_cast<size_t>(axis)];
      axis -= static_cast<int>(to.size()) - static_cast<int>(inner.size());
      if (axis < 0 || !(inner[static_cast<size_t>(axis)] == spread))
        return spread.is_const() && spread.value() > 0 && all % spread.value() == 0 ? spread.value() : 1;
    } else if (node.op == Op::mul) {
      const size_t number = graph.value(node.inputs[0]).constant ? 0 : 1;
      const auto& constant = graph.value(node.inputs[number]).constant;
      from = node.inputs[1 - number];
      if (!constant || constant->size() != 1 || !(graph.value(from).type.shape == to)) return 1;
    } else {
      return 1;
    }
    if (axis < 0) return 1;
    value = from;
  }
  return 1;
}

int64_t shared_heads(const ir::Graph& graph, const AttentionForm& form) {
  const int64_t k = heads_of_one(graph, form, form.k.value);
  return k == heads_of_one(graph, form, form.v.value) ? k : 1;
}

// Neighbours along the depth that one load of 16 bytes takes; 1 where k or v do not lie so.
int64_t widest_load(const AttentionForm& form) {
  if (form.k.in_fours && form.v.in_fours) return 4;
  return form.k.in_eights && form.v.in_eights ? 8 : 1;
}

struct SplitSizes {
  int64_t keys, rows, lanes, vector, threads, depth, width;
  SplitSizes(const AttentionForm& form, const Schedule& s)
      : keys(s.get("keys")),
        rows(s.get("rows")),
        lanes(s.get("lanes")),
        vector(s.get("vector")),
        threads(s.get("threads")),
        depth(form.depth),
        width(form.width) {}
  int64_t pitch() const { return lanes > 1 ? lanes + 1 : 1; }
  int64_t columns() const { return std::min(width / vector, threads); }
  int64_t v_groups() const { return threads / columns(); }
  int64_t parts() const { return std::max(rows * keys * pitch(), v_groups() * rows * width); }
  int64_t shared_bytes() const { return 4 * (rows * (depth + keys) + threads + parts()); }
};

// Rows that read one head of k and v.
Extent rows_together(const AttentionForm& form, int64_t shared) {
  return {Dim(shared) * form.rows.dim,
          [form, shared](const Facts& f) { return shared * form.rows.source(f); }};
}

int64_t blocks_of(const AttentionForm& form, const Facts& f, int64_t shared, int64_t rows, int64_t keys) {
  return form.batches.source(f) / shared * ceil_div(shared * form.rows.source(f), rows) *
         ceil_div(form.keys.source(f), keys);
}

// x[0 .. vector) from the operand at (z, row, along).
void write_load(Emitter& e, const ProgramDraft& draft, const AttentionForm& form,
                const AttentionOperand& operand, int64_t vector, Index z, Index row, Index along) {
  e.line(fmt::format("float x[{}];", vector));
  if (vector == 1) {
    e.line(fmt::format("x[0] = {};", operand_element(e, form, operand, z, row, along)));
    return;
  }
  const std::string from = operand_address(e, draft, form, operand, z, row, along);
  e.line(fmt::format("const {0} pack = *(TH_GLOBAL const {0}*){1};", vector == 4 ? "float4" : "uint4", from));
  const DType dtype = e.graph().value(operand.source).type.dtype;
  const char* wide = dtype == DType::kF16 ? "th_f32_of_f16" : "th_f32_of_bf16";
  for (int64_t i = 0; i < 4; ++i) {
    const char part = "xyzw"[i];
    if (vector == 4) {
      e.line(fmt::format("x[{}] = pack.{};", i, part));
      continue;
    }
    e.line(fmt::format("x[{}] = {}((th_u16)(pack.{} & 0xffffu));", 2 * i, wide, part));
    e.line(fmt::format("x[{}] = {}((th_u16)(pack.{} >> 16));", 2 * i + 1, wide, part));
  }
}

void write_partial(ProgramDraft& draft, const AttentionForm& form, const SplitSizes& s, int sums, int tops) {
  Emitter e(draft, "attention_split");
  const int64_t shared = shared_heads(draft.graph(), form);
  const Extent together = rows_together(form, shared);
  const Index z = e.index().var("z", form.batches.dim), zk = e.index().var("zk", form.batches.dim),
              m = e.index().var("m", form.rows.dim), n = e.index().var("n", form.keys.dim),
              d = e.index().var("d", Dim(form.depth)), w = e.index().var("w", Dim(form.width));
  Template t(kText);
  t.set("SPLITS", tile_count(e, "splits", form.keys, s.keys));
  t.set("GROUPS", tile_count(e, "groups", together, s.rows));
  t.set("SHARED", shared).set("ALL_ROWS", extent_text(e, together));
  t.set("M", extent_text(e, form.rows)).set("N", extent_text(e, form.keys));
  t.set("KEYS", s.keys).set("ROWS", s.rows).set("LANES", s.lanes).set("VECTOR", s.vector);
  t.set("THREADS", s.threads).set("DEPTH", s.depth).set("WIDTH", s.width).set("PITCH", s.pitch());
  t.set("EACH", s.threads / s.rows).set("COLUMNS", s.columns()).set("V_GROUPS", s.v_groups());
  t.set("Q", e.local_array("float", s.rows * s.depth)).set("PARTS", e.local_array("float", s.parts()));
  t.set("SCORES", e.local_array("float", s.rows * s.keys)).set("SHARES", e.local_array("float", s.threads));
  t.set("SUMS", draft.temporary_name(sums)).set("TOPS", draft.temporary_name(tops));
  t.hole("window", [&] {
    if (form.has_window()) t.write(e, "window");
  });
  t.hole("row", [&] {
    const auto [first, end] = window_of_row(e, form, z, m);
    e.line(fmt::format("const int own_from = {};", first));
    e.line(fmt::format("const int own_to = {};", end));
  });
  t.hole("load_q", [&] { e.line(fmt::format("element = {};", operand_element(e, form, form.q, z, m, d))); });
  t.hole("load_k", [&] { write_load(e, draft, form, form.k, s.vector, zk, n, d); });
  t.hole("load_v", [&] { write_load(e, draft, form, form.v, s.vector, zk, n, w); });
  t.hole("logit",
         [&] { e.line(fmt::format("const float logit = {};", logit_element(e, form, z, m, n, "score"))); });
  t.write(e, "partial");
  draft.kernels.push_back(e.finish(
      [form, s, shared](const Facts& f, artifact::Launch& launch) {
        set_grid(launch, blocks_of(form, f, shared, s.rows, s.keys), s.threads);
      },
      s.threads));
}

void write_combine(ProgramDraft& draft, const AttentionForm& form, const SplitSizes& s, int sums, int tops) {
  Emitter e(draft, "attention_combine");
  const Index z = e.index().var("z", form.batches.dim), m = e.index().var("m", form.rows.dim),
              w = e.index().var("w", Dim(form.width));
  const Index rows = e.index().mul(extent_index(e, form.batches), extent_index(e, form.rows));
  Template t(kText);
  t.set("COUNT", e.text(e.index().mul(rows, e.constant(form.width)))).set("WIDTH", form.width);
  t.set("SPLITS", tile_count(e, "splits", form.keys, s.keys)).set("M", extent_text(e, form.rows));
  t.set("THREADS", s.threads);
  t.set("SUMS", draft.temporary_name(sums)).set("TOPS", draft.temporary_name(tops));
  // Nothing to attend to is zero; a row whose scores are all -Inf is NaN or, replaced, zero.
  t.set("HAS_SHARE", form.nan_to_zero ? "total > 0.0f" : fmt::format("{} > 0", extent_text(e, form.keys)));
  t.hole("store", [&] { store_element(e, form, z, m, w, "y"); });
  t.write(e, "combine");
  draft.kernels.push_back(e.finish(
      [form, s](const Facts& f, artifact::Launch& launch) {
        const int64_t count = form.batches.source(f) * form.rows.source(f) * s.width;
        set_grid(launch, ceil_div(count, s.threads), s.threads);
      },
      s.threads));
}

}  // namespace

void emit_attention_split(ProgramDraft& draft, const AttentionForm& form, const Schedule& schedule) {
  const SplitSizes s(form, schedule);
  const auto scratch = [&](int64_t each) {
    return draft.add_temporary(DType::kF32, [form, each, keys = s.keys](const Facts& f) {
      return form.batches.source(f) * form.rows.source(f) * ceil_div(form.keys.source(f), keys) * each;
    });
  };
  const int sums = scratch(s.width), tops = scratch(2);
  write_partial(draft, form, s, sums, tops);
  write_combine(draft, form, s, sums, tops);
}

bool may_split_attention(const AttentionForm& form, const Facts& facts) {
  return form.rows.source(facts) <= kMostRows;
}

bool wants_attention_split(const AttentionForm& form, const Facts& facts, const DeviceSpec& device) {
  // On a CPU the parts of attention are faster than any region of it.
  if (device.is_cpu || !may_split_attention(form, facts) || form.keys.source(facts) < kLeastKeys)
    return false;
  return form.batches.source(facts) < 2 * device.compute_units;
}

Schedule default_attention_split(const Workload& workload, const AttentionForm& form, const Facts& facts,
                                 const DeviceSpec& device) {
  const int64_t shared = shared_heads(workload.graph, form), vector = widest_load(form);
  const int64_t together = std::max<int64_t>(1, shared * form.rows.source(facts));
  int64_t rows = std::min<int64_t>(8, power_of_two_at_least(together)), keys = 256, lanes = 8;
  while (lanes > 1 && lanes > form.depth / vector) lanes /= 2;
  const auto blocks = [&] { return blocks_of(form, facts, shared, rows, keys); };
  while (keys > 64 && blocks() < 2 * device.compute_units) keys /= 2;
  while (keys < 512 && blocks() >= 8 * device.compute_units) keys *= 2;
  const auto made = [&] {
    return Schedule{"attention",
                    "split",
                    {{"keys", keys}, {"rows", rows}, {"lanes", lanes}, {"vector", vector}, {"threads", 128}}};
  };
  while (keys > 64 && refuse_attention_split(workload, form, made(), device)) keys /= 2;
  while (rows > 1 && refuse_attention_split(workload, form, made(), device)) rows /= 2;
  return made();
}

std::vector<artifact::Parameter> attention_split_parameters(const Workload&, const AttentionForm& form,
                                                            const Schedule& chosen) {
  const auto with = [&](const char* name, std::vector<int64_t> choices) {
    return artifact::Parameter{name, with_choice(std::move(choices), chosen.get(name))};
  };
  return {with("keys", {64, 128, 256, 512}), with("rows", {1, 2, 4, 8, 16}), with("lanes", {1, 2, 4, 8, 16}),
          with("vector", {1, widest_load(form)}), with("threads", {64, 128, 256})};
}

Refusal refuse_attention_split(const Workload& workload, const AttentionForm& form, const Schedule& schedule,
                               const DeviceSpec& device) {
  for (const char* name : {"rows", "lanes", "threads"})
    if (!is_power_of_two(schedule.get(name))) return fmt::format("{} is a power of two", name);
  if (schedule.get("keys") < 1) return "a block has at least one key";
  if (schedule.get("vector") != 1 && schedule.get("vector") != widest_load(form))
    return fmt::format("keys and values lie in memory for loads of {} elements, not of {}", widest_load(form),
                       schedule.get("vector"));
  const SplitSizes s(form, schedule);
  if (s.threads % s.lanes != 0 || s.threads % s.rows != 0)
    return "lanes and rows share the work-items of a block evenly";
  if (s.rows * s.vector > kMostSums)
    return fmt::format("{} sums a work-item; registers hold {}", s.rows * s.vector, kMostSums);
  return refuse_device(workload, device, s.threads, s.shared_bytes());
}

}  // namespace thrice::family
