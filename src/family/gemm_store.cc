// How finished tiles of gemm.h's kernels leave shared memory through the epilogue.
#include <fmt/format.h>

#include <algorithm>

#include "family/gemm.h"

namespace thrice::family {

namespace {

// "min(at, extent - 1)"; `at` where whole steps never reach beyond the extent.
std::string clamped(Emitter& e, const std::string& at, const Extent& extent, int64_t step) {
  const bool whole = extent.dim.is_const() && extent.dim.value() % step == 0;
  return whole ? at : fmt::format("th_min_int({}, {} - 1)", at, extent_text(e, extent));
}

// Whether every result of the epilogue can be stored as packs of neighbouring columns.
bool stores_packs(const ir::Workload& workload, const Gemm& g, int64_t lanes) {
  if (!g.cols.dim.is_const() || g.cols.dim.value() % lanes != 0) return false;
  ProgramDraft draft(workload);
  Emitter probe(draft, "probe");
  const Index z = batch_index(probe, g), m = probe.index().var("m", g.rows.dim);
  Emitter::Packs pack;
  pack.lane = probe.index().var("n", g.cols.dim);
  pack.lanes = lanes;
  probe.load_packs(pack, "0", [&] { g.epilogue(probe, z, m, pack.lane, "0.0f"); });
  return pack.outs.size() == workload.graph.outputs.size();
}

// As below, sixteen bytes of a row at a time: what is read of four such pieces is on its way at once.
void write_tile_packs(Emitter& e, const Gemm& g, Index z, const FinishedTile& tile, int64_t lanes) {
  const int64_t pieces = tile.rows * tile.cols / lanes, a_row = tile.cols / lanes;
  Emitter::Packs pack;
  pack.lane = e.index().var("n", g.cols.dim);
  pack.lanes = lanes;
  pack.places = std::clamp<int64_t>(pieces / tile.threads, 1, 4);
  pack.place = "u";
  const Index m = e.index().var("m", g.rows.dim);
  const std::string each = fmt::format("TH_UNROLL for (int u = 0; u < {}; ++u)", pack.places);
  // Beyond an edge the last row, or the last piece of it, is stored again.
  const bool whole = g.cols.dim.value() % tile.cols == 0;
  const auto place = [&] {
    e.line(fmt::format("const int piece = th_min_int(t + u * {}, {});", tile.threads, pieces - 1));
    e.line(fmt::format("const int m = {};",
                       clamped(e, fmt::format("block_m + piece / {}", a_row), g.rows, tile.rows)));
    const std::string column = fmt::format("block_n + piece % {} * {}", a_row, lanes);
    e.line(
        fmt::format("const int n0 = {};",
                    whole ? column : fmt::format("th_min_int({}, {})", column, g.cols.dim.value() - lanes)));
  };
  e.open(fmt::format("for (int t = {}; t < {}; t += {})", tile.thread, pieces, tile.threads * pack.places));
  e.line(fmt::format("float own[{}][{}];", pack.places, lanes));
  e.open(each);
  place();
  e.line(fmt::format("const float4* from = (const float4*)({} + (m - block_m) * {} + n0 - block_n);",
                     tile.sums, tile.pitch));
  for (int64_t i = 0; i < lanes / 4; ++i)
    e.line(fmt::format("*(float4*)(own[u] + {}) = from[{}];", i * 4, i));
  e.load_packs(pack, "n0", [&] { g.epilogue(e, z, m, pack.lane, "0.0f"); });
  e.close();
  e.open(each);
  place();
  e.use_packs(pack, "n0", "",
              [&] { g.epilogue(e, z, m, pack.lane, fmt::format("own[u][{}]", pack.element)); });
  e.close();
  e.close();
}

// The same, element by element.
void write_tile_elements(Emitter& e, const Gemm& g, Index z, const FinishedTile& tile) {
  constexpr int64_t kAtOnce = 4;
  const int64_t rows = tile.rows / kAtOnce;
  const Index m = e.index().var("m", g.rows.dim), n = e.index().var("n", g.cols.dim);
  e.open(fmt::format("for (int t = rank * {0} + {2}; t < {1}; t += {0} * parts)", tile.threads,
                     rows * tile.cols, tile.thread));
  e.line(fmt::format("const int tm = t / {};", tile.cols));
  e.line(fmt::format("const int n = {};",
                     clamped(e, fmt::format("block_n + t % {}", tile.cols), g.cols, tile.cols)));
  for (int64_t i = 0; i < kAtOnce; ++i) {
    e.open("");
    e.line(fmt::format("const int m = {};",
                       clamped(e, fmt::format("block_m + tm + {}", i * rows), g.rows, tile.rows)));
    e.line(fmt::format("const int at = (m - block_m) * {} + n - block_n;", tile.pitch));
    if (tile.parts > 1) {
      e.line("float total = 0.0f;");
      e.open("TH_UNROLL for (int p = 0; p < parts; ++p)");
      e.line(fmt::format("total += th_cluster_load({} + at, p);", tile.sums));
      e.close();
    } else {
      e.line(fmt::format("const float total = {}[at];", tile.sums));
    }
    g.epilogue(e, z, m, n, "total");
    e.close();
  }
  e.close();
}

}  // namespace

void write_tile_stores(Emitter& e, const Gemm& g, Index z, const FinishedTile& tile) {
  size_t widest = 2;
  for (const ir::ValueId y : e.graph().outputs)
    widest = std::max(widest, dtype_bytes(e.graph().value(y).type.dtype));
  const auto lanes = static_cast<int64_t>(16 / widest);
  if (tile.parts == 1 && tile.packs && widest <= 4 && tile.pitch % 4 == 0 &&
      tile.rows * tile.cols / lanes >= tile.threads && stores_packs(e.draft().workload(), g, lanes))
    return write_tile_packs(e, g, z, tile, lanes);
  write_tile_elements(e, g, z, tile);
}

}  // namespace thrice::family
