#include "family/gemm_mma.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "family/scalar.h"
#include "family/template.h"

namespace thrice::family {

namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// 90 of "sm_90a"; 0 of anything else.
int generation(const DeviceSpec& device) {
  return device.architecture.rfind("sm_", 0) == 0 ? std::atoi(device.architecture.c_str() + 3) : 0;
}
bool has_clusters(const DeviceSpec& device) { return generation(device) >= 90; }

// How a tile lies in shared memory: `along` elements next to each other, `across` lines `pitch` apart. The
// pads make the 32 threads of a warp meet 32 banks when they read fragments: lines of the depth are read by
// pairs of neighbours (pitch = 8 or 24 modulo 32), lines of rows or columns two at a time (pitch = 4 modulo
// 16).
struct TileLayout {
  bool along_depth = false;
  int64_t along = 0, across = 0, pitch = 0;
  int64_t size() const { return across * pitch; }
};

TileLayout layout_of(bool along_depth, int64_t extent, int64_t depth) {
  if (along_depth) return {true, depth, extent, depth + (depth % 16 == 0 ? 8 : 16)};
  return {false, extent, depth, extent + 4};
}

struct MmaTiles {
  int64_t bm, bn, bk, warps_m, warps_n, split;
  TileLayout a, b;
  int64_t threads() const { return 32 * warps_m * warps_n; }
  int64_t wm() const { return bm / warps_m; }
  int64_t wn() const { return bn / warps_n; }
  int64_t buffer() const { return a.size() + b.size(); }
  int64_t c_pitch() const { return bn + 4; }
  int64_t shared_elements() const { return std::max(2 * buffer(), bm * c_pitch()); }
};

MmaTiles tiles_of(const Gemm& g, const Schedule& s) {
  MmaTiles t{s.get("tile_m"),
             s.get("tile_n"),
             s.get("tile_k"),
             s.get("warps_m"),
             s.get("warps_n"),
             s.get("split"),
             {},
             {}};
  t.a = layout_of(!g.a_rows_follow, t.bm, t.bk);
  t.b = layout_of(g.b_depth_follows, t.bn, t.bk);
  return t;
}

// Which element of a tile a thread's load number t brings: (position along a line, line).
std::pair<std::string, std::string> position_of(const TileLayout& l, int64_t threads) {
  return {fmt::format("TH_THREAD % {}", l.along),
          fmt::format("(TH_THREAD / {} + t * {})", l.along, threads / l.along)};
}

std::string extent_text(Emitter& e, const Extent& extent) {
  return e.text(e.index().extent(extent.dim, extent.source));
}

std::string tile_count(Emitter& e, const std::string& name, const Extent& extent, int64_t tile) {
  if (extent.dim.is_const()) return e.text(e.constant(ceil_div(extent.dim.value(), tile)));
  return e.text(
      e.index().extent(name, [s = extent.source, tile](const Facts& f) { return ceil_div(s(f), tile); }));
}

}  // namespace

