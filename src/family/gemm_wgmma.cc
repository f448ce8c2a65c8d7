#include "family/gemm_wgmma.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "family/choices.h"
#include "family/scalar.h"
#include "family/template.h"

namespace thrice::family {

namespace {

constexpr int64_t kStep = 64;      // of the depth: a row of halves is one 128-byte swizzle line
constexpr int64_t kPackRows = 64;  // of an operand a block packs
constexpr int64_t kPackThreads = 128;
constexpr int64_t kSharedBytes = 227 * 1024;  // a block of sm_90a
constexpr int64_t kMostSlotsB = 6;

struct WgmmaTiles {
  int64_t bm, bn, slots_a, split;
  int64_t consumers() const { return bm / 64; }
  int64_t threads() const { return 128 * (consumers() + 1); }
  int64_t slices() const { return bn > 128 ? 2 : 1; }
  int64_t sn() const { return bn / slices(); }
  int64_t slot_a() const { return 256 * bm; }
  int64_t slot_b() const { return 256 * sn(); }
  int64_t slots_b() const {
    const int64_t left = kSharedBytes - 1024 - 256 - slots_a * (slot_a() + bm);
    return std::min(kMostSlotsB, left / (slot_b() + 2 * sn()));
  }
  // Offsets in shared memory: the rings, the scales of A and of B (twice the slots: they are read after a
  // slot is given back), the barriers.
  int64_t ring_b() const { return slots_a * slot_a(); }
  int64_t scales_a() const { return ring_b() + slots_b() * slot_b(); }
  int64_t scales_b() const { return scales_a() + slots_a * bm; }
  int64_t barriers() const { return scales_b() + 2 * slots_b() * sn(); }
  int64_t c_pitch() const { return bn + 8; }
  int64_t shared_bytes() const {
    return 1024 + std::max(barriers() + 16 * (slots_a + slots_b()), 4 * bm * c_pitch());
  }
};

WgmmaTiles tiles_of(const Schedule& s) {
  return {s.get("tile_m"), s.get("tile_n"), s.get("stages"), s.get("split")};
}

// One operand on its way into its planes.
struct Operand {
  Extent rows;       // of A, or columns of B
  int64_t tile = 0;  // rows are padded to whole tiles, and tiles to whole blocks of pack
  bool along_depth = false, in_fours = false;
  int planes = 0, scales = 0;                         // scratch buffers
  bool once = false;                                  // weights: packed at the first run, and kept
  std::string row;                                    // its name in the text
  std::function<GemmPlace(Emitter&, Index k)> place;  // empty: element by element through the prologue
  std::function<std::string(Emitter&, Index k)> element;

