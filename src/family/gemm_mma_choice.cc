// Schedules of gemm_mma.h: what is chosen by rule, what can be chosen, and what cannot run.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "family/choices.h"
#include "family/gemm_mma.h"
#include "family/gemm_mma_tiles.h"

namespace thrice::family {

Refusal refuse_without_mma(const DeviceSpec& device) {
  if (device.api != target::Api::kCuda) return "mma needs the tensor cores of an NVIDIA GPU";
  if (generation(device) < 80) return "mma needs sm_80 or newer";
  return std::nullopt;
}

namespace {

// Tile and warps of a rule; how its blocks share the depth comes after.
struct Choice {
  int64_t bm = 64, bn = 64, bk = 32, warps_m = 2, warps_n = 2, stages = 0;
};

constexpr int64_t kLeastSteps = 4;  // of a share: fewer do not pay for the second kernel
constexpr int64_t kSkinny = 64, kWide = 1024, kLong = 16384;

// One operand is all there is to read: tiles as high as the product, and small, so that four blocks and more
// share a multiprocessor (seen on the H200: many short pipelines beat few deep ones).
std::optional<Choice> skinny(const GemmSize& size) {
  const bool flat = size.rows <= kSkinny && size.cols >= kWide,
             tall = size.cols <= kSkinny && size.rows >= kWide;
  if ((!flat && !tall) || size.depth < kWide) return std::nullopt;
  if (tall) return size.cols <= 32 ? Choice{128, 32, 32, 4, 1, 4} : Choice{128, 64, 32, 4, 2, 4};
  if (size.rows > 32) return Choice{64, 64, 32, 2, 2, 4};
  return Choice{size.rows <= 16 ? 16 : 32, 64, 32, 1, 2, 2};
}

}  // namespace

std::vector<std::pair<std::string, int64_t>> default_gemm_mma(const GemmSize& size,
                                                              const DeviceSpec& device) {
  const auto blocks = [&](int64_t m, int64_t n) {
    return ceil_div(size.rows, m) * ceil_div(size.cols, n) * size.batches;
  };
  const int64_t most = has_clusters(device) ? 8 : 1;
  const bool is_16 = size.dtype != DType::kF32;
  Choice c;
  const bool is_long = size.is_direct && size.rows > 64 && size.cols > 64 && size.depth >= kLong &&
                       blocks(64, 64) * most <= device.compute_units;
  const auto direct = size.is_direct ? skinny(size) : std::nullopt;
  if (direct) {
    c = *direct;
  } else if (is_long) {
    c = {64, 64, 32, 2, 2, 4};
  } else if (size.is_direct && is_16 && size.rows > 64 && size.cols > 64 &&
             blocks(128, 128) >= device.compute_units) {
    c = {128, 128, 64, 2, 4, 3};
  } else if (size.rows > 64 && blocks(128, 64) >= 2 * device.compute_units) {
    c = {128, 64, 16, 4, 2, 0};
  } else if (blocks(64, 64) * most < device.compute_units || size.rows <= 32) {
    c = {32, 64, 32, 1, 2, 0};
  }
  if (is_16) c.bk = 64;
  // Blocks for every unit, as long as each has four steps to hide its loads behind.
  const int64_t tiles = blocks(c.bm, c.bn);
  int64_t split = 1, shares = 1;
  const int64_t wanted = direct ? 3 * device.compute_units : device.compute_units;
  while (!is_long && split < most && tiles * split < wanted && size.depth >= 2 * split * 4 * c.bk) split *= 2;
  // A second kernel costs a few microseconds: only where half the units are idle for longer than that. Very
  // long products share by it alone, two blocks a unit: clusters of many blocks do not fill every unit.
  const int64_t most_blocks = is_long ? 2 * device.compute_units : device.compute_units;
  while (shares < 64 && tiles * split * 2 * shares <= most_blocks &&
         size.depth >= 2 * shares * split * 16 * c.bk)
    shares *= 2;
  // A block that has a multiprocessor for itself keeps as much of its depth on the way as that holds.
  const bool alone = tiles * split * shares <= device.compute_units;
  if (c.stages == 0) c.stages = alone ? (is_16 ? 4 : 6) : 3;
  const int64_t stage = (c.bm + c.bn) * (c.bk + 8) * (is_16 ? 2 : 4);
  while (c.stages > 2 && c.stages * stage > std::max(device.max_shared_bytes, device.optin_shared_bytes))
    --c.stages;
  return {{"tile_m", c.bm},       {"tile_n", c.bn},     {"tile_k", c.bk}, {"warps_m", c.warps_m},
          {"warps_n", c.warps_n}, {"stages", c.stages}, {"split", split}, {"shares", shares}};
}

std::vector<artifact::Parameter> gemm_mma_parameters(const DeviceSpec& device) {
  std::vector<int64_t> splits{1};
  if (has_clusters(device)) splits = {1, 2, 4, 8};
  return {{"tile_m", {16, 32, 64, 128}},
          {"tile_n", {32, 64, 128}},
          {"tile_k", {8, 16, 32, 64}},
          {"warps_m", {1, 2, 4}},
          {"warps_n", {1, 2, 4}},
          {"stages", {2, 3, 4, 6}},
          {"split", splits},
          {"shares", {1, 2, 4, 8, 16, 32, 64}, 0}};
}

Refusal refuse_gemm_mma(const Workload& workload, const Gemm& g, const Schedule& s,
                        const DeviceSpec& device) {
  if (auto refusal = refuse_without_mma(device)) return refusal;
  if (g.dtype != DType::kF32 && g.dtype != DType::kF16 && g.dtype != DType::kBF16)
    return "mma is written for f32, f16 and bf16";
  for (const char* name : {"tile_m", "tile_n", "tile_k"})
    if (s.get(name) < 8) return "tiles must be made of 16x32x8 pieces";
  const int64_t warps = s.get("warps_m") * s.get("warps_n");
  if (warps < 1 || s.get("stages") < 2 || s.get("split") < 1 || s.get("shares", 1) < 1)
    return "too few warps, stages or parts";
  const MmaTiles t = mma_tiles(g, s);
  if (t.bm % (16 * t.warps_m) != 0 || t.bn % (32 * t.warps_n) != 0 || t.bk % 8 != 0)
    return fmt::format("warps of a {}x{}x{} tile are not made of 16x32x8 pieces", t.bm, t.bn, t.bk);
  if (t.element_bytes == 2 && t.bk % 16 != 0)
    return fmt::format("products of 16 bits take 16 of the depth at a time, not {}", t.bk);
  const int64_t threads = t.threads();
  for (const TileLoads* l : {&t.a, &t.b})
    if (!in_whole_turns(l->layout, 1, threads))
      return fmt::format("{} threads do not load lines of {} in whole turns", threads, l->layout.along);
  if (t.split > 8) return "clusters have at most 8 blocks everywhere";
  if (t.split > 1 && !has_clusters(device))
    return fmt::format("split needs clusters, which {} does not have", device.architecture);
  if (t.shares > 1 && g.depth.dim.is_const() && g.depth.dim.value() < kLeastSteps * t.bk * t.split * t.shares)
    return fmt::format("a depth of {} in {} parts: each has fewer than {} steps", g.depth.dim.value(),
                       t.split * t.shares, kLeastSteps);
  // Two sets of sums, fragments twice, of 32 bits also in two parts with the products of four, loads on their
  // way, addresses.
  const int64_t held = (t.a.async ? 0 : t.a.count) + (t.b.async ? 0 : t.b.count);
  const int64_t a_held = t.wm() / 16 * 8, b_held = t.wn() / 8 * 4;
  const int64_t parts = t.element_bytes == 2 ? 0 : 8 + t.wn() / 8 * 2 + 16;
  const int64_t registers = t.wm() * t.wn() / 16 + a_held + b_held + parts + held + 28;
  const int64_t limit = std::min<int64_t>(255, device.registers_per_block / threads);
  if (registers > limit)
    return fmt::format("about {} registers a thread; {} threads a block leave {}", registers, threads, limit);
  return refuse_at_launch(workload, device, threads, t.shared_bytes());
}

}  // namespace thrice::family
