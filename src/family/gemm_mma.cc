#include "family/gemm_mma.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "family/choices.h"
#include "family/gemm_mma_tiles.h"
#include "family/scalar.h"
#include "family/template.h"

namespace thrice::family {

namespace {

// Of 16-bit products: tensor cores cut bits off when they add, so their sums join the total by ordinary adds
// after so much of the depth.
constexpr int64_t kJoinDepth = 256;

KernelDraft emit_multiply(ProgramDraft& draft, const std::string& symbol, const Gemm& g,
                          const MmaTiles& tiles) {
  Emitter e(draft, symbol);
  const int64_t threads = tiles.threads(), split = tiles.split;
  const Index z = batch_index(e, g);
  const Index m = e.index().var("m", g.rows.dim), n = e.index().var("n", g.cols.dim);
  const Index k = e.index().add(e.index().mul(e.index().var("ahead"), e.constant(tiles.bk)),
                                e.index().var("tk", ir::Dim(tiles.bk)));
  const std::string rows = extent_text(e, g.rows), cols = extent_text(e, g.cols),
                    depth = extent_text(e, g.depth);
  Template t("cuda/gemm_mma.cuh");
  const bool is_16 = tiles.element_bytes == 2;
  t.set("FORMAT", g.dtype == DType::kF16 ? "f16" : "bf16");
  e.preamble(t.section("functions"));
  e.preamble(t.section(is_16 ? "functions_16" : "functions_f32"));
  if (split > 1) e.preamble(t.section("cluster_functions"));
  t.set("K", depth);
  t.set("TILES_M", tile_count(e, "tiles_m", g.rows, tiles.bm))
      .set("TILES_N", tile_count(e, "tiles_n", g.cols, tiles.bn));
  t.set("BM", tiles.bm).set("BN", tiles.bn).set("BK", tiles.bk).set("WM", tiles.wm()).set("WN", tiles.wn());
  t.set("WARPS_N", tiles.warps_n).set("THREADS", threads).set("SPLIT", split).set("STAGES", tiles.stages);
  t.set("SHARES", tiles.shares).set("ELEMENT", is_16 ? "th_u16" : "float");
  t.set("JOIN", std::max<int64_t>(1, kJoinDepth / tiles.bk));
  t.set("FM", tiles.wm() / 16).set("FN", tiles.wn() / 8);
  t.set("LOADS_A", tiles.a.count).set("LOADS_B", tiles.b.count);
  t.set("AP", tiles.a.layout.pitch).set("BP", tiles.b.layout.pitch).set("CP", tiles.c_pitch());
  t.set("SIZE_A", tiles.a.layout.size()).set("BUFFER", tiles.buffer());
  const bool a_by_depth = tiles.a.layout.along_depth, b_by_depth = tiles.b.layout.along_depth;
  const std::string a_along = tiles.a.along(), a_line = tiles.a.line(threads), b_along = tiles.b.along(),
                    b_line = tiles.b.line(threads);
  t.set("A_ROW", a_by_depth ? a_line : a_along).set("A_DEPTH", a_by_depth ? a_along : a_line);
  t.set("B_COL", b_by_depth ? b_line : b_along).set("B_DEPTH", b_by_depth ? b_along : b_line);
  const bool whole_steps = below(g.depth, depth, "", tiles.bk).empty();
  // One copy of an operand: asynchronous from its place, or through a register.
  const auto load = [&](char name, const TileLoads& loads, const std::string& in_line,
                        const std::function<GemmPlace()>& place,
                        const std::function<std::string()>& element) {
    const std::string inside = all_of({in_line, whole_steps ? "" : fmt::format("{} < {}", e.text(k), depth)});
    if (loads.async) {
      const GemmPlace from = place();
      const std::string when = all_of({inside, from.inside});
      e.line(fmt::format("th_copy{}(next_{} + {}, {}, {});", loads.width * tiles.element_bytes, name,
                         loads.at(threads), from.address, when.empty() ? "true" : when));
      return;
    }
    e.line(fmt::format("held_{}[t] = 0.0f;", name));
    e.open(inside.empty() ? "" : fmt::format("if ({})", inside));
    e.line(fmt::format("held_{}[t] = {};", name, element()));
    e.close();
  };
  t.hole("load_a", [&] {
    load(
        'a', tiles.a, below(g.rows, rows, "m", tiles.bm), [&] { return g.a_place(e, z, m, k); },
        [&] { return g.a(e, z, m, k); });
  });
  t.hole("load_b", [&] {
    load(
        'b', tiles.b, below(g.cols, cols, "n", tiles.bn), [&] { return g.b_place(e, z, k, n); },
        [&] { return g.b(e, z, k, n); });
  });
  const auto each_held = [&](const std::function<void(char, const TileLoads&)>& write) {
    if (!tiles.a.async) write('a', tiles.a);
    if (!tiles.b.async) write('b', tiles.b);
  };
  t.hole("declare_held", [&] {
    each_held(
        [&](char name, const TileLoads& l) { e.line(fmt::format("float held_{}[{}];", name, l.count)); });
  });
  t.hole("store_held", [&] {
    if (tiles.a.async && tiles.b.async) return;
    e.open("if (loads)");
    each_held([&](char name, const TileLoads& l) {
      e.open(fmt::format("TH_UNROLL for (int t = 0; t < {}; ++t)", l.count));
      const std::string to = l.at(threads), held = fmt::format("held_{}[t]", name);
      e.line(is_16 ? fmt::format("th_store_{}(next_{}, {}, {});", dtype_name(g.dtype), name, to, held)
                   : fmt::format("next_{}[{}] = {};", name, to, held));
      e.close();
    });
    e.close();
  });
  // Columns of a fragment: 8 neighbours, or (32 bits) every fourth of 32 where four fragments are read at
  // once.
  t.set("C_COLUMN",
        b_by_depth || is_16 ? "warp_n + j * 8 + column" : "warp_n + j / 4 * 32 + column * 4 + j % 4");
  t.set("PARTS", split > 1 ? fmt::format("TH_HAS_CLUSTERS ? {} : 1", split) : "1");
  t.set("BARRIER", split > 1 ? "th_cluster_barrier()" : "TH_BARRIER()");
  const std::string kind = is_16 ? "_16" : "";
  t.hole("fragment_a", [&] { t.write(e, (a_by_depth ? "a_along_k" : "a_along_m") + kind); });
  t.hole("fragments_b", [&] { t.write(e, (b_by_depth ? "b_along_k" : "b_along_n") + kind); });
  t.hole("multiply", [&] { t.write(e, is_16 ? "multiply_16" : "multiply_f32"); });
  t.hole("store_tile", [&] {
    write_tile_stores(
        e, g, z,
        {"tiles", tiles.bm, tiles.bn, tiles.c_pitch(), threads, split, "TH_THREAD", tiles.shares == 1});
  });
  t.hole("leave", [&] {  // nobody's shared memory goes away while others read it
    if (split > 1) e.line("th_cluster_barrier();");
  });
  t.write(e, "body");
  return e.finish(
      [g, tiles](const Facts& f, artifact::Launch& launch) {
        set_tile_grid(launch, g, f, tiles.bm, tiles.bn, tiles.split * tiles.shares, tiles.threads());
        launch.dynamic_shared_bytes = tiles.shared_bytes();
      },
      threads, split);
}

// Where a block leaves its sums of element (z, m, n): one product after the other.
std::string sums_place(Emitter& e, const Gemm& g, Index z, Index m, Index n, int64_t shares) {
  return e.text(e.index().linear(
      {e.index().var("share", ir::Dim(shares)), z, m, n},
      {e.constant(shares), extent_index(e, g.batches), extent_index(e, g.rows), extent_index(e, g.cols)}));
}

// Adds up what the blocks left, in an order that does not depend on anything, and finishes the elements.
KernelDraft emit_add_shares(ProgramDraft& draft, const std::string& symbol, const Gemm& g, int sums,
                            int64_t shares) {
  constexpr int64_t kThreads = 256;
  const int64_t slices = shares > 8 ? 8 : 1, items = kThreads / slices;
  Emitter e(draft, symbol);
  const std::vector<Index> dims{extent_index(e, g.batches), extent_index(e, g.rows), extent_index(e, g.cols)};
  const auto count = [g](const Facts& f) {
    return g.batches.source(f) * g.rows.source(f) * g.cols.source(f);
  };
  Template t("cuda/gemm_mma.cuh");
  t.set("ITEMS", items).set("SLICES", slices).set("SHARES", shares);
  t.set("COUNT", e.text(e.product(dims))).set("SUMS", draft.temporary_name(sums));
  if (slices > 1) t.set("SLICE_SUMS", e.local_array("float", kThreads));
  t.hole("join_slices", [&] {
    if (slices > 1) t.write(e, "join_slices");
  });
  t.hole("epilogue", [&] {
    const Index item = e.index().var("item", g.batches.dim * g.rows.dim * g.cols.dim);
    const Coords at = e.index().split(item, dims);
    g.epilogue(e, at[0], at[1], at[2], "total");
  });
  t.write(e, "add_shares");
  return e.finish(
      [count, items](const Facts& f, artifact::Launch& launch) {
        set_grid(launch, ceil_div(count(f), items), kThreads);
      },
      kThreads);
}

}  // namespace

int declare_mma_sums(ProgramDraft& draft, const Gemm& g, const Schedule& s) {
  const int64_t shares = s.get("shares", 1);
  if (shares == 1) return -1;
  return draft.add_temporary(DType::kF32, [g, shares](const Facts& f) {
    return shares * g.batches.source(f) * g.rows.source(f) * g.cols.source(f);
  });
}

void emit_gemm_mma(ProgramDraft& draft, const std::string& symbol, const Gemm& g, const Schedule& s) {
  const MmaTiles tiles = mma_tiles(g, s);
  if (tiles.shares == 1) {
    draft.kernels.push_back(emit_multiply(draft, symbol, g, tiles));
    return;
  }
  const int sums = g.sums >= 0 ? g.sums : declare_mma_sums(draft, g, s);
  Gemm inner = g;
  inner.epilogue = [g, sums, shares = tiles.shares](Emitter& e, Index z, Index m, Index n,
                                                    const std::string& acc) {
    e.store_temporary(sums, sums_place(e, g, z, m, n, shares), acc);
  };
  draft.kernels.push_back(emit_multiply(draft, symbol, inner, tiles));
  draft.kernels.push_back(emit_add_shares(draft, symbol + "_add", g, sums, tiles.shares));
}

}  // namespace thrice::family
