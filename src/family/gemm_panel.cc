#include "family/gemm_panel.h"

#include <fmt/format.h>

#include <algorithm>

#include "family/choices.h"
#include "family/scalar.h"
#include "family/template.h"

namespace thrice::family {

namespace {

constexpr int64_t kMostPrivateBytes = 96 * 1024;  // panel and tile of one work-item

int64_t lanes_of(const DeviceSpec& device) { return std::clamp<int64_t>(device.warp_size, 4, 16); }

// Copies the columns of `depth` steps: vectors where a whole line of the panel lies in B, else element by
// element.
void write_pack(Emitter& e, const Gemm& g, Index z, int64_t rv, int64_t lanes) {
  const int64_t cn = rv * lanes;
  const Index k = e.index().var("k", g.depth.dim), n = e.index().var("n", g.cols.dim);
  const std::string end = extent_text(e, g.cols);
  const bool vectors = static_cast<bool>(g.b_along_n);
  if (vectors) {
    e.open(fmt::format("if (own_n + {} <= {})", cn, end));
    e.open("for (int t = 0; t < depth; ++t)");
    e.line("const int k = begin + t;");
    const std::string at = g.b_along_n(e, z, k, e.index().var("own_n", g.cols.dim));
    for (int64_t j = 0; j < rv; ++j)
      e.line(fmt::format("vstore{0}(vload{0}({1}, {2}), {1}, panel + t * {3});", lanes, j, at, cn));
    e.close();
    e.close();
    e.open("else");
  }
  e.open("for (int t = 0; t < depth; ++t)");
  e.line("const int k = begin + t;");
  e.open(fmt::format("for (int j = 0; j < {}; ++j)", cn));
  e.line("const int n = own_n + j;");
  e.line(fmt::format("{} element = {};", compute_type(g.dtype), zero_of(g.dtype)));
  e.open(fmt::format("if (n < {})", end));
  e.line(fmt::format("element = {};", g.b(e, z, k, n)));
  e.close();
  e.line(fmt::format("panel[t * {} + j] = element;", cn));
  e.close();
  e.close();
  if (vectors) e.close();
}

}  // namespace

KernelDraft emit_gemm_panel(ProgramDraft& draft, const std::string& symbol, const Gemm& g,
                            const Schedule& s) {
  Emitter e(draft, symbol);
  const int64_t rm = s.get("reg_m"), rv = s.get("reg_v"), lanes = s.get("lanes"), kc = s.get("tile_k");
  const int64_t cn = rv * lanes, rows_an_item = rm * s.get("tiles");
  const std::string vector = vector_type(g.dtype, lanes);
  const Index z = batch_index(e, g), m = e.index().var("m", g.rows.dim), n = e.index().var("n", g.cols.dim),
              k = e.index().var("k", g.depth.dim);
  const std::string end_rows = extent_text(e, g.rows);
  Template t("opencl/gemm_panel.cl");
  t.set("T", compute_type(g.dtype)).set("M", end_rows).set("N", extent_text(e, g.cols));
  t.set("K", extent_text(e, g.depth));
  t.set("RM", rm).set("CN", cn).set("KC", kc).set("ROWS", rows_an_item);
  t.set("TILES_M", tile_count(e, "tiles_m", g.rows, rows_an_item));
  t.set("TILES_N", tile_count(e, "tiles_n", g.cols, cn));
  const auto each = [&](const std::string& text) {
    for (int64_t i = 0; i < rm; ++i)
      for (int64_t j = 0; j < rv; ++j)
        e.line(fmt::format(fmt::runtime(text), fmt::arg("V", vector), fmt::arg("L", lanes), fmt::arg("i", i),
                           fmt::arg("j", j), fmt::arg("at", i * rv + j)));
  };
  t.hole("pack", [&] { write_pack(e, g, z, rv, lanes); });
  std::vector<Index> rows;
  t.hole("rows", [&] {
    for (int64_t i = 0; i < rm; ++i) {
      e.line(fmt::format("const int row{0} = base_m + {0} < {1} ? base_m + {0} : {1} - 1;", i, end_rows));
      rows.push_back(e.index().var(fmt::format("row{}", i), g.rows.dim));
    }
  });
  t.hole("begin", [&] { each("{V} c{i}_{j} = ({V})(0);"); });
  t.hole("step", [&] {
    for (int64_t j = 0; j < rv; ++j)
      e.line(fmt::format("const {} b{} = vload{}({}, panel + t * {});", vector, j, lanes, j, cn));
    for (int64_t i = 0; i < rm; ++i) {
      e.line(
          fmt::format("const {0} a{1} = ({0})({2});", vector, i, g.a(e, z, rows[static_cast<size_t>(i)], k)));
      for (int64_t j = 0; j < rv; ++j) e.line(fmt::format("c{0}_{1} = fma(a{0}, b{1}, c{0}_{1});", i, j));
    }
  });
  t.hole("add", [&] { each("c{i}_{j} += vload{L}({at}, sums);"); });
  t.hole("end", [&] { each("vstore{L}(c{i}_{j}, {at}, sums);"); });
  const auto epilogue = [&](const std::string& acc) { g.epilogue(e, z, m, n, acc); };
  const std::string result = fmt::format("tile + ((m - own_m) * {} + (n - own_n))", cn);
  t.hole("epilogue_lanes",
         [&] { emit_epilogue_lanes(e, g.dtype, "n", "end_n", n, lanes, result, epilogue); });
  t.hole("epilogue", [&] { epilogue(fmt::format("*({})", result)); });
  t.write(e, "body");
  return e.finish(
      [g, rows_an_item, cn](const Facts& facts, artifact::Launch& launch) {
        set_tile_grid(launch, g, facts, rows_an_item, cn, 1, 1);
      },
      1);
}

std::vector<std::pair<std::string, int64_t>> default_gemm_panel(const GemmSize& size,
                                                                const DeviceSpec& device) {
  int64_t lanes = lanes_of(device);
  while (lanes > 4 && size.cols <= lanes / 2) lanes /= 2;
  const int64_t reg_v = size.cols > lanes ? 2 : 1;
  int64_t reg_m = 1, least = -1;
  for (const int64_t rows : {6, 5, 4})  // of about equal use: the one that leaves the fewest rows over
    if (const int64_t total = ceil_div(size.rows, rows) * rows; least < 0 || total < least) {
      reg_m = rows;
      least = total;
    }
  reg_m = std::clamp<int64_t>(reg_m, 1, std::max<int64_t>(1, size.rows));
  // As many rows a panel as leave four items for every core.
  const int64_t columns = ceil_div(size.cols, reg_v * lanes) * size.batches;
  int64_t tiles = 16;
  while (tiles > 1 && (ceil_div(size.rows, reg_m * tiles) * columns < 4 * device.compute_units ||
                       reg_m * tiles >= 2 * size.rows))
    tiles /= 2;
  int64_t tile_k = 64;
  while (tile_k < 256 && tile_k < size.depth) tile_k *= 2;
  return {{"reg_m", reg_m}, {"reg_v", reg_v}, {"lanes", lanes}, {"tiles", tiles}, {"tile_k", tile_k}};
}

std::vector<artifact::Parameter> gemm_panel_parameters() {
  return {{"reg_m", {1, 2, 3, 4, 5, 6, 8, 10, 12}},
          {"reg_v", {1, 2, 3, 4}},
          {"lanes", {4, 8, 16}},
          {"tiles", {1, 2, 4, 8, 16, 24, 40}},
          {"tile_k", {64, 128, 256, 512}}};
}

Refusal refuse_gemm_panel(const Workload& workload, const Gemm& g, const Schedule& s,
                          const DeviceSpec& device) {
  if (device.api == target::Api::kCuda || !device.is_cpu)
    return "panel copies to memory of one thread: for CPUs";
  if (!is_float(g.dtype)) return "panel is written for floats";
  const int64_t lanes = s.get("lanes"), rm = s.get("reg_m"), rv = s.get("reg_v"), kc = s.get("tile_k"),
                tiles = s.get("tiles");
  if (lanes != 4 && lanes != 8 && lanes != 16) return "lanes are 4, 8 or 16";
  if (rm < 1 || rv < 1 || tiles < 1 || kc < 1 || kc > kPartialDepth)
    return fmt::format("tiles must be positive, and the panel at most {} deep", kPartialDepth);
  const int64_t element = g.dtype == DType::kF64 ? 8 : 4;
  const int64_t registers = rm * rv * lanes * element / (4 * std::max<int64_t>(4, lanes_of(device)));
  if (registers > 24) return fmt::format("{} vector registers of sums; they would spill", registers);
  const int64_t bytes = (kc + rm * tiles) * rv * lanes * element;
  if (bytes > kMostPrivateBytes)
    return fmt::format("panel and tile take {} bytes of a work-item's memory; at most {}", bytes,
                       kMostPrivateBytes);
  return refuse_device(workload, device, 1, 0);
}

}  // namespace thrice::family
