#include "family/gemm.h"

#include <fmt/format.h>

#include <algorithm>

#include "family/gemm_library.h"
#include "family/gemm_mma.h"
#include "family/gemm_panel.h"
#include "family/gemm_skinny.h"
#include "family/gemm_wgmma.h"
#include "family/gemm_wgmma16.h"

namespace thrice::family {

namespace {

int64_t lanes_of(const DeviceSpec& device) { return std::clamp<int64_t>(device.warp_size, 4, 16); }

// The rows of a register tile that cover `extent` at the least cost.
int64_t fitting(int64_t extent, std::initializer_list<int64_t> choices) {
  int64_t best = 1, best_total = -1;
  for (const int64_t c : choices) {
    // A step costs its rows, and about one and a half more for loading the columns: wasted rows against fewer
    // loads.
    const int64_t total = (extent + c - 1) / c * (2 * c + 3);
    if (best_total < 0 || total < best_total) {
      best = c;
      best_total = total;
    }
  }
  return best;
}

}  // namespace

GemmSize gemm_size(const Gemm& g, const Facts& facts) {
  return {g.batches.source(facts),
          g.rows.source(facts),
          g.cols.source(facts),
          g.depth.source(facts),
          g.dtype,
          g.a_place && g.b_place && g.a_in_fours && g.b_in_fours};
}

bool is_gemm_tactic(const std::string& t) {
  return t == "naive" || t == "tiled" || t == "mma" || t == "wgmma" || t == "wgmma16" || t == "skinny" ||
         t == "cublaslt" || t == "vector" || t == "panel" || t == "dot";
}

std::vector<std::pair<std::string, int64_t>> default_gemm(const std::string& tactic, const GemmSize& size,
                                                          const DeviceSpec& device) {
  const int64_t lanes = lanes_of(device);
  if (tactic == "naive") return {{"threads", device.is_cpu ? 64 : 256}};
  if (tactic == "mma") return default_gemm_mma(size, device);
  if (tactic == "wgmma") return default_gemm_wgmma(size, device);
  if (tactic == "wgmma16") return default_gemm_wgmma16(size, device);
  if (tactic == "skinny") return default_gemm_skinny(size, device);
  if (tactic == "cublaslt") return default_gemm_library();
  if (tactic == "panel") return default_gemm_panel(size, device);
  if (tactic == "tiled") {
    if (device.is_cpu) return {{"tile_m", 64}, {"tile_n", 64}, {"tile_k", 32}, {"reg_m", 4}, {"reg_n", 16}};
    // Enough blocks to fill the device before tiles get wide.
    const auto blocks = [&](int64_t m, int64_t n) {
      return (size.rows + m - 1) / m * ((size.cols + n - 1) / n) * size.batches;
    };
    if (size.rows > 64 && size.cols > 64 && blocks(128, 128) >= device.compute_units)
      return {{"tile_m", 128}, {"tile_n", 128}, {"tile_k", 16}, {"reg_m", 8}, {"reg_n", 8}};
    if (size.rows > 16 && size.cols > 16 && blocks(64, 64) >= device.compute_units)
      return {{"tile_m", 64}, {"tile_n", 64}, {"tile_k", 16}, {"reg_m", 4}, {"reg_n", 4}};
    return {{"tile_m", 32}, {"tile_n", 32}, {"tile_k", 32}, {"reg_m", 2}, {"reg_n", 2}};
  }
  if (tactic == "vector") {
    int64_t width = lanes, reg_v = 2;
    if (size.cols < 2 * lanes) reg_v = 1;
    while (width > 4 && size.cols < width) width /= 2;
    int64_t reg_m = reg_v == 2 ? fitting(size.rows, {6, 5, 4}) : fitting(size.rows, {8, 6, 5});
    if (size.rows <= 3) {
      reg_m = std::max<int64_t>(size.rows, 1);
      reg_v = size.cols >= 4 * lanes ? 4 : reg_v;
    }
    // Two tiles of work for every core at least: narrower before idle.
    const auto tiles = [&](int64_t v) {
      return (size.rows + reg_m - 1) / reg_m * ((size.cols + v * width - 1) / (v * width)) * size.batches;
    };
    while (reg_v > 1 && tiles(reg_v) < 2 * device.compute_units) reg_v /= 2;
    const int64_t row_tiles = (size.rows + reg_m - 1) / reg_m;
    int64_t items = std::min<int64_t>(8, row_tiles);
    while (items > 1 && tiles(reg_v) / items < 8 * device.compute_units) items /= 2;
    while (items > 1 && row_tiles % items != 0 && row_tiles < 4 * items) --items;
    const auto power = [](int64_t n) {
      int64_t p = 1;
      while (2 * p <= n) p *= 2;
      return p;
    };
    return {{"reg_m", reg_m}, {"reg_v", reg_v}, {"lanes", width}, {"items", power(items)}};
  }
  const int64_t reg_n = size.cols == 1 ? 1 : 4, reg_m = size.rows == 1 ? 1 : size.cols == 1 ? 4 : 2;
  return {{"reg_m", reg_m}, {"reg_n", reg_n}, {"lanes", lanes}, {"items", 1}};
}

std::vector<artifact::Parameter> gemm_parameters(const std::string& tactic, const DeviceSpec& device) {
  if (tactic == "mma") return gemm_mma_parameters(device);
  if (tactic == "wgmma") return gemm_wgmma_parameters();
  if (tactic == "wgmma16") return gemm_wgmma16_parameters(device);
  if (tactic == "skinny") return gemm_skinny_parameters(device);
  if (tactic == "cublaslt") return gemm_library_parameters();
  if (tactic == "panel") return gemm_panel_parameters();
  if (tactic == "naive") return {{"threads", {32, 64, 128, 256}}};
  if (tactic == "tiled")
    return {{"tile_m", {16, 32, 64, 128}},
            {"tile_n", {16, 32, 64, 128}},
            {"tile_k", {8, 16, 32}},
            {"reg_m", {1, 2, 4, 8}},
            {"reg_n", {1, 2, 4, 8, 16}}};
  if (tactic == "vector")
    return {{"reg_m", {1, 2, 3, 4, 5, 6, 8, 10, 12}},
            {"reg_v", {1, 2, 3, 4}},
            {"lanes", {4, 8, 16}},
            {"items", {1, 2, 4, 8, 16}}};
  return {{"reg_m", {1, 2, 4}}, {"reg_n", {1, 2, 4}}, {"lanes", {4, 8, 16}}, {"items", {1, 4, 16}}};
}

Refusal refuse_gemm(const Workload& workload, const Gemm& g, const Schedule& s, const DeviceSpec& device) {
  const int64_t element = static_cast<int64_t>(computes_in_float(g.dtype) ? 4 : dtype_bytes(g.dtype));
  if (s.tactic == "naive") return refuse_device(workload, device, s.get("threads"), 0);
  if (s.tactic == "mma") return refuse_gemm_mma(workload, g, s, device);
  if (s.tactic == "wgmma") return refuse_gemm_wgmma(workload, g, s, device);
  if (s.tactic == "wgmma16") return refuse_gemm_wgmma16(workload, g, s, device);
  if (s.tactic == "skinny") return refuse_gemm_skinny(workload, g, s, device);
  if (s.tactic == "cublaslt") return refuse_gemm_library(workload, g, s, device);
  if (s.tactic == "panel") return refuse_gemm_panel(workload, g, s, device);
  if (s.tactic == "tiled") {
    const int64_t bm = s.get("tile_m"), bn = s.get("tile_n"), bk = s.get("tile_k"), rm = s.get("reg_m"),
                  rn = s.get("reg_n");
    if (bm < 1 || bn < 1 || bk < 1 || rm < 1 || rn < 1) return "tiles must be positive";
    if (bm % rm != 0 || bn % rn != 0)
      return fmt::format("a tile of {}x{} is not a whole number of {}x{} register tiles", bm, bn, rm, rn);
    const int64_t threads = bm / rm * (bn / rn), shared = bk * (bm + 4 + bn) * element;
    if (!device.is_cpu && threads < device.warp_size)
      return fmt::format("{} threads a block leave a warp of {} partly idle", threads, device.warp_size);
    if (threads < 1) return "no threads";
    // Accumulators, twice where long sums are kept in two levels, operands, addresses.
    const int64_t registers = (2 * rm * rn + rm + rn) * element / 4 + 32;
    const int64_t limit = device.is_cpu ? 1024 : std::min<int64_t>(255, device.registers_per_block / threads);
    if (registers > limit)
      return fmt::format("about {} registers a thread; {} threads a block leave {}", registers, threads,
                         limit);
    return refuse_device(workload, device, threads, shared);
  }
  if (device.api == target::Api::kCuda)
    return fmt::format("{} keeps vectors of columns in one thread: OpenCL only; on a GPU take tiled",
                       s.tactic);
  if (!is_float(g.dtype)) return fmt::format("{} is written for floats", s.tactic);
  const int64_t lanes = s.get("lanes"), items = s.get("items"), rm = s.get("reg_m");
  if ((lanes != 4 && lanes != 8 && lanes != 16) || items < 1 || rm < 1) return "lanes are 4, 8 or 16";
  int64_t sums = 0;
  if (s.tactic == "vector") {
    if (g.b_depth_follows) return "columns of B are not neighbours in memory: take dot or tiled";
    sums = rm * s.get("reg_v") * lanes;
  } else {
    if (!g.a_along_k || !g.b_along_k)
      return "A and B do not both lie along the depth in memory, without a prologue";
    sums = rm * s.get("reg_n") * lanes;
  }
  if (sums < 1) return "no columns";
  const int64_t registers = sums * element / (4 * std::max<int64_t>(4, lanes_of(device)));
  if (registers > 24) return fmt::format("{} vector registers of sums; they would spill", registers);
  return refuse_device(workload, device, items, 0);
}

std::string default_gemm_tactic(const Gemm& g, const GemmSize& size, const DeviceSpec& device) {
  // Packing an operand pays where enough of the other meets it, or once for all runs (bench/results/h200/
  // matrix.json: lost at 16 and 64 rows, won from 2^30 on; down to 2^27 it beats mma in BERT).
  constexpr int64_t kWorthPacking = int64_t{1} << 27, kAmortized = 512;
  if (device.api == target::Api::kCuda && device.architecture == "sm_90a" && g.dtype == DType::kF32 &&
      size.rows >= 96 && size.cols >= 96 && size.depth >= 256 && (g.a_is_weight || size.cols >= kAmortized) &&
      (g.b_is_weight || size.rows >= kAmortized) &&
      size.batches * size.rows * size.cols * size.depth >= kWorthPacking)
    return "wgmma";
  // Copies of operands that maps cannot read cost three times their bytes: worth it where each is met often.
  if (device.api == target::Api::kCuda && device.architecture == "sm_90a" &&
      (g.dtype == DType::kF16 || g.dtype == DType::kBF16) && size.rows >= 64 && size.cols >= 64 &&
      (suits_wgmma16(g) || std::min({size.rows, size.cols, size.depth}) >= kAmortized))
    return "wgmma16";
  if (device.api == target::Api::kCuda && suits_gemm_skinny(g, size, device)) return "skinny";
  // Few rows: the weights are read once, packed or not, and mma's float32 products of 64 rows take longer
  // than that (64x12288x4096: 57 us against 160).
  if (device.api == target::Api::kCuda && device.architecture == "sm_90a" && g.dtype == DType::kF32 &&
      g.b_is_weight && size.rows > 32 && size.cols >= 1024 && size.depth >= 1024)
    return "wgmma";
  if (device.api == target::Api::kCuda && size.depth >= 16 && is_float(g.dtype) && g.dtype != DType::kF64)
    return "mma";
  if (device.api == target::Api::kCuda || !device.is_cpu)
    return size.batches * size.rows * size.cols < 256 && size.depth < 64 ? "naive" : "tiled";
  if (!is_float(g.dtype)) return size.rows * size.cols < 64 ? "naive" : "tiled";
  if (g.a_along_k && g.b_along_k && (g.b_depth_follows || size.cols < 4)) return "dot";
  // Short sums are over before a copied panel has paid.
  if (!g.b_depth_follows) return size.depth >= 128 && size.rows >= 24 ? "panel" : "vector";
  return "tiled";
}

}  // namespace thrice::family
