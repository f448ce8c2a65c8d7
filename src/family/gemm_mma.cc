#include "family/gemm_mma.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "family/choices.h"
#include "family/scalar.h"
#include "family/template.h"

namespace thrice::family {

namespace {

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
  if (along_depth) return {true, depth, extent, depth_pitch(depth)};
  return {false, extent, depth, extent + 4};
}

// How one operand comes into its tile: `width` neighbours a copy (1 or 4), asynchronous or through registers.
struct TileLoads {
  TileLayout layout;
  bool async = false;
  int64_t width = 1, count = 0;  // copies a thread

  // Text of the position along the line, and of the line, of copy number t of a thread.
  std::string along() const {
    const std::string at = fmt::format("TH_THREAD % {}", layout.along / width);
    return width == 1 ? at : fmt::format("{} * {}", at, width);
  }
  std::string line(int64_t threads) const {
    const int64_t turn = layout.along / width;
    return fmt::format("(TH_THREAD / {} + t * {})", turn, threads / turn);
  }
  std::string at(int64_t threads) const {
    return fmt::format("{} * {} + {}", line(threads), layout.pitch, along());
  }
};

bool in_whole_turns(const TileLayout& l, int64_t width, int64_t threads) {
  return l.along % width == 0 && threads % (l.along / width) == 0 &&
         l.along * l.across % (threads * width) == 0;
}

TileLoads loads_of(const TileLayout& layout, bool async, bool in_fours, int64_t threads) {
  TileLoads loads{layout, async, 1, 0};
  if (async && in_fours && in_whole_turns(layout, 4, threads)) loads.width = 4;
  loads.count = layout.along * layout.across / (threads * loads.width);
  return loads;
}

struct MmaTiles {
  int64_t bm, bn, bk, warps_m, warps_n, stages, split;
  TileLoads a, b;
  int64_t threads() const { return 32 * warps_m * warps_n; }
  int64_t wm() const { return bm / warps_m; }
  int64_t wn() const { return bn / warps_n; }
  int64_t buffer() const { return a.layout.size() + b.layout.size(); }
  int64_t c_pitch() const { return bn + 4; }
  int64_t shared_bytes() const { return 4 * std::max(stages * buffer(), bm * c_pitch()); }
};

MmaTiles tiles_of(const Gemm& g, const Schedule& s) {
  MmaTiles t{};
  t.bm = s.get("tile_m");
  t.bn = s.get("tile_n");
  t.bk = s.get("tile_k");
  t.warps_m = s.get("warps_m");
  t.warps_n = s.get("warps_n");
  t.stages = s.get("stages");
  t.split = s.get("split");
  const bool f32 = g.dtype == DType::kF32;
  t.a = loads_of(layout_of(!g.a_rows_follow, t.bm, t.bk), f32 && g.a_place, g.a_in_fours, t.threads());
  t.b = loads_of(layout_of(g.b_depth_follows, t.bn, t.bk), f32 && g.b_place, g.b_in_fours, t.threads());
  return t;
}

std::string both(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return a.empty() ? b : a;
  return a + " && " + b;
}

// "variable < extent"; "" where tiles never reach beyond it.
std::string below(const Extent& extent, const std::string& text, const std::string& variable, int64_t tile) {
  if (extent.dim.is_const() && extent.dim.value() % tile == 0) return "";
  return fmt::format("{} < {}", variable, text);
}

}  // namespace

int64_t depth_pitch(int64_t depth) { return depth + (depth % 16 == 0 ? 8 : 16); }

Refusal refuse_without_mma(const DeviceSpec& device) {
  if (device.api != target::Api::kCuda) return "mma needs the tensor cores of an NVIDIA GPU";
  if (generation(device) < 80) return "mma needs sm_80 or newer";
  return std::nullopt;
}

