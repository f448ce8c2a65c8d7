#include "family/attention/attention_wgmma.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "family/attention/attention_row.h"
#include "family/attention/attention_scores.h"
#include "family/choices.h"
#include "family/gemm_library.h"
#include "family/gemm_wgmma.h"
#include "family/library_choice.h"
#include "family/scalar.h"
#include "family/template.h"

namespace thrice::family {

namespace {

constexpr int64_t kPanel = 64;  // columns: one 128-byte swizzle line
constexpr int64_t kSharedBytes = 227 * 1024;
constexpr int64_t kGroupBytes =
    24 << 20;  // keys and values of heads at work at one time, in the second cache
constexpr double kLog2E = 1.4426950408889634;

struct Tiles {
  int64_t groups, bn, slots, turns, blocks;
  int64_t depth, width;
  bool stores_by_map;
  int64_t bm() const { return 64 * groups; }
  int64_t threads() const { return 128 * (groups + 1); }
  int64_t slot_k() const { return bn * depth * 2; }
  int64_t slot_v() const { return bn * width * 2; }
  int64_t ring_k() const { return bm() * depth * 2; }
  int64_t ring_v() const { return ring_k() + slots * slot_k(); }
  int64_t end() const { return ring_v() + slots * slot_v(); }
  int64_t barrier_bytes() const { return 16 + 32 * slots; }
  // Results have a room of their own where there is one, else that of q.
  bool has_staging() const {
    return stores_by_map && 1024 + end() + bm() * width * 2 + barrier_bytes() <= kSharedBytes;
  }
  int64_t barriers() const { return end() + (has_staging() ? bm() * width * 2 : 0); }
  int64_t shared_bytes() const { return 1024 + barriers() + barrier_bytes(); }
  // Scores, powers in halves, sums, and what addresses and rows take; a multiprocessor has 65536.
  int64_t registers() const { return bn / 2 + bn / 4 + width / 2 + 32; }
  int64_t registers_left() const { return groups == 1 ? 255 : groups == 2 ? 240 : 160; }
};

// An operand as tensor maps read it.
struct Side {
  const AttentionOperand* operand = nullptr;
  Extent rows;
  int64_t columns = 0, box = 0;
  std::optional<GemmMatrix> matrix;  // else through a copy
  std::vector<ir::ValueId> factors;  // numbers on the way, which wait for the scores
  int copy = -1;                     // the scratch buffer