KernelDraft emit_gemm_mma(ProgramDraft& draft, const std::string& symbol, const Gemm& g, const Schedule& s) {
  Emitter e(draft, symbol);
  const MmaTiles tiles = tiles_of(g, s);
  const int64_t threads = tiles.threads(), split = tiles.split;
  const Index z = g.batches.dim.is_const() && g.batches.dim.value() == 1 ? e.constant(0)
                                                                         : e.index().var("z", g.batches.dim);
  const Index m = e.index().var("m", g.rows.dim), n = e.index().var("n", g.cols.dim),
              k = e.index().var("k", g.depth.dim);
  Template t("cuda/gemm_mma.cuh");
  e.preamble(t.section("functions"));
  if (split > 1) e.preamble(t.section("cluster_functions"));
  t.set("M", extent_text(e, g.rows)).set("N", extent_text(e, g.cols)).set("K", extent_text(e, g.depth));
  t.set("TILES_M", tile_count(e, "tiles_m", g.rows, tiles.bm))
      .set("TILES_N", tile_count(e, "tiles_n", g.cols, tiles.bn));
  t.set("BM", tiles.bm).set("BN", tiles.bn).set("BK", tiles.bk).set("WM", tiles.wm()).set("WN", tiles.wn());
  t.set("WARPS_N", tiles.warps_n).set("THREADS", threads).set("SPLIT", split);
  t.set("FM", tiles.wm() / 16).set("FN", tiles.wn() / 8);
  t.set("LOADS_A", tiles.bm * tiles.bk / threads).set("LOADS_B", tiles.bn * tiles.bk / threads);
  t.set("AP", tiles.a.pitch).set("BP", tiles.b.pitch).set("CP", tiles.c_pitch());
  t.set("SIZE_A", tiles.a.size()).set("BUFFER", tiles.buffer());
  const std::string shared = e.local_array("__align__(16) float", tiles.shared_elements());
  t.set("SHARED", shared);
  const auto [a_along, a_line] = position_of(tiles.a, threads);
  const auto [b_along, b_line] = position_of(tiles.b, threads);
  t.set("A_ROW", tiles.a.along_depth ? a_line : a_along)
      .set("A_DEPTH", tiles.a.along_depth ? a_along : a_line);
  t.set("B_COL", tiles.b.along_depth ? b_line : b_along)
      .set("B_DEPTH", tiles.b.along_depth ? b_along : b_line);
  t.set("A_AT", fmt::format("{} * {} + {}", a_line, tiles.a.pitch, a_along));
  t.set("B_AT", fmt::format("{} * {} + {}", b_line, tiles.b.pitch, b_along));
  // Columns of a fragment: 8 neighbours, or every fourth of 32 where four fragments are read at once.
  t.set("C_COLUMN",
        tiles.b.along_depth ? "warp_n + j * 8 + column" : "warp_n + j / 4 * 32 + column * 4 + j % 4");
  t.set("BARRIER", split > 1 ? "th_cluster_barrier()" : "TH_BARRIER()");
  t.hole("load_a", [&] { e.line(fmt::format("element = {};", g.a(e, z, m, k))); });
  t.hole("load_b", [&] { e.line(fmt::format("element = {};", g.b(e, z, k, n))); });
  t.hole("fragment_a", [&] { t.write(e, tiles.a.along_depth ? "a_along_k" : "a_along_m"); });
  t.hole("fragments_b", [&] { t.write(e, tiles.b.along_depth ? "b_along_k" : "b_along_n"); });
  const bool split_operands = g.dtype == DType::kF32;
  t.set("RESULT", split_operands ? "acc[i][j][r] + low[i][j][r]" : "acc[i][j][r]");
  t.hole("begin_low", [&] {
    if (split_operands) e.line(fmt::format("float low[{}][{}][4];", tiles.wm() / 16, tiles.wn() / 8));
  });
  t.hole("zero_low", [&] {
    if (split_operands) e.line("low[i][j][r] = 0.0f;");
  });
  t.hole("multiply", [&] { t.write(e, split_operands ? "multiply_split" : "multiply_exact"); });
  t.hole("add_parts", [&] {
    const std::string at = fmt::format("tm * {} + tn", tiles.c_pitch());
    if (split == 1) return e.line(fmt::format("total = {}[{}];", shared, at));
    e.open(fmt::format("TH_UNROLL for (int r = 0; r < {}; ++r)", split));
    e.line(fmt::format("total += th_cluster_load({} + {}, r);", shared, at));
    e.close();
  });
  t.hole("epilogue", [&] { g.epilogue(e, z, m, n, "total"); });
  t.hole("leave", [&] {  // nobody's shared memory goes away while others read it
    if (split > 1) e.line("th_cluster_barrier();");
  });
  t.write(e, "body");
  return e.finish(
      [g, tiles](const Facts& f, artifact::Launch& launch) {
        set_grid(launch,
                 ceil_div(g.rows.source(f), tiles.bm) * ceil_div(g.cols.source(f), tiles.bn) *
                     g.batches.source(f) * tiles.split,
                 tiles.threads());
      },
      threads, split);
}

