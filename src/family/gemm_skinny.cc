#include "family/gemm_skinny.h"

#include <fmt/format.h>

#include <algorithm>

#include "family/choices.h"
#include "family/gemm_mma.h"
#include "family/gemm_mma_tiles.h"
#include "family/template.h"

namespace thrice::family {

namespace {

constexpr int64_t kWide = 8192, kDeep = 1024;  // columns and depth

struct SkinnyTiles {
  int64_t bm, bn, warps_k, stages, split;
  bool is_16, along_k;
  int64_t warp_columns() const { return is_16 && !along_k ? 64 : 32; }
  int64_t warps_n() const { return bn / warp_columns(); }
  int64_t threads() const { return 32 * warps_n() * warps_k; }
  // Steps of the depth that a warp takes at once, and those among them that follow in a thread's line of A.
  int64_t step() const { return is_16 && along_k ? 32 : 16; }
  int64_t line() const { return step() / 4; }
  int64_t fragments() const { return warp_columns() / 8; }
  int64_t pitch() const { return bn + 4; }
  int64_t shared_bytes() const { return 4 * warps_k * bm * pitch(); }
};

SkinnyTiles tiles_of(const Gemm& g, const Schedule& s) {
  return {s.get("tile_m"), s.get("tile_n"),        s.get("warps_k"), s.get("stages"),
          s.get("split"),  g.dtype != DType::kF32, g.b_depth_follows};
}

// A thread's line of A can be read at once.
bool reads_lines(const Gemm& g, const SkinnyTiles& t) {
  return g.a_place && !g.a_rows_follow && (t.line() == 8 ? g.a_in_eights : g.a_in_fours);
}

KernelDraft emit_kernel(ProgramDraft& draft, const std::string& symbol, const Gemm& g, const SkinnyTiles& t) {
  Emitter e(draft, symbol);
  const Index z = batch_index(e, g);
  const Index m = e.index().var("m", g.rows.dim), n = e.index().var("n", g.cols.dim),
              k = e.index().var("k", g.depth.dim);
  const std::string rows = extent_text(e, g.rows), cols = extent_text(e, g.cols),
                    depth = extent_text(e, g.depth);
  Template mma("cuda/gemm_mma.cuh"), text("cuda/gemm_skinny.cuh");
  mma.set("FORMAT", g.dtype == DType::kF16 ? "f16" : "bf16");
  e.preamble(mma.section(t.is_16 ? "functions_16" : "functions_f32"));
  if (t.split > 1) e.preamble(mma.section("cluster_functions"));
  e.preamble(text.section("functions"));
  text.set("K", depth).set("STEP", t.step()).set("LINE", t.line());
  text.set("TILES_M", tile_count(e, "tiles_m", g.rows, t.bm))
      .set("TILES_N", tile_count(e, "tiles_n", g.cols, t.bn));
  text.set("BM", t.bm).set("BN", t.bn).set("WN", t.warp_columns()).set("CP", t.pitch());
  text.set("FM", t.bm / 16).set("FN", t.fragments()).set("STAGES", t.stages).set("SPLIT", t.split);
  text.set("WARPS_N", t.warps_n()).set("WARPS_K", t.warps_k).set("THREADS", t.threads());
  text.set("B_COL", t.along_k ? "i * 8 + group" : fmt::format("group * {}", t.is_16 ? 8 : 4));
  text.set("B_DEPTH", t.along_k ? fmt::format("quad * {}", t.line()) : "quad * 4 + i");
  text.set("B_ELEMENT",
           t.along_k ? "th_part(held_b[now][j], half * 2 + r)" : "th_part(held_b[now][half * 2 + r], j)");
  text.set("C_COLUMN", t.along_k ? "j * 8 + column" : t.is_16 ? "column * 8 + j" : "column * 4 + j");
  text.set("PARTS", t.split > 1 ? fmt::format("TH_HAS_CLUSTERS ? {} : 1", t.split) : "1");
  text.set("BARRIER", t.split > 1 ? "th_cluster_barrier()" : "TH_BARRIER()");
  const std::string in_depth = below(g.depth, depth, "k", t.step());
  text.hole("load", [&] { text.write(e, "load"); });
  text.hole("load_b", [&] {
    const GemmPlace from = g.b_place(e, z, k, n);
    e.open(fmt::format("if ({})",
                       all_of({"step < end", in_depth, below(g.cols, cols, "n", t.bn), from.inside})));
    e.line(fmt::format("held_b[s][i] = th_stream({});", from.address));
    e.close();
  });
  text.hole("load_a", [&] {
    const std::string in_rows = below(g.rows, rows, "m", t.bm);
    if (reads_lines(g, t)) {
      const GemmPlace from = g.a_place(e, z, m, k);
      e.open(fmt::format("if ({})", all_of({"step < end", in_depth, in_rows, from.inside})));
      if (t.line() * (t.is_16 ? 2 : 4) == 16) {
        e.line(fmt::format("held_a[s][i][half] = th_reused({});", from.address));
      } else {
        e.line(fmt::format("const uint2 pair = __ldg((const uint2*)({}));", from.address));
        e.line("held_a[s][i][half] = {pair.x, pair.y, 0u, 0u};");
      }
      e.close();
      return;
    }
    e.open(fmt::format("if ({})", all_of({"step < end", in_rows})));
    e.line("float line[4] = {0.0f, 0.0f, 0.0f, 0.0f};");
    e.open("TH_UNROLL for (int c = 0; c < 4; ++c)");
    e.line("const int own_k = k + c;");
    const Index own_k = e.index().var("own_k", g.depth.dim);
    e.open(in_depth.empty() ? "" : fmt::format("if (own_k < {})", depth));
    e.line(fmt::format("line[c] = {};", g.a(e, z, m, own_k)));
    e.close();
    e.close();
    e.line(
        "held_a[s][i][half] = {(th_u32)__float_as_int(line[0]), (th_u32)__float_as_int(line[1]), "
        "(th_u32)__float_as_int(line[2]), (th_u32)__float_as_int(line[3])};");
    e.close();
  });
  text.hole("multiply", [&] {
    text.write(e, !t.is_16 ? "multiply_f32" : t.along_k ? "multiply_16_along_k" : "multiply_16_along_n");
  });
  text.hole("join", [&] {
    if (t.is_16) text.write(e, "join");
  });
  text.hole("join_warps", [&] {
    if (t.warps_k > 1) text.write(e, "join_warps");
  });
  text.hole("store_tile", [&] {
    write_tile_stores(e, g, z, {"tiles", t.bm, t.bn, t.pitch(), t.threads(), t.split});
  });
  text.hole("leave", [&] {  // nobody's shared memory goes away while others read it
    if (t.split > 1) e.line("th_cluster_barrier();");
  });
  text.write(e, "body");
  return e.finish(
      [g, t](const Facts& f, artifact::Launch& launch) {
        set_tile_grid(launch, g, f, t.bm, t.bn, t.split, t.threads());
        launch.dynamic_shared_bytes = t.shared_bytes();
      },
      t.threads(), t.split);
}

// What no choice of tiles can mend.
Refusal refuse_structure(const Gemm& g, const SkinnyTiles& t, const DeviceSpec& device) {
  if (auto refusal = refuse_without_mma(device)) return refusal;
  if (g.dtype != DType::kF32 && g.dtype != DType::kF16 && g.dtype != DType::kBF16)
    return "skinny is written for f32, f16 and bf16";
  if (!g.b_place || !(t.is_16 ? g.b_in_eights : g.b_in_fours))
    return "B is not read in pieces of 16 bytes: take mma";
  if (t.is_16 && !reads_lines(g, t)) return "A is not read in lines along the depth: take mma";
  return std::nullopt;
}

}  // namespace

void emit_gemm_skinny(ProgramDraft& draft, const std::string& symbol, const Gemm& g, const Schedule& s) {
  draft.kernels.push_back(emit_kernel(draft, symbol, g, tiles_of(g, s)));
}

std::vector<std::pair<std::string, int64_t>> default_gemm_skinny(const GemmSize& size,
                                                                 const DeviceSpec& device) {
  const bool is_16 = size.dtype != DType::kF32, is_wide = size.cols >= kWide;
  // Small products have few blocks: low tiles, and more lines of warps where the depth is long.
  const int64_t bm = !is_wide || size.rows <= 16 ? 16 : 32, bn = is_16 ? 64 : 32,
                warps_k = !is_wide && size.depth >= kDeep ? 8 : 4;
  const int64_t most = has_clusters(device) ? 8 : 1, wanted = (is_wide ? 2 : 1) * device.compute_units;
  const int64_t tiles = ceil_div(size.rows, bm) * ceil_div(size.cols, bn) * size.batches;
  int64_t split = 1;
  while (split < most && tiles * split * 10 < wanted * 9 && size.depth >= 2 * split * warps_k * 64)
    split *= 2;
  const int64_t stages = bm == 32 ? 2 : warps_k == 8 ? 3 : 4;
  return {{"tile_m", bm}, {"tile_n", bn}, {"warps_k", warps_k}, {"stages", stages}, {"split", split}};
}

bool suits_gemm_skinny(const Gemm& g, const GemmSize& size, const DeviceSpec& device) {
  constexpr int64_t kFewest = 5, kMost = 32;
  constexpr int64_t kSmall = 120'000'000;  // multiplications; from twice as many on wgmma is faster
  const bool is_wide =
      size.rows >= kFewest && size.rows <= kMost && size.cols >= kWide && size.depth >= kDeep;
  const bool is_small = size.dtype == DType::kF32 && size.is_direct && size.batches == 1 && size.rows >= 64 &&
                        size.rows <= 256 && size.cols >= 256 && size.depth >= 256 &&
                        size.rows * size.cols * size.depth <= kSmall;
  if (!is_wide && !is_small) return false;
  const Schedule s{"matmul", "skinny", default_gemm_skinny(size, device)};
  return !refuse_structure(g, tiles_of(g, s), device);
}

std::vector<artifact::Parameter> gemm_skinny_parameters(const DeviceSpec& device) {
  std::vector<int64_t> splits{1};
  if (has_clusters(device)) splits = {1, 2, 4, 8};
  return {{"tile_m", {16, 32}},
          {"tile_n", {32, 64, 128, 256}},
          {"warps_k", {1, 2, 4, 8, 16}},
          {"stages", {2, 3, 4, 6}},
          {"split", splits}};
}

Refusal refuse_gemm_skinny(const Workload& workload, const Gemm& g, const Schedule& s,
                           const DeviceSpec& device) {
  const SkinnyTiles t = tiles_of(g, s);
  if (auto refusal = refuse_structure(g, t, device)) return refusal;
  if ((t.bm != 16 && t.bm != 32) || t.warps_k < 1 || t.stages < 2 || t.split < 1 || t.bn < t.warp_columns() ||
      t.bn % t.warp_columns() != 0)
    return fmt::format("a block has 16 or 32 rows, columns in warps of {}, and two stages or more",
                       t.warp_columns());
  constexpr int64_t kMostRows = 256;
  if (g.rows.dim.is_const() && g.rows.dim.value() > kMostRows)
    return fmt::format("{} rows: B would be read {} times", g.rows.dim.value(),
                       ceil_div(g.rows.dim.value(), t.bm));
  if (t.split > 8) return "clusters have at most 8 blocks everywhere";
  if (t.split > 1 && !has_clusters(device))
    return fmt::format("split needs clusters, which {} does not have", device.architecture);
  const int64_t threads = t.threads(), fm = t.bm / 16;
  // What is held of B and A, two sets of sums, parts of fragments, addresses.
  const int64_t registers =
      t.stages * (16 + t.line() * (t.is_16 ? 1 : 2) * fm) + 8 * fm * t.fragments() + (t.is_16 ? 8 : 48) + 28;
  const int64_t limit = std::min<int64_t>(255, device.registers_per_block / threads);
  if (registers > limit)
    return fmt::format("about {} registers a thread; {} threads a block leave {}", registers, threads, limit);
  return refuse_at_launch(workload, device, threads, t.shared_bytes());
}

}  // namespace thrice::family
