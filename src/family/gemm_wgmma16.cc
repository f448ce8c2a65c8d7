#include "family/gemm_wgmma16.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <limits>

#include "family/choices.h"
#include "family/gemm_wgmma.h"
#include "family/library_choice.h"
#include "family/scalar.h"
#include "family/template.h"

namespace thrice::family {

namespace {

constexpr int64_t kStep = 64;      // of the depth: one 128-byte swizzle line
constexpr int64_t kCopyUnit = 64;  // elements that lines of a copy are whole multiples of
constexpr int64_t kSharedBytes = 227 * 1024;
constexpr int64_t kMostSlots = 8;         // more hides nothing more
constexpr int64_t kStagingBytes = 16384;  // a group of consumers: 64 x 40 sums, or twice 64 x 64 results

struct Tiles {
  int64_t bm, bn, slots, cluster, split, blocks;
  int64_t together() const { return cluster * split; }  // one of the two is 1
  int64_t consumers() const { return bm / 64; }
  int64_t threads() const { return 128 * (consumers() + 1); }
  int64_t slot() const { return (bm + bn) * 128; }
  int64_t staging() const { return slots * slot(); }
  int64_t barriers() const { return staging() + consumers() * kStagingBytes; }
  int64_t c_pitch() const { return bn + 8; }
  int64_t shared_bytes() const {
    return 1024 + std::max(barriers() + 16 * slots, split > 1 ? 4 * bm * c_pitch() : 0);
  }
};

Tiles tiles_of(const Schedule& s) {
  return {s.get("tile_m"),  s.get("tile_n"), s.get("stages"),
          s.get("cluster"), s.get("split"),  s.get("blocks")};
}

// One operand: rows of A, or columns of B.
struct Side {
  Extent rows;
  bool in_lines = false;             // its rows, not the depth, follow in memory
  int64_t box = 0;                   // rows a copy brings
  bool once = false;                 // where it is copied: a weight of known extents, kept
  std::optional<GemmMatrix> matrix;  // as it lies in memory; else through a copy
  std::function<std::string(Emitter&, Index z, Index row, Index k)> element;
  int copy = -1;  // the scratch buffer

  bool is_batched() const { return !matrix || matrix->is_batched; }
  const Extent& line(const Gemm& g) const { return in_lines ? rows : g.depth; }
  const Extent& lines(const Gemm& g) const { return in_lines ? g.depth : rows; }
  // Elements from a line to the next: maps step 16 bytes and more; copies 128, so that no box reads a line of
  // the second cache in vain.
  int64_t pitch(const Gemm& g, const Facts& f) const {
    const int64_t unit = matrix ? 8 : kCopyUnit;
    return ceil_div(line(g).source(f), unit) * unit;
  }