KernelDraft emit_gemm_mma(ProgramDraft& draft, const std::string& symbol, const Gemm& g, const Schedule& s) {
  Emitter e(draft, symbol);
  const MmaTiles tiles = tiles_of(g, s);
  const int64_t threads = tiles.threads(), split = tiles.split;
  const Index z = batch_index(e, g);
  const Index m = e.index().var("m", g.rows.dim), n = e.index().var("n", g.cols.dim);
  const Index k = e.index().add(e.index().mul(e.index().var("ahead"), e.constant(tiles.bk)),
                                e.index().var("tk", ir::Dim(tiles.bk)));
  const std::string rows = extent_text(e, g.rows), cols = extent_text(e, g.cols),
                    depth = extent_text(e, g.depth);
  Template t("cuda/gemm_mma.cuh");
  e.preamble(t.section("functions"));
  if (split > 1) e.preamble(t.section("cluster_functions"));
  t.set("K", depth);
  t.set("TILES_M", tile_count(e, "tiles_m", g.rows, tiles.bm))
      .set("TILES_N", tile_count(e, "tiles_n", g.cols, tiles.bn));
  t.set("BM", tiles.bm).set("BN", tiles.bn).set("BK", tiles.bk).set("WM", tiles.wm()).set("WN", tiles.wn());
  t.set("WARPS_N", tiles.warps_n).set("THREADS", threads).set("SPLIT", split).set("STAGES", tiles.stages);
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
    const std::string inside = both(in_line, whole_steps ? "" : fmt::format("{} < {}", e.text(k), depth));
    if (loads.async) {
      const GemmPlace from = place();
      const std::string when = both(inside, from.inside);
      e.line(fmt::format("th_copy{}(next_{} + {}, {}, {});", loads.width * 4, name, loads.at(threads),
                         from.address, when.empty() ? "true" : when));
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
      e.line(fmt::format("next_{0}[{1}] = held_{0}[t];", name, l.at(threads)));
      e.close();
    });
    e.close();
  });
  // Columns of a fragment: 8 neighbours, or every fourth of 32 where four fragments are read at once.
  t.set("C_COLUMN", b_by_depth ? "warp_n + j * 8 + column" : "warp_n + j / 4 * 32 + column * 4 + j % 4");
  t.set("PARTS", split > 1 ? fmt::format("TH_HAS_CLUSTERS ? {} : 1", split) : "1");
  t.set("BARRIER", split > 1 ? "th_cluster_barrier()" : "TH_BARRIER()");
  t.hole("fragment_a", [&] { t.write(e, a_by_depth ? "a_along_k" : "a_along_m"); });
  t.hole("fragments_b", [&] { t.write(e, b_by_depth ? "b_along_k" : "b_along_n"); });
  const bool split_operands = g.dtype == DType::kF32;
  t.set("RESULT", split_operands ? "acc[i][j][r] + low[i][j][r]" : "acc[i][j][r]");
  t.hole("begin_low", [&] {
    if (split_operands) e.line(fmt::format("float low[{}][{}][4];", tiles.wm() / 16, tiles.wn() / 8));
  });
  t.hole("zero_low", [&] {
    if (split_operands) e.line("low[i][j][r] = 0.0f;");
  });
  t.hole("multiply", [&] { t.write(e, split_operands ? "multiply_split" : "multiply_exact"); });
  t.hole("store_tile", [&] {
    write_tile_stores(e, g, z, {"tiles", tiles.bm, tiles.bn, tiles.c_pitch(), threads, split});
  });
  t.hole("leave", [&] {  // nobody's shared memory goes away while others read it
    if (split > 1) e.line("th_cluster_barrier();");
  });
  t.write(e, "body");
  return e.finish(
      [g, tiles](const Facts& f, artifact::Launch& launch) {
        set_tile_grid(launch, g, f, tiles.bm, tiles.bn, tiles.split, tiles.threads());
        launch.dynamic_shared_bytes = tiles.shared_bytes();
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
  // A block that has a multiprocessor for itself keeps as much of its depth on the way as that holds.
  const bool alone = blocks(bm, bn) * split <= device.compute_units;
  const int64_t stages = alone ? 6 : 3;
  return {{"tile_m", bm},       {"tile_n", bn},     {"tile_k", bk},  {"warps_m", warps_m},
          {"warps_n", warps_n}, {"stages", stages}, {"split", split}};
}

std::vector<artifact::Parameter> gemm_mma_parameters(const DeviceSpec& device) {
  std::vector<int64_t> splits{1};
  if (has_clusters(device)) splits = {1, 2, 4, 8};
  return {{"tile_m", {16, 32, 64, 128}},
          {"tile_n", {32, 64, 128}},
          {"tile_k", {8, 16, 32}},
          {"warps_m", {1, 2, 4}},
          {"warps_n", {1, 2, 4}},
          {"stages", {2, 3, 4, 6}},
          {"split", splits}};
}

Refusal refuse_gemm_mma(const Workload& workload, const Gemm& g, const Schedule& s,
                        const DeviceSpec& device) {
  if (auto refusal = refuse_without_mma(device)) return refusal;
  if (g.dtype != DType::kF32 && g.dtype != DType::kF16 && g.dtype != DType::kBF16)
    return "mma is written for f32, f16 and bf16";
  for (const char* name : {"tile_m", "tile_n", "tile_k"})
    if (s.get(name) < 8) return "tiles must be made of 16x32x8 pieces";
  const int64_t warps = s.get("warps_m") * s.get("warps_n");
  if (warps < 1 || s.get("stages") < 2 || s.get("split") < 1) return "too few warps, stages or parts";
  const MmaTiles t = tiles_of(g, s);
  if (t.bm % (16 * t.warps_m) != 0 || t.bn % (32 * t.warps_n) != 0 || t.bk % 8 != 0)
    return fmt::format("warps of a {}x{}x{} tile are not made of 16x32x8 pieces", t.bm, t.bn, t.bk);
  const int64_t threads = t.threads();
  for (const TileLoads* l : {&t.a, &t.b})
    if (!in_whole_turns(l->layout, 1, threads))
      return fmt::format("{} threads do not load lines of {} in whole turns", threads, l->layout.along);
  if (t.split > 8) return "clusters have at most 8 blocks everywhere";
  if (t.split > 1 && !has_clusters(device))
    return fmt::format("split needs clusters, which {} does not have", device.architecture);
  // Two sets of sums, both operands in two parts, loads on their way, addresses.
  const int64_t held = (t.a.async ? 0 : t.a.count) + (t.b.async ? 0 : t.b.count);
  const int64_t registers = t.wm() * t.wn() / 16 + t.wm() / 16 * 12 + t.wn() / 8 * 6 + held + 40;
  const int64_t limit = std::min<int64_t>(255, device.registers_per_block / threads);
  if (registers > limit)
    return fmt::format("about {} registers a thread; {} threads a block leave {}", registers, threads, limit);
  const int64_t shared = std::max(device.max_shared_bytes, device.optin_shared_bytes);
  if (t.shared_bytes() > shared)
    return fmt::format("{} bytes of shared memory a block; {} allows {}", t.shared_bytes(), device.name,
                       shared);
  return refuse_device(workload, device, threads, 0);
}

}  // namespace thrice::family
