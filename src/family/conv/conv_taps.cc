#include "family/conv/conv_taps.h"

#include <fmt/format.h>

#include "family/choices.h"
#include "family/scalar.h"

namespace thrice::family {

namespace {

constexpr int64_t kMostSteps = 256;  // multiply-adds a thread, written out
constexpr int64_t kMostRegisters = 200;

// One axis of the tile: outputs, taps, and which (output, tap) an input position of the tile serves.
struct TileAxis {
  int64_t outputs = 1, taps = 1, stride = 1, dilation = 1;
  Extent out;
  int64_t reach() const { return (outputs - 1) * stride + (taps - 1) * dilation + 1; }
  std::vector<std::pair<int64_t, int64_t>> served(int64_t position) const {
    std::vector<std::pair<int64_t, int64_t>> all;
    for (int64_t i = 0; i < outputs; ++i) {
      const int64_t offset = position - i * stride;
      if (offset >= 0 && offset % dilation == 0 && offset / dilation < taps)
        all.emplace_back(i, offset / dilation);
    }
    return all;
  }
  Source tiles() const {
    return [s = out.source, n = outputs](const Facts& f) { return ceil_div(s(f), n); };
  }
};

TileAxis tile_axis(const WindowAxis& axis, int64_t outputs) {
  return {outputs, axis.kernel.dim.value(), axis.stride, axis.dilation, axis.out};
}

struct Tile {
  TileAxis p, q;
  int64_t taps() const { return p.taps * q.taps; }
};
Tile tile_of(const ConvProblem& conv, const Schedule& s) {
  Tile tile;
  tile.q = tile_axis(conv.window.axes.back(), s.get("reg_q"));
  tile.p.out = {ir::Dim(1), [](const Facts&) -> int64_t { return 1; }};
  if (conv.spatial == 2) tile.p = tile_axis(conv.window.axes[0], s.get("reg_p"));
  return tile;
}

int64_t registers_of(const ConvProblem& conv, int64_t outputs, int64_t taps) {
  return (outputs + taps) * (conv.dtype == DType::kF64 ? 2 : 1) + 40;
}

}  // namespace

KernelDraft emit_conv_taps(ProgramDraft& draft, const ConvProblem& conv, const Schedule& s) {
  Emitter e(draft, "conv_taps");
  IndexTable& t = e.index();
  const Tile tile = tile_of(conv, s);
  const int64_t threads = s.get("threads");
  const bool two = conv.spatial == 2;
  const std::string type = compute_type(conv.dtype);
  const Extent channels = image_channels(conv);
  const std::string tiles_p = tile_count(e, "tiles_p", tile.p.out, tile.p.outputs),
                    tiles_q = tile_count(e, "tiles_q", tile.q.out, tile.q.outputs);
  e.line(fmt::format("const int item = TH_BLOCK * {} + TH_THREAD;", threads));
  e.line(fmt::format("const int own_q = item % {} * {};", tiles_q, tile.q.outputs));
  e.line(fmt::format("const int item_rest = item / {};", tiles_q));
  e.line(fmt::format("const int own_p = item_rest % {} * {};", tiles_p, tile.p.outputs));
  e.line(fmt::format("const int channel = item_rest / {};", tiles_p));
  e.open(fmt::format("if (channel < {})", extent_text(e, channels)));
  const Coords nc =
      t.split(t.var("channel", channels.dim), {extent_index(e, conv.batch), extent_index(e, conv.outputs)});
  const Index own_p = t.var("own_p", tile.p.out.dim), own_q = t.var("own_q", tile.q.out.dim);
  const Index input = t.div(nc[1], extent_index(e, conv.group_outputs));
  std::vector<std::string> weights;
  for (int64_t r = 0; r < tile.p.taps; ++r)
    for (int64_t c = 0; c < tile.q.taps; ++c) {
      Coords at{nc[1], e.constant(0)};
      if (two) at.push_back(e.constant(r));
      at.push_back(e.constant(c));
      weights.push_back(e.value(conv.w, at));
    }
  const auto sum = [](int64_t i, int64_t j) { return fmt::format("sum{}_{}", i, j); };
  for (int64_t i = 0; i < tile.p.outputs; ++i)
    for (int64_t j = 0; j < tile.q.outputs; ++j)
      e.line(fmt::format("{} {} = {};", type, sum(i, j), zero_of(conv.dtype)));
  const auto position = [&](size_t axis, Index own, int64_t y) {
    const WindowAxis& a = conv.window.axes[axis];
    return t.sub(t.add(t.mul(own, e.constant(a.stride)), e.constant(y)), conv.window.pad(e, axis));
  };
  const auto inside = [&](size_t axis, Index at) {
    return fmt::format("(th_u32){} < (th_u32){}", e.text(at), extent_text(e, conv.window.axes[axis].in));
  };
  for (int64_t y = 0; y < tile.p.reach(); ++y) {
    const auto rows = tile.p.served(y);
    if (rows.empty()) continue;
    Coords row{nc[0], input};
    if (two) row.push_back(position(0, own_p, y));
    // Checked also where no window leaves the input: outputs of the tile beyond the last one do.
    e.open(two ? fmt::format("if ({})", inside(0, row.back())) : "");
    for (int64_t x = 0; x < tile.q.reach(); ++x) {
      const auto columns = tile.q.served(x);
      if (columns.empty()) continue;
      Coords at = row;
      at.push_back(position(conv.spatial - 1, own_q, x));
      const std::string element = fmt::format("x{}", x);
      e.line(fmt::format("{} {} = {};", type, element, zero_of(conv.dtype)));
      e.open(fmt::format("if ({})", inside(conv.spatial - 1, at.back())));
      e.line(fmt::format("{} = {};", element, e.value(conv.x, at)));
      e.close();
      for (const auto& [i, r] : rows)
        for (const auto& [j, c] : columns)
          e.line(fmt::format("{} = {};", sum(i, j),
                             multiply_add(conv.dtype, sum(i, j), element,
                                          weights[static_cast<size_t>(r * tile.q.taps + c)])));
    }
    e.close();
  }
  for (int64_t i = 0; i < tile.p.outputs; ++i)
    for (int64_t j = 0; j < tile.q.outputs; ++j) {
      const Index p = t.add(own_p, e.constant(i)), q = t.add(own_q, e.constant(j));
      e.open(fmt::format("if ({} < {} && {} < {})", e.text(p), extent_text(e, tile.p.out), e.text(q),
                         extent_text(e, tile.q.out)));
      Coords at = nc;
      if (two) at.push_back(p);
      at.push_back(q);
      store_conv(e, conv, at, sum(i, j));
      e.close();
    }
  e.close();
  return e.finish(
      [tile, channels, threads](const Facts& f, artifact::Launch& launch) {
        set_grid(launch, ceil_div(tile.p.tiles()(f) * tile.q.tiles()(f) * channels.source(f), threads),
                 threads);
      },
      threads);
}

std::vector<std::pair<std::string, int64_t>> default_conv_taps(const ConvProblem& conv, const Facts& facts,
                                                               const DeviceSpec& device) {
  const int64_t columns = conv.window.axes.back().out.source(facts);
  const int64_t rows = conv.spatial == 2 ? conv.window.axes[0].out.source(facts) : 1;
  const int64_t items = image_channels(conv).source(facts) * rows * columns;
  // Larger tiles read less, as long as every multiprocessor keeps 16 warps.
  int64_t reg_p = 1, reg_q = 1;
  const int64_t taps = tile_of(conv, {"conv", "taps", {{"reg_p", 1}, {"reg_q", 1}}}).taps();
  const auto fits = [&](int64_t p, int64_t q) {
    return items / (p * q) >= device.compute_units * 512 && p * q * taps <= kMostSteps &&
           registers_of(conv, p * q, taps) <= kMostRegisters;
  };
  while (reg_q < 4 && columns % (2 * reg_q) == 0 && fits(reg_p, 2 * reg_q)) reg_q *= 2;
  while (reg_p < 4 && rows % (2 * reg_p) == 0 && fits(2 * reg_p, reg_q)) reg_p *= 2;
  return {{"reg_p", reg_p}, {"reg_q", reg_q}, {"threads", 128}};
}

std::vector<artifact::Parameter> conv_taps_parameters() {
  return {{"reg_p", {1, 2, 4}}, {"reg_q", {1, 2, 4, 7}}, {"threads", {32, 64, 128, 256}}};
}

Refusal refuse_conv_taps(const Workload& workload, const ConvProblem& conv, const Schedule& s,
                         const DeviceSpec& device) {
  const int64_t p = s.get("reg_p"), q = s.get("reg_q"), threads = s.get("threads");
  if (p < 1 || q < 1 || threads < 1) return "tiles and blocks are at least 1";
  if (conv.spatial == 1 && p > 1) return "one spatial axis has no rows";
  const Tile tile = tile_of(conv, s);
  if (const int64_t steps = p * q * tile.taps(); steps > kMostSteps)
    return fmt::format("{} multiply-adds written out; {} are allowed", steps, kMostSteps);
  const int64_t registers = registers_of(conv, p * q, tile.taps());
  if (registers > kMostRegisters) return fmt::format("about {} registers a thread", registers);
  return refuse_device(workload, device, threads, 0);
}

}  // namespace thrice::family
