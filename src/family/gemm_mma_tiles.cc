#include "family/gemm_mma_tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "family/gemm_mma.h"

namespace thrice::family {

namespace {

TileLayout layout_of(bool along_depth, int64_t extent, int64_t depth, int64_t element_bytes) {
  const int64_t along = along_depth ? depth : extent, across = along_depth ? extent : depth;
  if (element_bytes == 2) return {along_depth, along, across, along + 8};
  return {along_depth, along, across, along_depth ? depth_pitch(depth) : extent + 4};
}

TileLoads loads_of(const TileLayout& layout, bool has_place, int64_t neighbours, int64_t element_bytes,
                   int64_t threads) {
  TileLoads loads{layout, has_place && element_bytes == 4, 1, 0};
  for (const int64_t width : {int64_t{4}, int64_t{8}}) {  // 8 or 16 bytes
    if (!has_place || width > neighbours || width * element_bytes > 16 ||
        !in_whole_turns(layout, width, threads))
      continue;
    loads.async = true;  // two bytes alone cannot be copied so
    loads.width = width;
  }
  loads.count = layout.along * layout.across / (threads * loads.width);
  return loads;
}

}  // namespace

std::string TileLoads::along() const {
  const std::string at = fmt::format("TH_THREAD % {}", layout.along / width);
  return width == 1 ? at : fmt::format("{} * {}", at, width);
}

std::string TileLoads::line(int64_t threads) const {
  const int64_t turn = layout.along / width;
  return fmt::format("(TH_THREAD / {} + t * {})", turn, threads / turn);
}

std::string TileLoads::at(int64_t threads) const {
  return fmt::format("{} * {} + {}", line(threads), layout.pitch, along());
}

int64_t MmaTiles::shared_bytes() const {
  return std::max(element_bytes * stages * buffer(), 4 * bm * c_pitch());
}

bool in_whole_turns(const TileLayout& l, int64_t width, int64_t threads) {
  return l.along % width == 0 && threads % (l.along / width) == 0 &&
         l.along * l.across % (threads * width) == 0;
}

MmaTiles mma_tiles(const Gemm& g, const Schedule& s) {
  MmaTiles t{};
  t.bm = s.get("tile_m");
  t.bn = s.get("tile_n");
  t.bk = s.get("tile_k");
  t.warps_m = s.get("warps_m");
  t.warps_n = s.get("warps_n");
  t.stages = s.get("stages");
  t.split = s.get("split");
  t.shares = s.get("shares", 1);
  t.element_bytes = g.dtype == DType::kF32 ? 4 : 2;
  const auto neighbours = [](bool eights, bool fours) { return eights ? 8 : fours ? 4 : 1; };
  t.a = loads_of(layout_of(!g.a_rows_follow, t.bm, t.bk, t.element_bytes), static_cast<bool>(g.a_place),
                 neighbours(g.a_in_eights, g.a_in_fours), t.element_bytes, t.threads());
  t.b = loads_of(layout_of(g.b_depth_follows, t.bn, t.bk, t.element_bytes), static_cast<bool>(g.b_place),
                 neighbours(g.b_in_eights, g.b_in_fours), t.element_bytes, t.threads());
  return t;
}

int generation(const DeviceSpec& device) {
  return device.architecture.rfind("sm_", 0) == 0 ? std::atoi(device.architecture.c_str() + 3) : 0;
}

bool has_clusters(const DeviceSpec& device) { return generation(device) >= 90; }

int64_t depth_pitch(int64_t depth) { return depth + (depth % 16 == 0 ? 8 : 16); }

}  // namespace thrice::family