  artifact::TensorMap map(const Gemm& g, const Facts& f, int buffer) const {
    artifact::TensorMap m;
    m.buffer = buffer;
    m.extents = {line(g).source(f), lines(g).source(f), is_batched() ? g.batches.source(f) : 1};
    m.strides = {2 * pitch(g, f), 2 * pitch(g, f) * lines(g).source(f)};
    m.box = in_lines ? std::array<int64_t, 3>{64, kStep, 1} : std::array<int64_t, 3>{kStep, box, 1};
    return m;
  }
};

bool is_whole(const Extent& line) { return line.dim.is_const() && line.dim.value() % 8 == 0; }

bool is_fixed(const Gemm& g, const Extent& rows) {
  return g.batches.dim.is_const() && g.depth.dim.is_const() && rows.dim.is_const();
}

Side side_a(const Gemm& g, const Tiles& t) {
  Side a{g.rows, g.a_rows_follow, t.bm, g.a_is_weight && is_fixed(g, g.rows), std::nullopt, g.a, -1};
  if (is_whole(a.line(g))) a.matrix = g.a_matrix;
  return a;
}
Side side_b(const Gemm& g, const Tiles& t) {
  Side b{g.cols,
         !g.b_depth_follows,
         t.bn / t.cluster,
         g.b_is_weight && is_fixed(g, g.cols),
         std::nullopt,
         nullptr,
         -1};
  b.element = [&g](Emitter& e, Index z, Index n, Index k) { return g.b(e, z, k, n); };
  if (is_whole(b.line(g))) b.matrix = g.b_matrix;
  return b;
}

// Declares the copy of an operand that maps cannot read as it lies.
void add_copy(ProgramDraft& draft, const Gemm& g, Side& side) {
  if (side.matrix) return;
  side.copy = draft.add_temporary(
      g.dtype,
      [g, side](const Facts& f) {
        const int64_t elements = g.batches.source(f) * side.lines(g).source(f) * side.pitch(g, f);
        if (elements > std::numeric_limits<int32_t>::max())
          throw Error(
              Code::kUnsupported,
              fmt::format("wgmma16 would copy an operand of {} elements; its kernels count in 32 bits",
                          elements));
        return elements;
      },
      side.once);
}

// Writes an operand into its copy, lines padded: eight neighbours of a line a thread, zeros beyond its end.
// What lies between the last eight of a line and the next line is never read.
KernelDraft emit_copy(ProgramDraft& draft, const std::string& symbol, const Gemm& g, const Side& side) {
  constexpr int64_t kThreads = 256, kEach = 8;
  Emitter e(draft, symbol);
  const auto count = [g, side](const Facts& f) {
    return g.batches.source(f) * side.lines(g).source(f) * ceil_div(side.line(g).source(f), kEach);
  };
  const Extent& line = side.line(g);
  const bool is_known = line.dim.is_const();
  const Index pieces = is_known ? e.constant(ceil_div(line.dim.value(), kEach))
                                : e.index().extent("pieces", [g, side](const Facts& f) {
                                    return ceil_div(side.line(g).source(f), kEach);
                                  });
  const std::vector<Index> dims{extent_index(e, g.batches), extent_index(e, side.lines(g)), pieces};
  const std::string pitch =
      is_known ? std::to_string(ceil_div(line.dim.value(), kCopyUnit) * kCopyUnit)
               : e.text(e.index().extent("pitch", [g, side](const Facts& f) { return side.pitch(g, f); }));
  const bool is_whole = is_known && line.dim.value() % kEach == 0;
  e.line(fmt::format("const int item = TH_BLOCK * {} + TH_THREAD;", kThreads));
  e.open(fmt::format("if (item < {})", e.text(e.product(dims))));
  const Index item = e.index().var(
      "item", is_known ? g.batches.dim * side.lines(g).dim * ir::Dim(ceil_div(line.dim.value(), kEach))
                       : ir::Dim::symbol("items"));
  const Coords at = e.index().split(item, dims);
  e.line(fmt::format("const int piece = {};", e.text(at[2])));
  e.line("__align__(16) th_u16 held[8];");
  e.open(fmt::format("TH_UNROLL for (int i = 0; i < {}; ++i)", kEach));
  e.line(fmt::format("const int in_line = piece * {} + i;", kEach));
  e.line("float value = 0.0f;");
  e.open(is_whole ? "" : fmt::format("if (in_line < {})", extent_text(e, line)));
  const Index in_line = e.index().var("in_line", line.dim);
  e.line(fmt::format("value = {};", side.in_lines ? side.element(e, at[0], in_line, at[1])
                                                  : side.element(e, at[0], at[1], in_line)));
  e.close();
  e.line(fmt::format("th_store_{}(held, i, value);", dtype_name(g.dtype)));
  e.close();
  e.line(fmt::format("*(uint4*)({} + ({} * {} + {}) * {} + piece * {}) = *(const uint4*)held;",
                     draft.temporary_name(side.copy), e.text(at[0]), e.text(dims[1]), e.text(at[1]), pitch,
                     kEach));
  e.close();
  KernelDraft kernel = e.finish(
      [count](const Facts& f, artifact::Launch& launch) {
        set_grid(launch, ceil_div(count(f), kThreads), kThreads);
      },
      kThreads);
  kernel.once = side.once;
  return kernel;
}

// Brings `count` rows of an operand, of which each of `blocks` brings its part for all.
void write_copies(Emitter& e, char name, const Side& side, const std::string& first, int64_t count,
                  int64_t blocks) {
  const std::string z = side.is_batched() ? "z" : "0";
  const std::string depth = "(first + step) * 64";
  const int64_t rows = side.in_lines ? 64 : side.box;  // a copy
  for (int64_t i = 0; i < count / (rows * blocks); ++i) {
    const std::string at =
        blocks > 1 ? fmt::format("(rank * {} + {})", count / (rows * blocks), i) : std::to_string(i);
    const std::string row = fmt::format("{} + {} * {}", first, at, rows);
    e.line(fmt::format("{}(to_{} + {} * {}, &map_{}, {}, {}, {}, full + 8 * slot{});",
                       blocks > 1 ? "th_map_copy_to_all" : "th_map_copy", name, at, rows * 128, name,
                       side.in_lines ? row : depth, side.in_lines ? depth : row, z,
                       blocks > 1 ? fmt::format(", {}", (1 << blocks) - 1) : ""));
  }
}

// Clocks that the product takes, roughly. A multiprocessor multiplies 2048 pairs a clock; out of the second
// cache it takes 64 bytes a clock, less where lines of the depth straddle cache lines, and no more than what
// is on its way in 2200 clocks; memory gives 2000 bytes a clock to all. A tile starts and ends; blocks that
// share wait for each other and read each other's sums. Fitted to bench/results/h200/matrix16.json.
double expected_clocks(const GemmSize& size, const Tiles& t, int64_t units) {
  const int64_t tiles =
      ceil_div(size.rows, t.bm * t.cluster) * t.together() * ceil_div(size.cols, t.bn) * size.batches;
  const int64_t waves = ceil_div(tiles, units);
  const int64_t columns = std::min(size.cols, t.bn) / t.cluster;  // that a block brings
  const double bytes = static_cast<double>((std::min(size.rows, t.bm) + columns) * 128),
               rate =
                   std::min(size.depth % 64 == 0 ? 64.0 : 28.0, static_cast<double>(t.slots) * bytes / 2200),
               multiplied = static_cast<double>(t.bm * t.bn * kStep) / 2048 * (t.bm > 64 ? 1 : 1.3) *
                            (t.bn < 256 ? 1.03 : 1),
               steps = static_cast<double>(ceil_div(ceil_div(size.depth, kStep), t.split)),
               stored =
                   static_cast<double>(t.bm * t.bn) / (t.split > 1 ? 1.7 * static_cast<double>(t.split) : 24),
               memory = static_cast<double>(2 * size.batches * (size.rows + size.cols) * size.depth) / 2000;
  const double busy =
      static_cast<double>(waves) * (steps * std::max(multiplied, bytes / rate) + 1000 + stored);
  return std::max(busy, memory) + 1500 + (t.cluster > 1 ? 1500 : 0) + (t.split > 1 ? 7000 : 0);
}

}  // namespace

bool suits_wgmma16(const Gemm& g) {
  return g.a_matrix && g.b_matrix && is_whole(g.a_rows_follow ? g.rows : g.depth) &&
         is_whole(g.b_depth_follows ? g.depth : g.cols);
}

void emit_gemm_wgmma16(ProgramDraft& draft, const std::string& symbol, const Gemm& g, const Schedule& s) {
  const Tiles tiles = tiles_of(s);
  Side a = side_a(g, tiles), b = side_b(g, tiles);
  add_copy(draft, g, a);
  add_copy(draft, g, b);
  if (a.copy >= 0) draft.kernels.push_back(emit_copy(draft, symbol + "_copy_a", g, a));
  if (b.copy >= 0) draft.kernels.push_back(emit_copy(draft, symbol + "_copy_b", g, b));
  Emitter e(draft, symbol);
  const Index z = batch_index(e, g);
  const Index m = e.index().var("m", g.rows.dim), n = e.index().var("n", g.cols.dim);
  const bool plain =
      tiles.split == 1 && g.plain_output >= 0 && g.cols.dim.is_const() && g.cols.dim.value() % 8 == 0;
  const std::string rows = extent_text(e, g.rows), cols = extent_text(e, g.cols);
  Template t("cuda/gemm_wgmma16.cuh"), packed("cuda/gemm_wgmma.cuh"), shared("cuda/gemm_mma.cuh");
  t.set("M", rows).set("N", cols).set("K", extent_text(e, g.depth)).set("BATCHES", extent_text(e, g.batches));
  t.set("STEPS", tile_count(e, "steps", g.depth, kStep));
  t.set("TILES_M", tile_count(e, "tiles_m", g.rows, tiles.bm * tiles.cluster))
      .set("TILES_N", tile_count(e, "tiles_n", g.cols, tiles.bn));
  t.set("BM", tiles.bm).set("BN", tiles.bn).set("SUMS", tiles.bn / 2).set("CLUSTER", tiles.cluster);
  t.set("TOGETHER", tiles.together()).set("SPLIT", tiles.split).set("CP", tiles.c_pitch());
  t.set("ROW_RANK", tiles.cluster > 1 ? "rank" : "0");
  t.set("GROUP", std::max<int64_t>(1, 2048 / (tiles.bm * tiles.cluster))).set("CONSUMERS", tiles.consumers());
  t.set("SLOTS", tiles.slots).set("SLOT", tiles.slot()).set("STAGING", tiles.staging());
  t.set("BARRIERS", tiles.barriers()).set("PAIR", g.dtype == DType::kBF16 ? "bf16x2" : "f16x2");
  t.set("TILE_A", a.in_lines ? "th_tile_of_lines" : "th_tile").set("NEXT_A", a.in_lines ? 128 : 2);
  t.set("TILE_B", b.in_lines ? "th_tile_of_lines" : "th_tile").set("NEXT_B", b.in_lines ? 128 : 2);
  t.set("UNREAD",
        tiles.bn / 64 % 2 == 0 ? 1 : 0);  // of two halves in turns; an odd number of turns starts anew
  const std::string give_back = tiles.cluster > 1 ? "th_barrier_arrive_at(empty + 8 * last, lane)"
                                                  : "th_barrier_arrive(empty + 8 * last)";
  t.set("GIVE_BACK", give_back);
  e.preamble(packed.section("functions"));
  e.preamble(t.section("functions"));
  e.preamble(wgmma_functions(tiles.bn, g.dtype, a.in_lines, b.in_lines));
  if (tiles.split > 1) e.preamble(shared.section("cluster_functions"));
  e.add_map("map_a");
  e.add_map("map_b");
  if (plain) e.add_map("map_c");
  const bool moves = tiles.consumers() > 1;  // of 65536 registers: consumers take what the producer leaves
  t.hole("fewer_registers", [&] {
    if (moves) e.line("asm volatile(\"setmaxnreg.dec.sync.aligned.u32 40;\");");
  });
  t.hole("more_registers", [&] {
    if (moves) e.line("asm volatile(\"setmaxnreg.inc.sync.aligned.u32 232;\");");
  });
  t.hole("meet", [&] { e.line(tiles.cluster > 1 ? "th_cluster_meet();" : "TH_BARRIER();"); });
  t.hole("leave", [&] {  // nobody's shared memory goes away while others write into it
    if (tiles.cluster > 1) e.line("th_cluster_meet();");
  });
  t.hole("tile", [&] { t.write(e, "tile"); });
  t.hole("copy_a", [&] { write_copies(e, 'a', a, "tile_m", tiles.bm, 1); });
  t.hole("copy_b", [&] { write_copies(e, 'b', b, "tile_n", tiles.bn, tiles.cluster); });
  t.hole("part", [&] {
    if (tiles.split > 1) return t.write(e, "part");
    e.line("const int first = 0, steps = all_steps;");
  });
  t.hole("zero", [&] {
    if (tiles.split > 1) t.write(e, "zero");  // a block may have no step at all
  });
  t.hole("last_step", [&] {
    if (tiles.split == 1) e.line(fmt::format("if (lane < {}) {};", tiles.cluster, give_back));
  });
  t.hole("store", [&] {
    t.write(e, tiles.split > 1 ? "store_shared" : plain ? "store_plain" : "store_sums");
  });
  t.hole("stored", [&] {
    if (plain)
      e.line("if (TH_THREAD % 128 == 0) asm volatile(\"cp.async.bulk.wait_group 0;\" ::: \"memory\");");
  });
  t.hole("store_tile", [&] {
    if (tiles.split > 1)
      return write_tile_stores(
          e, g, z, {"sums", tiles.bm, tiles.bn, tiles.c_pitch(), 128 * tiles.consumers(), tiles.split});
    e.open(fmt::format("if (block_m < {} && block_n < {})", rows, cols));
    write_tile_stores(e, g, z, {"sums", 64, 32, 40, 128, 1, "TH_THREAD % 128"});
    e.close();
  });
  t.hole("step", [&] {
    const Index k = e.index().var("k", g.depth.dim);
    const std::string x = g.a(e, z, m, k), y = g.b(e, z, k, n);
    e.line(fmt::format("total = {};", multiply_add(DType::kF32, "total", x, y)));
  });
  t.hole("epilogue", [&] { g.epilogue(e, z, m, n, "total"); });
  t.write(e, "body");
  const auto buffer_of = [&](const Side& side) {
    return buffer_position_of(side.copy >= 0 ? draft.temporary_name(side.copy)
                                             : draft.input_name(side.matrix->value));
  };
  const int buffer_a = buffer_of(a), buffer_b = buffer_of(b),
            buffer_c =
                plain ? buffer_position_of(draft.output_name(static_cast<size_t>(g.plain_output))) : -1;
  draft.kernels.push_back(e.finish(
      [g, tiles, a, b, buffer_a, buffer_b, buffer_c](const Facts& f, artifact::Launch& launch) {
        const int64_t count = ceil_div(g.rows.source(f), tiles.bm * tiles.cluster) *
                              ceil_div(g.cols.source(f), tiles.bn) * g.batches.source(f);
        const int64_t most = tiles.blocks / tiles.cluster;
        set_grid(launch, (most > 0 ? std::min(count, most) : count) * tiles.together(), tiles.threads());
        launch.dynamic_shared_bytes = tiles.shared_bytes();
        launch.maps = {a.map(g, f, buffer_a), b.map(g, f, buffer_b)};
        if (buffer_c < 0) return;
        const int64_t rows = g.rows.source(f), cols = g.cols.source(f);
        launch.maps.push_back(
            {buffer_c, {cols, rows, g.batches.source(f)}, {2 * cols, 2 * cols * rows}, {64, 64, 1}});
      },
      tiles.threads(), tiles.together(), true));
}

std::vector<std::pair<std::string, int64_t>> default_gemm_wgmma16(const GemmSize& size,
                                                                  const DeviceSpec& device) {
  const int64_t units = std::max<int64_t>(device.compute_units, 1);
  Tiles best{};
  double best_clocks = 0;
  const auto weigh = [&](Tiles t) {
    if (t.bn % (64 * t.cluster) != 0 || (t.cluster > 1 && size.rows <= t.bm)) return;
    if (t.split > 1 && ceil_div(size.depth, kStep) < 4 * t.split) return;  // a part is four steps at least
    while (t.shared_bytes() > kSharedBytes) --t.slots;
    const double clocks = expected_clocks(size, t, units);
    if (best_clocks != 0 && !(clocks < best_clocks)) return;
    best = t;
    best_clocks = clocks;
  };
  for (const int64_t bm : {64, 128})
    for (const int64_t bn : {64, 128, 192, 256}) {
      for (const int64_t cluster : {1, 2}) weigh({bm, bn, kMostSlots, cluster, 1, units});
      for (const int64_t split : {2, 4, 8}) weigh({bm, bn, kMostSlots, 1, split, 0});
    }
  return {{"tile_m", best.bm},       {"tile_n", best.bn},   {"stages", best.slots},
          {"cluster", best.cluster}, {"split", best.split}, {"blocks", best.blocks}};
}

std::vector<artifact::Parameter> gemm_wgmma16_parameters(const DeviceSpec& device) {
  return {{"tile_m", {64, 128}},       {"tile_n", {64, 128, 192, 256}},
          {"stages", {3, 4, 5, 6, 8}}, {"cluster", {1, 2}},
          {"split", {1, 2, 4, 8}},     {"blocks", {0, std::max<int64_t>(device.compute_units, 1)}}};
}

Refusal refuse_gemm_wgmma16(const Workload& workload, const Gemm& g, const Schedule& s,
                            const DeviceSpec& device) {
  if (device.api != target::Api::kCuda || device.architecture != "sm_90a")
    return "wgmma16 needs the tensor cores of sm_90a";
  if (g.dtype != DType::kF16 && g.dtype != DType::kBF16) return "wgmma16 is written for f16 and bf16";
  const Tiles t = tiles_of(s);
  if (t.bm != 64 && t.bm != 128) return "tile_m is 64 or 128";
  if (t.bn != 64 && t.bn != 128 && t.bn != 192 && t.bn != 256) return "tile_n is 64, 128, 192 or 256";
  if (t.cluster != 1 && t.cluster != 2) return "cluster is 1 or 2";
  if (t.bn % (64 * t.cluster) != 0)
    return fmt::format("{} columns are not {} whole boxes of 64 a block", t.bn, t.cluster);
  if (t.split != 1 && t.split != 2 && t.split != 4 && t.split != 8) return "split is 1, 2, 4 or 8";
  if (t.split > 1 && (t.cluster > 1 || t.blocks > 0))
    return "blocks that share the depth of a tile neither share columns nor stay for other tiles";
  if (t.slots < 2 || t.blocks < 0) return "too few stages or blocks";
  return refuse_at_launch(workload, device, t.threads(), t.shared_bytes());
}

}  // namespace thrice::family
