#include "family/attention/attention_mma.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "family/choices.h"
#include "family/gemm_mma.h"
#include "family/template.h"

namespace thrice::family {

namespace {

int64_t round_up(int64_t n, int64_t to) { return ceil_div(n, to) * to; }

// How lines of an operand come into shared memory: `width` neighbours a copy.
struct LineLoads {
  int64_t lines = 0, along = 0, pitch = 0, width = 1;
  int64_t pieces() const { return along / width; }
  int64_t count(int64_t threads) const { return ceil_div(lines * pieces(), threads); }
  bool whole(int64_t threads) const { return lines * pieces() % threads == 0; }
  int64_t size() const { return lines * pitch; }
};

struct AttentionTiles {
  int64_t warps_m, warps_n, bn, stages;
  LineLoads q, k, v;
  int64_t width = 0;
  int64_t bm() const { return 16 * warps_m; }
  int64_t threads() const { return 32 * warps_m * warps_n; }
  int64_t tile() const { return bn * warps_n; }
  int64_t slot() const { return k.size() + v.size(); }
  int64_t out_pitch() const { return v.along + 4; }
  int64_t shared_bytes() const {
    const int64_t out = warps_n * bm() * (out_pitch() + 2);
    return 4 * std::max(q.size() + stages * slot(), out);
  }
};

AttentionTiles tiles_of(const AttentionForm& form, const Schedule& s) {
  AttentionTiles t{s.get("warps_m"), s.get("warps_n"), s.get("tile_n"), s.get("stages"), {}, {}, {},
                   form.width};
  const int64_t depth = round_up(form.depth, 8), width = round_up(form.width, 32);
  const int64_t pitch = depth_pitch(depth);
  t.q = {t.bm(), depth, pitch, form.q.in_fours ? 4 : 1};
  t.k = {t.tile(), depth, pitch, form.k.in_fours ? 4 : 1};
  t.v = {t.tile(), width, width + 4, form.v.in_fours ? 4 : 1};
  return t;
}

bool splits(const AttentionForm& form, const ProgramDraft& draft) {
  return draft.graph().value(form.region.result).type.dtype == DType::kF32;
}

}  // namespace

void emit_attention_mma(ProgramDraft& draft, const AttentionForm& form, const Schedule& s) {
  Emitter e(draft, "attention_mma");
  const AttentionTiles tiles = tiles_of(form, s);
  const int64_t threads = tiles.threads();
  const Index z = e.index().var("z", form.batches.dim), m = e.index().var("m", form.rows.dim),
              n = e.index().var("n", form.keys.dim), d = e.index().var("d", ir::Dim(form.depth)),
              w = e.index().var("w", ir::Dim(form.width));
  Template t("cuda/attention.cuh"), products("cuda/gemm_mma.cuh");
  e.preamble(products.section("functions"));
  e.preamble(products.section("functions_f32"));
  e.preamble(t.section("functions"));
  const std::string rows = extent_text(e, form.rows), keys = extent_text(e, form.keys);
  t.set("M", rows).set("N", keys).set("TILES_M", tile_count(e, "tiles_m", form.rows, tiles.bm()));
  t.set("BM", tiles.bm()).set("BN", tiles.bn).set("TILE", tiles.tile()).set("THREADS", threads);
  t.set("WARPS_N", tiles.warps_n).set("STAGES", tiles.stages);
  t.set("DEPTH", tiles.k.along).set("WIDTH", form.width).set("FN", tiles.bn / 8).set("FW", tiles.v.along / 8);
  t.set("PK", tiles.k.pitch).set("PV", tiles.v.pitch).set("PO", tiles.out_pitch());
  t.set("SIZE_Q", tiles.q.size()).set("SIZE_K", tiles.k.size()).set("SLOT", tiles.slot());
  const auto set_loads = [&](const std::string& name, const LineLoads& loads) {
    t.set("LOADS_" + name, loads.count(threads)).set("LINE_" + name, loads.pieces());
    t.set("WIDTH_" + name, loads.width);
    t.set("GUARD_" + name, loads.whole(threads) ? "true" : fmt::format("line < {}", loads.lines));
  };
  set_loads("Q", tiles.q);
  set_loads("K", tiles.k);
  set_loads("V", tiles.v);
  const auto load = [&](const AttentionOperand& operand, const LineLoads& loads,
                        const std::string& row_inside, Index row, int64_t along, Index at) {
    std::string inside = row_inside;
    if (loads.along != along) inside += fmt::format(" && {} < {}", e.text(at), along);
    if (operand.in_fours) {
      const std::string from = operand_address(e, draft, form, operand, z, row, at);
      e.line(fmt::format("th_copy16(to, {}, {});", from, inside));
      return;
    }
    e.line("float x = 0.0f;");
    e.open(fmt::format("if ({})", inside));
    e.line(fmt::format("x = {};", operand_element(e, form, operand, z, row, at)));
    e.close();
    e.line("*to = x;");
  };
  t.hole("load_q", [&] { load(form.q, tiles.q, fmt::format("m < {}", rows), m, form.depth, d); });
  t.hole("load_k", [&] { load(form.k, tiles.k, fmt::format("n < {}", keys), n, form.depth, d); });
  t.hole("load_v", [&] { load(form.v, tiles.v, fmt::format("n < {}", keys), n, form.width, w); });
  const auto load_next = [&](bool barrier) {
    e.open("if (next < steps)");
    if (barrier) e.line("TH_BARRIER();");
    t.write(e, "load");
    e.close();
  };
  const bool window = form.has_window();
  t.set("BEFORE", window ? "before" : "-1").set("STARTED", window ? "> before" : ">= 0");
  t.hole("range", [&] { t.write(e, window ? "window" : "all_keys"); });
  t.hole("row", [&] {
    const auto [first, end] = window_of_row(e, form, z, m);
    e.line(fmt::format("const int own_from = {};", first));
    e.line(fmt::format("const int own_to = {};", end));
    e.open("if (own_from < own_to)");
    e.line("from = own_from < from ? own_from : from;");
    e.line("to = own_to > to ? own_to : to;");
    e.close();
  });
  t.hole("load_early", [&] {
    if (tiles.stages > 1) load_next(false);
  });
  t.hole("load_late", [&] {
    if (tiles.stages == 1) load_next(true);
  });
  const bool split = splits(form, draft);
  t.hole("split_a", [&] {
    if (split) t.write(e, "split_a");
  });
  t.hole("multiply_scores", [&] { t.write(e, split ? "scores_split" : "scores_exact"); });
  t.hole("split_powers", [&] { t.write(e, split ? "powers_split" : "powers_exact"); });
  t.hole("multiply_values", [&] { t.write(e, split ? "values_split" : "values_exact"); });
  t.hole("logit", [&] {
    const std::string logit = logit_element(e, form, z, m, n, "score");
    e.line(fmt::format("s[j][r] = n_free < {} ? {} : -TH_INF_F32;", keys, logit));
  });
  t.hole("join", [&] { t.write(e, tiles.warps_n > 1 ? "together" : "alone"); });
  t.hole("store", [&] { store_element(e, form, z, m, w, "y"); });
  // Nothing to attend to is zero; a row whose scores are all -Inf, or one NaN, is NaN or, replaced, zero.
  t.set("SHARE", form.nan_to_zero ? "(all > 0.0f ? 1.0f / all : 0.0f)"
                                  : fmt::format("({} > 0 ? 1.0f / all : 0.0f)", keys));
  t.set("SCALED", form.nan_to_zero ? "share_of[r / 2] > 0.0f ? sums[j][r] * share_of[r / 2] : 0.0f"
                                   : "sums[j][r] * share_of[r / 2]");
  t.write(e, "body");
  draft.kernels.push_back(e.finish(
      [form, tiles](const Facts& f, artifact::Launch& launch) {
        set_grid(launch, form.batches.source(f) * ceil_div(form.rows.source(f), tiles.bm()), tiles.threads());
        launch.dynamic_shared_bytes = tiles.shared_bytes();
      },
      threads));
}

Schedule default_attention_mma(const AttentionForm& form, const Facts& facts, const DeviceSpec& device) {
  const int64_t batches = form.batches.source(facts), rows = form.rows.source(facts),
                keys = form.keys.source(facts);
  int64_t warps_m = 4;
  while (warps_m > 1 && batches * ceil_div(rows, 16 * warps_m) < 2 * device.compute_units) warps_m /= 2;
  const int64_t bn = 32;
  // Warps share keys where there are too few rows to fill a block.
  int64_t warps_n = 1;
  while (warps_m * warps_n < 4 && warps_n * bn < keys) warps_n *= 2;
  return {
      "attention",
      "mma",
      {{"warps_m", warps_m}, {"warps_n", warps_n}, {"tile_n", bn}, {"stages", keys > bn * warps_n ? 2 : 1}}};
}

std::vector<artifact::Parameter> attention_mma_parameters() {
  return {{"warps_m", {1, 2, 4, 8}}, {"warps_n", {1, 2, 4}}, {"tile_n", {32, 64}}, {"stages", {1, 2}}};
}

Refusal refuse_attention_mma(const Workload& workload, const AttentionForm& form, const Schedule& s,
                             const DeviceSpec& device) {
  if (auto refusal = refuse_without_mma(device)) return refusal;
  if (form.depth > 256 || form.width > 128)
    return "heads of more than 256 or 128 elements leave no registers";
  const AttentionTiles t = tiles_of(form, s);
  if (t.warps_m < 1 || t.warps_n < 1 || t.stages < 1) return "too few warps or stages";
  if (t.bn < 8 || t.bn % 8 != 0) return "tile_n is made of pieces of 8";
  if (t.threads() > 256) return "more than 256 threads a block leave too few registers";
  // Sums, powers in two parts, one group of sums on its way, addresses.
  const int64_t registers = t.v.along / 2 + t.bn + 32 + 64;
  if (registers > 255) return fmt::format("about {} registers a thread of 255", registers);
  return refuse_at_launch(workload, device, t.threads(), t.shared_bytes());
}

}  // namespace thrice::family