  int64_t padding() const { return tile % kPackRows == 0 ? tile : 2 * tile; }  // tile 96: 192
  int64_t padded(const Facts& f) const { return ceil_div(rows.source(f), padding()) * padding(); }
  // Padded rows as text: a literal where the extent is one.
  std::string padded_text(Emitter& e) const {
    if (rows.dim.is_const()) return std::to_string(ceil_div(rows.dim.value(), padding()) * padding());
    return e.text(e.index().extent("padded_" + row, [o = *this](const Facts& f) { return o.padded(f); }));
  }
};

// Loads of a pack block: four neighbours, or one element, or zeros beyond an edge.
void write_load(Emitter& e, const Operand& o, const Extent& depth) {
  const auto inside_of = [&](Index k, std::string also) {
    const auto require = [&](const Extent& extent, int64_t by, const std::string& name) {
      if (extent.dim.is_const() && extent.dim.value() % by == 0) return;
      also += fmt::format("{}{} < {}", also.empty() ? "" : " && ", name, extent_text(e, extent));
    };
    require(o.rows, o.padding(), o.row);
    require(depth, kStep, e.text(k));
    return also;
  };
  const auto load = [&](const std::string& to, const std::string& tk, int64_t width) {
    const Index k = e.index().add(e.index().mul(e.index().var("ahead"), e.constant(kStep)),
                                  e.index().var(tk, ir::Dim(kStep)));
    if (!o.place) {
      const std::string inside = inside_of(k, "");
      e.line(fmt::format("{} = 0.0f;", to));
      e.open(inside.empty() ? "" : fmt::format("if ({})", inside));
      e.line(fmt::format("{} = {};", to, o.element(e, k)));
      e.close();
      return;
    }
    const GemmPlace from = o.place(e, k);
    const std::string inside = inside_of(k, from.inside);
    if (width == 1) {
      e.line(inside.empty() ? fmt::format("{} = *({});", to, from.address)
                            : fmt::format("{} = {} ? *({}) : 0.0f;", to, inside, from.address));
      return;
    }
    e.line("float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);");
    e.line(fmt::format("{}four = *(const float4*)({});",
                       inside.empty() ? "" : fmt::format("if ({}) ", inside), from.address));
    const char* names = "xyzw";
    for (int j = 0; j < 4; ++j) e.line(fmt::format("held[i * 4 + {}] = four.{};", j, names[j]));
  };
  if (!o.along_depth) return load("held[j]", "tk", 1);
  if (o.in_fours && o.place) return load("", "tk", 4);
  for (int j = 0; j < 4; ++j) {
    e.line(fmt::format("const int tk{0} = tk + {0};", j));
    load(fmt::format("held[i * 4 + {}]", j), fmt::format("tk{}", j), 1);
  }
}

KernelDraft emit_pack(ProgramDraft& draft, const std::string& symbol, const Gemm& g, const Operand& o) {
  Emitter e(draft, symbol);
  Template t("cuda/gemm_wgmma.cuh");
  if (draft.kernels.empty()) e.preamble(t.section("pack_functions"));
  t.set("STEPS", tile_count(e, "steps", g.depth, kStep)).set("ROW", o.row);
  t.set("ROW_BLOCKS", fmt::format("({} / {})", o.padded_text(e), kPackRows));
  t.set("PLANES", draft.temporary_name(o.planes)).set("SCALES", draft.temporary_name(o.scales));
  t.hole("load", [&] { write_load(e, o, g.depth); });
  t.hole("lines", [&] { t.write(e, o.along_depth ? "along_depth" : "along_rows"); });
  t.write(e, "pack");
  KernelDraft kernel = e.finish(
      [g, o](const Facts& f, artifact::Launch& launch) {
        set_grid(launch, o.padded(f) / kPackRows * ceil_div(g.depth.source(f), kStep) * g.batches.source(f),
                 kPackThreads);
      },
      kPackThreads);
  kernel.once = o.once;
  return kernel;
}

KernelDraft emit_multiply(ProgramDraft& draft, const std::string& symbol, const Gemm& g,
                          const WgmmaTiles& tiles, const Operand& a, const Operand& b) {
  Emitter e(draft, symbol);
  const int64_t split = tiles.split;
  const Index z = batch_index(e, g);
  const Index m = e.index().var("m", g.rows.dim), n = e.index().var("n", g.cols.dim);
  Template t("cuda/gemm_wgmma.cuh"), cluster("cuda/gemm_mma.cuh");
  t.set("M", extent_text(e, g.rows)).set("N", extent_text(e, g.cols)).set("K", extent_text(e, g.depth));
  t.set("STEPS", tile_count(e, "steps", g.depth, kStep));
  t.set("TILES_M", tile_count(e, "tiles_m", g.rows, tiles.bm))
      .set("TILES_N", tile_count(e, "tiles_n", g.cols, tiles.bn));
  t.set("BM", tiles.bm).set("BN", tiles.bn).set("SN", tiles.sn()).set("SLICES", tiles.slices());
  t.set("SUMS", tiles.sn() / 2).set("CP", tiles.c_pitch()).set("GROUP", 2048 / tiles.bm).set("SPLIT", split);
  t.set("CONSUMERS", tiles.consumers()).set("SLOTS_A", tiles.slots_a).set("SLOTS_B", tiles.slots_b());
  t.set("SLOT_A", tiles.slot_a()).set("SLOT_B", tiles.slot_b()).set("RING_B", tiles.ring_b());
  t.set("SCALES_A", tiles.scales_a()).set("SCALES_B", tiles.scales_b()).set("BARRIERS", tiles.barriers());
  t.set("PADDED_A", a.padded_text(e)).set("PADDED_B", b.padded_text(e));
  t.set("PLANES_A", draft.temporary_name(a.planes)).set("PLANES_B", draft.temporary_name(b.planes));
  t.set("SCALES_OF_A", draft.temporary_name(a.scales)).set("SCALES_OF_B", draft.temporary_name(b.scales));
  t.set("PARTS", split > 1 ? fmt::format("TH_HAS_CLUSTERS ? {} : 1", split) : "1");
  e.preamble(t.section("functions"));
  e.preamble(t.section("unpack"));
  e.preamble(wgmma_functions(tiles.sn(), DType::kF16, false, false));
  if (split > 1) e.preamble(cluster.section("cluster_functions"));
  // Of 65536 registers: two groups of consumers take what one producer warp leaves.
  const bool moves = tiles.consumers() > 1;
  t.hole("fewer_registers", [&] {
    if (moves) e.line("asm volatile(\"setmaxnreg.dec.sync.aligned.u32 40;\");");
  });
  t.hole("more_registers", [&] {
    if (moves) e.line("asm volatile(\"setmaxnreg.inc.sync.aligned.u32 232;\");");
  });
  t.hole("join", [&] {
    e.line(split > 1
               ? "th_cluster_barrier();"
               : fmt::format("asm volatile(\"bar.sync 1, {};\" ::: \"memory\");", 128 * tiles.consumers()));
  });
  t.hole("store_tile", [&] {
    write_tile_stores(e, g, z, {"sums", tiles.bm, tiles.bn, tiles.c_pitch(), 128 * tiles.consumers(), split});
  });
  t.hole("step", [&] {
    const std::string steps = tile_count(e, "steps", g.depth, kStep);
    const auto unpacked = [&](const Operand& o) {
      return fmt::format("th_unpacked({}, {}, {}, z * {} + k / {}, {}, k % {})",
                         draft.temporary_name(o.planes), draft.temporary_name(o.scales), o.padded_text(e),
                         steps, kStep, o.row, kStep);
    };
    e.line(fmt::format("total = {};", multiply_add(g.dtype, "total", unpacked(a), unpacked(b))));
  });
  t.hole("epilogue", [&] { g.epilogue(e, z, m, n, "total"); });
  t.hole("leave", [&] {  // nobody's shared memory goes away while others read it
    if (split > 1) e.line("th_cluster_barrier();");
  });
  t.write(e, "multiply");
  return e.finish(
      [g, tiles](const Facts& f, artifact::Launch& launch) {
        set_tile_grid(launch, g, f, tiles.bm, tiles.bn, tiles.split, tiles.threads());
        launch.dynamic_shared_bytes = tiles.shared_bytes();
      },
      tiles.threads(), split, true);
}

}  // namespace

std::string wgmma_functions(int64_t n, DType dtype, bool a_in_lines, bool b_in_lines) {
  const int64_t sums = n / 2;
  std::string registers, bindings;
  for (int64_t i = 0; i < sums; ++i) {
    registers += fmt::format("{}%{}", i == 0 ? "" : ",", i);
    bindings += fmt::format("{}\"+f\"(d[{}])", i == 0 ? "" : ", ", i);
  }
  return fmt::format(
             "TH_FN void th_wgmma(float* d, th_u64 a, th_u64 b, int keep) {{\n"
             "  asm volatile(\"{{.reg .pred keeps; setp.ne.b32 keeps, %{2}, 0;\\n\\t\"\n"
             "      \"wgmma.mma_async.sync.aligned.m64n{0}k16.f32.{6}.{6} {{{1}}}, %{3}, %{4}, keeps, 1, 1, "
             "{7}, {8};}}\"\n"
             "      : {5} : \"l\"(a), \"l\"(b), \"r\"(keep));\n}}\n",
             n, registers, sums + 2, sums, sums + 1, bindings, dtype == DType::kBF16 ? "bf16" : "f16",
             a_in_lines ? 1 : 0, b_in_lines ? 1 : 0) +
         fmt::format("TH_FN void th_wgmma_done(float* d) {{\n  asm volatile(\"\" : {} :: \"memory\");\n}}\n",
                     bindings);
}

void emit_gemm_wgmma(ProgramDraft& draft, const std::string& symbol, const Gemm& g, const Schedule& s) {
  const WgmmaTiles tiles = tiles_of(s);
  Operand a, b;
  a.rows = g.rows;
  a.tile = tiles.bm;
  a.along_depth = !g.a_rows_follow;
  a.in_fours = g.a_in_fours;
  a.row = "m";
  b.rows = g.cols;
  b.tile = tiles.bn;
  b.along_depth = g.b_depth_follows;
  b.in_fours = g.b_in_fours;
  b.row = "n";
  const auto is_const = [](const Extent& extent) { return extent.dim.is_const(); };
  const bool fixed = is_const(g.batches) && is_const(g.depth);
  a.once = g.a_is_weight && fixed && is_const(g.rows);
  b.once = g.b_is_weight && fixed && is_const(g.cols);
  const auto row = [](Emitter& e, const Operand& o) { return e.index().var(o.row, o.rows.dim); };
  a.element = [&](Emitter& e, Index k) { return g.a(e, batch_index(e, g), row(e, a), k); };
  b.element = [&](Emitter& e, Index k) { return g.b(e, batch_index(e, g), k, row(e, b)); };
  if (g.a_place) a.place = [&](Emitter& e, Index k) { return g.a_place(e, batch_index(e, g), row(e, a), k); };
  if (g.b_place) b.place = [&](Emitter& e, Index k) { return g.b_place(e, batch_index(e, g), k, row(e, b)); };
  for (Operand* o : {&a, &b}) {
    const auto rows = [g, o = *o](const Facts& f) {
      return g.batches.source(f) * ceil_div(g.depth.source(f), kStep) * o.padded(f);
    };
    o->planes = draft.add_temporary(
        DType::kI32, [rows](const Facts& f) { return rows(f) * 64; }, o->once);
    o->scales = draft.add_temporary(DType::kU8, rows, o->once);
  }
  draft.kernels.push_back(emit_pack(draft, symbol + "_pack_a", g, a));
  draft.kernels.push_back(emit_pack(draft, symbol + "_pack_b", g, b));
  draft.kernels.push_back(emit_multiply(draft, symbol, g, tiles, a, b));
}

namespace {

// Microseconds that the multiplying kernel takes, roughly. A step moves bm + bn lines of 256 bytes into a
// multiprocessor and multiplies them; whatever is longer counts, and one group of consumers alone does not
// hide its own waits. Sharing a tile costs a cluster's two barriers and reads of each other's memories. The
// rates are an H200's, fitted to 4096^3 (bench/results/h200/matrix.json) and to the products of ViT-B/16.
double expected_us(const GemmSize& size, const WgmmaTiles& t, const DeviceSpec& device) {
  constexpr double kBytesPerUs = 48e3, kFlopPerUs = 4.65e6, kStart = 2, kShare = 4.5, kElementsPerUs = 16e3;
  const int64_t blocks = ceil_div(size.rows, t.bm) * ceil_div(size.cols, t.bn) * size.batches * t.split;
  // Clusters lie within a part of the card and leave units idle there: 32 of four large blocks took two waves
  // (1024^3: 40 us for 20; 64x4096x4096: 42 for 29).
  const int64_t units = device.compute_units - (t.split > 2 ? device.compute_units / 8 : 0);
  const int64_t waves = ceil_div(blocks, std::max<int64_t>(units, 1));
  const int64_t steps = ceil_div(ceil_div(size.depth, kStep), t.split);
  const double moved = static_cast<double>(t.bm + t.bn) * 256 / kBytesPerUs,
               multiplied =
                   static_cast<double>(6 * t.bm * t.bn * kStep) / kFlopPerUs * (t.consumers() > 1 ? 1 : 1.6),
               stored = static_cast<double>(t.bm * t.bn / t.split) / kElementsPerUs;
  return static_cast<double>(waves) * (static_cast<double>(steps) * std::max(moved, multiplied) + stored +
                                       kStart + (t.split > 1 ? kShare : 0));
}

}  // namespace

std::vector<std::pair<std::string, int64_t>> default_gemm_wgmma(const GemmSize& size,
                                                                const DeviceSpec& device) {
  WgmmaTiles best{};
  double best_us = 0;
  for (const int64_t bm : {64, 128})
    for (const int64_t bn : {64, 96, 128, 192, 256})
      for (const int64_t split : {1, 2, 4, 8}) {
        const WgmmaTiles t{bm, bn, bn > 128 ? 2 : 3, split};
        if (split > 1 && ceil_div(size.depth, kStep) < 2 * split) continue;  // a part is two steps at least
        const double us = expected_us(size, t, device);
        if (best_us != 0 && !(us < best_us)) continue;
        best = t;
        best_us = us;
      }
  return {{"tile_m", best.bm}, {"tile_n", best.bn}, {"stages", best.slots_a}, {"split", best.split}};
}

std::vector<artifact::Parameter> gemm_wgmma_parameters() {
  return {{"tile_m", {64, 128}},
          {"tile_n", {64, 96, 128, 192, 256}},
          {"stages", {2, 3, 4}},
          {"split", {1, 2, 4, 8}}};
}

Refusal refuse_gemm_wgmma(const Workload& workload, const Gemm& g, const Schedule& s,
                          const DeviceSpec& device) {
  if (device.api != target::Api::kCuda || device.architecture != "sm_90a")
    return "wgmma needs the tensor cores of sm_90a";
  if (g.dtype != DType::kF32) return "wgmma is written for f32";
  const WgmmaTiles t = tiles_of(s);
  if (t.bm != 64 && t.bm != 128) return "tile_m is 64 or 128";
  if (t.bn != 64 && t.bn != 96 && t.bn != 128 && t.bn != 192 && t.bn != 256)
    return "tile_n is 64, 96, 128, 192 or 256";
  if (t.slots_a < 2 || t.split < 1) return "too few stages or parts";
  if (t.split > 8) return "clusters have at most 8 blocks everywhere";
  if (t.slots_b() < 2 * t.slices())
    return fmt::format("{} slots of A leave {} for B; a step takes {}, and one must be on its way", t.slots_a,
                       t.slots_b(), t.slices());
  return refuse_at_launch(workload, device, t.threads(), t.shared_bytes());
}

}  // namespace thrice::family