  bool is_batched() const { return !matrix || matrix->is_batched; }
  artifact::TensorMap map(const AttentionForm& form, const Facts& f, int buffer) const {
    artifact::TensorMap m;
    m.buffer = buffer;
    m.extents = {columns, rows.source(f), is_batched() ? form.batches.source(f) : 1};
    m.strides = {2 * columns, 2 * columns * rows.source(f)};
    m.box = {kPanel, box, 1};
    return m;
  }
};

bool is_number(const ir::Graph& graph, ir::ValueId value) {
  const auto& constant = graph.value(value).constant;
  return constant && constant->size() == 1 && is_float(constant->dtype());
}

// True where a transpose exchanges the last two axes and no others.
bool turns_matrix(const ir::Node& node) {
  std::vector<int64_t> perm = node.ints_attr("perm");
  if (perm.size() < 2) return false;
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  for (size_t i = 0; i < perm.size(); ++i)
    if (perm[i] != static_cast<int64_t>(i)) return false;
  return true;
}

Side side_of(const Workload& workload, const AttentionForm& form, const AttentionOperand& operand,
             const Extent& rows, int64_t columns, int64_t box) {
  const ir::Graph& graph = workload.graph;
  Side side{&operand, rows, columns, box, std::nullopt, {}, -1};
  const DType dtype = graph.value(form.region.result).type.dtype;
  std::vector<ir::Dim> batches = graph.value(form.logits).type.shape;
  batches.resize(batches.size() - 2);
  std::vector<ir::ValueId> factors;
  bool transposed = operand.transposed;
  ir::ValueId value = operand.value;
  while (graph.value(value).producer >= 0) {
    const ir::Node& node = graph.nodes[static_cast<size_t>(graph.value(value).producer)];
    if (node.op == ir::Op::transpose && turns_matrix(node)) {
      transposed = !transposed;
      value = node.inputs[0];
    } else if (node.op == ir::Op::mul && &operand != &form.v) {
      const size_t number = is_number(graph, node.inputs[1]) ? 1 : 0;
      const ir::ValueId other = node.inputs[1 - number];
      if (!is_number(graph, node.inputs[number]) ||
          !(graph.value(other).type.shape == graph.value(value).type.shape))
        return side;
      factors.push_back(node.inputs[number]);
      value = other;
    } else {
      return side;
    }
  }
  if (transposed || graph.value(value).type.dtype != dtype) return side;
  side.matrix = whole_matrix(workload, value, 2, batches);
  if (side.matrix) side.factors = factors;
  return side;
}

// Writes an operand as lines of its depth, with its prologue.
KernelDraft emit_copy(ProgramDraft& draft, const std::string& symbol, const AttentionForm& form,
                      const Side& side) {
  constexpr int64_t kThreads = 256, kEach = 4;
  Emitter e(draft, symbol);
  const std::vector<Index> dims{extent_index(e, form.batches), extent_index(e, side.rows),
                                e.constant(side.columns)};
  const Index item = e.index().var("item", form.batches.dim * side.rows.dim * ir::Dim(side.columns));
  e.open(fmt::format("TH_UNROLL for (int i = 0; i < {}; ++i)", kEach));
  e.line(fmt::format("const int item = TH_BLOCK * {} + i * {} + TH_THREAD;", kThreads * kEach, kThreads));
  e.open(fmt::format("if (item < {})", e.text(e.product(dims))));
  const Coords at = e.index().split(item, dims);
  e.store_temporary(side.copy, "item", operand_element(e, form, *side.operand, at[0], at[1], at[2]));
  e.close();
  e.close();
  const auto count = [form, side](const Facts& f) {
    return form.batches.source(f) * side.rows.source(f) * side.columns;
  };
  return e.finish(
      [count](const Facts& f, artifact::Launch& launch) {
        set_grid(launch, ceil_div(count(f), kThreads * kEach), kThreads);
      },
      kThreads);
}

// As wgmma_functions, with A in registers and B in lines of columns: 64 x n sums over 16 keys.
std::string values_functions(int64_t n, DType dtype) {
  const int64_t sums = n / 2;
  std::string registers, bindings;
  for (int64_t i = 0; i < sums; ++i) {
    registers += fmt::format("{}%{}", i == 0 ? "" : ",", i);
    bindings += fmt::format("{}\"+f\"(d[{}])", i == 0 ? "" : ", ", i);
  }
  return fmt::format(
             "TH_FN void th_wgmma_values(float* d, const th_u32* a, th_u64 b, int keep) {{\n"
             "  asm volatile(\"{{.reg .pred keeps; setp.ne.b32 keeps, %{5}, 0;\\n\\t\"\n"
             "      \"wgmma.mma_async.sync.aligned.m64n{0}k16.f32.{2}.{2} {{{1}}}, {{%{3}, %{6}, %{7}, "
             "%{8}}}, "
             "%{4}, keeps, 1, 1, 1;}}\"\n"
             "      : {9} : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"l\"(b), "
             "\"r\"(keep));\n}}\n",
             n, registers, dtype == DType::kBF16 ? "bf16" : "f16", sums, sums + 4, sums + 5, sums + 1,
             sums + 2, sums + 3, bindings) +
         fmt::format("TH_FN void th_values_done(float* d) {{\n  asm volatile(\"\" : {} :: \"memory\");\n}}\n",
                     bindings);
}

bool stores_by_map(const Workload& workload, const AttentionForm& form) {
  const int output = plain_output(workload, form.region.result);
  if (output < 0) return false;
  const auto value = workload.graph.outputs[static_cast<size_t>(output)];
  return workload.graph.value(value).type.dtype == workload.graph.value(form.region.result).type.dtype;
}

Tiles tiles_of(const Workload& workload, const AttentionForm& form, const Schedule& s) {
  return {s.get("tile_m") / 64, s.get("tile_n"), s.get("stages"), s.get("turns"),
          s.get("blocks"),      form.depth,      form.width,      stores_by_map(workload, form)};
}

std::string float_text(double x) { return fmt::format("{:.8e}f", x); }

}  // namespace

void emit_attention_wgmma(ProgramDraft& draft, const AttentionForm& form, const Schedule& s) {
  const Workload& workload = draft.workload();
  const Tiles tiles = tiles_of(workload, form, s);
  const DType dtype = draft.graph().value(form.region.result).type.dtype;
  Side q = side_of(workload, form, form.q, form.rows, form.depth, tiles.bm()),
       k = side_of(workload, form, form.k, form.keys, form.depth, tiles.bn),
       v = side_of(workload, form, form.v, form.keys, form.width, tiles.bn);
  for (Side* side : {&q, &k, &v})
    if (!side->matrix)
      side->copy = draft.add_temporary(dtype, [form, side = *side](const Facts& f) {
        return form.batches.source(f) * side.rows.source(f) * side.columns;
      });
  if (q.copy >= 0) draft.kernels.push_back(emit_copy(draft, "attention_copy_q", form, q));
  if (k.copy >= 0) draft.kernels.push_back(emit_copy(draft, "attention_copy_k", form, k));
  if (v.copy >= 0) draft.kernels.push_back(emit_copy(draft, "attention_copy_v", form, v));
  // The form whose scores take the numbers that the maps read past.
  AttentionForm late = form;
  for (const Side* side : {&q, &k})
    late.factors.insert(late.factors.end(), side->factors.begin(), side->factors.end());
  const ScoreForm scores = find_scores(workload, late);
  const int64_t key_count = form.keys.dim.value();

  Emitter e(draft, "attention_wgmma");
  const Index z = e.index().var("z", form.batches.dim), m = e.index().var("m", form.rows.dim),
              n = e.index().var("n", form.keys.dim), w = e.index().var("w", ir::Dim(form.width));
  const std::string rows = extent_text(e, form.rows), batches = extent_text(e, form.batches);
  Template t("cuda/attention_wgmma.cuh"), packed("cuda/gemm_wgmma.cuh"), copies("cuda/gemm_wgmma16.cuh");
  copies.set("PAIR", dtype == DType::kBF16 ? "bf16x2" : "f16x2");
  t.set("M", rows).set("N", key_count).set("BATCHES", batches);
  t.set("TILES_M", tile_count(e, "tiles_m", form.rows, tiles.bm()));
  t.set("BM", tiles.bm()).set("BN", tiles.bn).set("CONSUMERS", tiles.groups).set("SLOTS", tiles.slots);
  t.set("DEPTH", form.depth).set("WIDTH", form.width).set("SHIFT", scores.shift);
  t.set("HEADS", std::max<int64_t>(1, kGroupBytes / (2 * key_count * (form.depth + form.width))));
  t.set("RING_K", tiles.ring_k()).set("RING_V", tiles.ring_v());
  t.set("SLOT_K", tiles.slot_k()).set("SLOT_V", tiles.slot_v()).set("BARRIERS", tiles.barriers());
  t.set("STAGING", tiles.has_staging() ? tiles.end() : 0);
  t.set("STAGING_ROLE", tiles.has_staging() ? 128 * form.width : 64 * 128);
  t.set("STAGING_PANEL", tiles.has_staging() ? 64 * 128 : tiles.bm() * 128);
  t.set("Q_LINE", q.is_batched() ? "z" : "0").set("K_LINE", k.is_batched() ? "z" : "0");
  t.set("V_LINE", v.is_batched() ? "z" : "0");
  t.set("SCALE", float_text((scores.is_plain ? scores.scale : 1) * kLog2E));
  // A row whose scores are all -Inf, or one NaN, is NaN or, replaced, zero.
  t.set("SHARE", form.nan_to_zero ? "all > 0.0f ? 1.0f / all : 0.0f" : "1.0f / all");
  for (int i = 0; i < 4; ++i) {
    const std::string share = fmt::format("share_of[{}]", i / 2);
    const std::string product = fmt::format("own[{}] * {}", i, share);
    t.set(fmt::format("SCALED_{}", i),
          form.nan_to_zero ? fmt::format("({} > 0.0f ? {} : 0.0f)", share, product) : product);
  }
  t.set("ELEMENT", form.nan_to_zero ? "own[1] > 0.0f ? own[0] * own[1] : 0.0f" : "own[0] * own[1]");
  const bool guards = key_count % tiles.bn != 0;
  t.set("SEEN", !scores.is_causal ? fmt::format("n < {}", key_count)
                                  : fmt::format("n <= m + {}{}", scores.shift,
                                                guards ? fmt::format(" && n < {}", key_count) : ""));
  e.preamble(packed.section("functions"));
  e.preamble(copies.section("functions"));
  e.preamble(t.section("functions"));
  e.preamble(wgmma_functions(tiles.bn, dtype, false, false));
  e.preamble(values_functions(form.width, dtype));
  for (const char* name : {"map_q", "map_k", "map_v"}) e.add_map(name);
  if (tiles.stores_by_map) e.add_map("map_y");
  const auto section = [&](const std::string& hole, const std::string& name) {
    t.hole(hole, [&t, &e, name] { t.write(e, name); });
  };
  const auto line = [&](const std::string& hole, bool written, const std::string& text) {
    t.hole(hole, [&e, written, text] {
      if (written) e.line(text);
    });
  };
  section("tile", scores.is_causal ? "tile_causal" : "tile_in_order");
  for (const char* name : {"scores", "values", "powers", "pack"}) section(name, name);
  bool masks = false;
  const auto logits = [&](bool masked) {
    if (!scores.is_plain) return t.write(e, "masked");
    if (masked) t.write(e, "guarded");
  };
  t.hole("first_logits", [&] { logits(scores.is_causal || guards); });
  t.hole("logits", [&] { logits(masks); });
  t.hole("logit", [&] {
    const std::string logit = logit_element(e, late, z, m, n, "score");
    e.line(fmt::format("s[j * 4 + r] = n_free < {} ? {} : -TH_INF_F32;", key_count, logit));
  });
  for (const bool masked : {false, true})
    t.hole(masked ? "masked_step" : "whole_step", [&, masked] {
      masks = masked;
      t.write(e, "step");
    });
  section("steps", scores.is_causal ? "causal_steps" : "all_steps");
  const bool moves = tiles.groups > 1;
  line("fewer_registers", moves,
       fmt::format("asm volatile(\"setmaxnreg.dec.sync.aligned.u32 {};\");", tiles.groups == 2 ? 24 : 32));
  line("more_registers", moves,
       fmt::format("asm volatile(\"setmaxnreg.inc.sync.aligned.u32 {};\");", tiles.registers_left()));
  const bool turns = tiles.turns != 0;
  line("turn", turns, "asm volatile(\"bar.sync %0, 256;\" :: \"r\"(4 + role) : \"memory\");");
  line("next_turn", turns,
       fmt::format("asm volatile(\"bar.arrive %0, 256;\" :: \"r\"(4 + (role + 1) % {}) : \"memory\");",
                   tiles.groups));
  line("first_turn", turns,
       fmt::format("if (role == {}) asm volatile(\"bar.arrive 4, 256;\" ::: \"memory\");", tiles.groups - 1));
  line("last_turn", turns, "if (role == 0) asm volatile(\"bar.sync 4, 256;\" ::: \"memory\");");
  const bool q_is_free = !tiles.stores_by_map || tiles.has_staging();
  line("q_is_read", q_is_free, "if (lane == 0) th_barrier_arrive(q_empty);");
  line("unread", tiles.has_staging(),
       "if (TH_THREAD % 128 == 0) asm volatile(\"cp.async.bulk.wait_group.read 0;\" ::: \"memory\");");
  t.hole("give_back_q", [&] {
    if (!q_is_free) t.write(e, "in_room_of_q");
  });
  section("store", tiles.stores_by_map ? "store_plain" : "store_elements");
  t.hole("store_element", [&] { store_element(e, form, z, m, w, "y"); });
  line("stored", tiles.stores_by_map,
       "if (TH_THREAD % 128 == 0) asm volatile(\"cp.async.bulk.wait_group 0;\" ::: \"memory\");");
  t.hole("plain_loops", [&] {
    const Index row = e.index().var("row", form.batches.dim * form.rows.dim),
                all = extent_index(e, form.rows);
    e.open(
        fmt::format("for (int row = TH_BLOCK * TH_THREADS + TH_THREAD; row < {} * {}; "
                    "row += TH_BLOCKS * TH_THREADS)",
                    batches, rows));
    write_attention_row(e, form, e.index().div(row, all), e.index().mod(row, all));
    e.close();
  });
  t.write(e, "body");
  const auto buffer_of = [&](const Side& side) {
    return buffer_position_of(side.copy >= 0 ? draft.temporary_name(side.copy)
                                             : draft.input_name(side.matrix->value));
  };
  const int buffer_q = buffer_of(q), buffer_k = buffer_of(k), buffer_v = buffer_of(v);
  const int buffer_y = tiles.stores_by_map ? buffer_position_of(draft.output_name(static_cast<size_t>(
                                                 plain_output(workload, form.region.result))))
                                           : -1;
  draft.kernels.push_back(e.finish(
      [form, tiles, q, k, v, buffer_q, buffer_k, buffer_v, buffer_y](const Facts& f,
                                                                     artifact::Launch& launch) {
        const int64_t z_count = form.batches.source(f), m_count = form.rows.source(f);
        set_grid(launch, std::min(tiles.blocks, z_count * ceil_div(m_count, tiles.bm())), tiles.threads());
        launch.dynamic_shared_bytes = tiles.shared_bytes();
        launch.maps = {q.map(form, f, buffer_q), k.map(form, f, buffer_k), v.map(form, f, buffer_v)};
        if (buffer_y < 0) return;
        launch.maps.push_back({buffer_y,
                               {form.width, m_count, z_count},
                               {2 * form.width, 2 * form.width * m_count},
                               {kPanel, 64, 1}});
      },
      tiles.threads(), 1, true));
}

// Two groups fill the tensor cores and leave room for 128 keys of scores. Taking turns gains where rows
// differ in length or heads are narrow and loses 2% elsewhere (docs/kernels/attention.md).
Schedule default_attention_wgmma(const Workload& workload, const AttentionForm& form, const Facts& facts,
                                 const DeviceSpec& device) {
  const int64_t units = std::max<int64_t>(device.compute_units, 1);
  const int64_t groups = form.rows.source(facts) <= 64 ? 1 : 2;
  const bool turns = groups > 1 && (find_scores(workload, form).is_causal || form.depth <= 64);
  return {"attention",
          "wgmma",
          {{"tile_m", 64 * groups},
           {"tile_n", 128},
           {"stages", form.depth + form.width <= 128 ? 3 : 2},
           {"turns", turns ? 1 : 0},
           {"blocks", units}}};
}

std::vector<artifact::Parameter> attention_wgmma_parameters(const DeviceSpec& device) {
  return {{"tile_m", {64, 128, 192}},
          {"tile_n", {64, 80, 96, 112, 128, 144, 160, 176}},
          {"stages", {2, 3, 4}},
          {"turns", {0, 1}},
          {"blocks", {std::max<int64_t>(device.compute_units, 1)}}};
}

Refusal refuse_attention_wgmma(const Workload& workload, const AttentionForm& form, const Schedule& s,
                               const DeviceSpec& device) {
  if (device.api != target::Api::kCuda || device.architecture != "sm_90a")
    return "wgmma needs the tensor cores of sm_90a";
  const DType dtype = workload.graph.value(form.region.result).type.dtype;
  if (dtype != DType::kF16 && dtype != DType::kBF16) return "wgmma is written for attention of f16 and bf16";
  if (form.depth % kPanel != 0 || form.width % kPanel != 0)
    return "heads are made of whole panels of 64 elements";
  if (form.depth > 256 || form.width > 128)
    return "heads of more than 256 or 128 elements leave no registers";
  if (!form.keys.dim.is_const() || form.keys.dim.value() < 1)
    return "the number of keys is not known beforehand";
  const Tiles t = tiles_of(workload, form, s);
  if (s.get("tile_m") % 64 != 0 || t.groups < 1 || t.groups > 3) return "tile_m is 64, 128 or 192";
  if (t.bn < 16 || t.bn > 256 || t.bn % 16 != 0) return "tile_n is made of pieces of 16, up to 256";
  if (t.slots < 2 || t.blocks < 1) return "too few stages or blocks";
  if (t.turns != 0 && (t.turns != 1 || t.groups < 2)) return "turns are for two groups and more";
  if (!t.has_staging() && t.stores_by_map && form.width > form.depth)
    return "results fit neither beside the rings nor into the room of q";
  if (t.registers() > t.registers_left())
    return fmt::format("about {} registers a thread of {}", t.registers(), t.registers_left());
  return refuse_at_launch(workload, device, t.threads(), t.shared_bytes());
}

}  // namespace thrice::family