std::vector<std::pair<std::string, int64_t>> default_gemm_mma(const GemmSize& size,
                                                              const DeviceSpec& device) {
  const auto blocks = [&](int64_t m, int64_t n) {
    return ceil_div(size.rows, m) * ceil_div(size.cols, n) * size.batches;
  };
  const int64_t most = has_clusters(device) ? 8 : 1;
  int64_t bm = 64, bn = 64, bk = 32, warps_m = 2, warps_n = 2;
  if (size.rows > 64 && blocks(128, 64) >= 2 * device.compute_units) {
    bm = 128;
    bk = 16;
    warps_m = 4;
  } else if (blocks(64, 64) * most < device.compute_units || size.rows <= 32) {
    bm = 32;
    warps_m = 1;
  }
  // Blocks for every unit, as long as each has four steps to hide its loads behind.
  int64_t split = 1;
  while (split < most && blocks(bm, bn) * split < device.compute_units && size.depth >= 2 * split * 4 * bk)
    split *= 2;
  return {{"tile_m", bm},       {"tile_n", bn},       {"tile_k", bk},
          {"warps_m", warps_m}, {"warps_n", warps_n}, {"split", split}};
}

std::vector<artifact::Parameter> gemm_mma_parameters(const DeviceSpec& device) {
  std::vector<int64_t> splits{1};
  if (has_clusters(device)) splits = {1, 2, 4, 8};
  return {{"tile_m", {16, 32, 64, 128}}, {"tile_n", {32, 64, 128}}, {"tile_k", {8, 16, 32}},
          {"warps_m", {1, 2, 4}},        {"warps_n", {1, 2, 4}},    {"split", splits}};
}

Refusal refuse_gemm_mma(const Workload& workload, const Gemm& g, const Schedule& s,
                        const DeviceSpec& device) {
  if (device.api != target::Api::kCuda) return "mma needs the tensor cores of an NVIDIA GPU";
  if (g.dtype != DType::kF32 && g.dtype != DType::kF16 && g.dtype != DType::kBF16)
    return "mma is written for f32, f16 and bf16";
  if (generation(device) < 80) return "mma needs sm_80 or newer";
  for (const char* name : {"tile_m", "tile_n", "tile_k"})
    if (s.get(name) < 8) return "tiles must be made of 16x32x8 pieces";
  const MmaTiles t = tiles_of(g, s);
  if (t.bm < 1 || t.bn < 1 || t.bk < 1 || t.warps_m < 1 || t.warps_n < 1 || t.split < 1)
    return "tiles must be positive";
  if (t.bm % (16 * t.warps_m) != 0 || t.bn % (32 * t.warps_n) != 0 || t.bk % 8 != 0)
    return fmt::format("warps of a {}x{}x{} tile are not made of 16x32x8 pieces", t.bm, t.bn, t.bk);
  const int64_t threads = t.threads();
  for (const TileLayout* l : {&t.a, &t.b})
    if (threads % l->along != 0 || l->along * l->across % threads != 0)
      return fmt::format("{} threads do not load lines of {} in whole turns", threads, l->along);
  if (t.split > 8) return "clusters have at most 8 blocks everywhere";
  if (t.split > 1 && !has_clusters(device))
    return fmt::format("split needs clusters, which {} does not have", device.architecture);
  // Two sets of sums, both operands in two parts, loads on their way, addresses.
  const int64_t registers =
      t.wm() * t.wn() / 16 + t.wm() / 16 * 12 + t.wn() / 8 * 6 + (t.bm + t.bn) * t.bk / threads + 40;
  const int64_t limit = std::min<int64_t>(255, device.registers_per_block / threads);
  if (registers > limit)
    return fmt::format("about {} registers a thread; {} threads a block leave {}", registers, threads, limit);
  return refuse_device(workload, device, threads, t.shared_elements() * 4);
}

}  // namespace thrice::family
