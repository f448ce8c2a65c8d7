#include "family/map/map_tile.h"

#include <fmt/format.h>

#include <algorithm>

#include "family/choices.h"
#include "family/scalar.h"

namespace thrice::family {

using ir::Dim;
using ir::ValueId;

namespace {

using Axes = std::vector<size_t>;

Axes range(size_t begin, size_t end) {
  Axes axes;
  for (size_t a = begin; a < end; ++a) axes.push_back(a);
  return axes;
}

Axes outer_axes(const Turn& turn) {
  Axes axes = range(0, turn.b);
  for (size_t a = turn.b_end; a < turn.a; ++a) axes.push_back(a);
  return axes;
}

Dim product(const ir::Shape& shape, const Axes& axes) {
  Dim all(1);
  for (const size_t a : axes) all = all * shape[a];
  return all;
}

Source count(ValueId y, const Axes& axes) {
  return [y, axes](const Facts& f) {
    int64_t n = 1;
    for (const size_t a : axes) n *= extent_at(f, y, static_cast<int>(a));
    return n;
  };
}

// Coordinates of y from one index for each of the three groups of axes.
struct Place {
  Index outer, across, along;
};
Coords coords_of(Emitter& e, ValueId y, const Turn& turn, const Place& place) {
  const std::vector<Index> dims = e.dims(y);
  Coords coords(dims.size());
  const auto put = [&](Index joined, const Axes& axes) {
    std::vector<Index> extents;
    for (const size_t a : axes) extents.push_back(dims[a]);
    const Coords parts = e.index().split(joined, extents);
    for (size_t k = 0; k < axes.size(); ++k) coords[axes[k]] = parts[k];
  };
  put(place.outer, outer_axes(turn));
  put(place.across, range(turn.b, turn.b_end));
  put(place.along, range(turn.a, dims.size()));
  return coords;
}

Index variable(Emitter& e, const std::string& name, const Dim& bound) {
  return bound.is_const() && bound.value() == 1 ? e.constant(0) : e.index().var(name, bound);
}

// Fills turn.inputs; false where these runs are not a turn.
bool turns(const Workload& workload, const std::vector<size_t>& group, Turn& turn) {
  const ValueId y = workload.graph.outputs[group[0]];
  ProgramDraft draft(workload);
  Emitter e(draft, "probe");
  const auto& shape = e.graph().value(y).type.shape;
  const Place place{variable(e, "outer", product(shape, outer_axes(turn))),
                    variable(e, "across", product(shape, range(turn.b, turn.b_end))),
                    variable(e, "along", product(shape, range(turn.a, shape.size())))};
  const Coords coords = coords_of(e, y, turn, place);
  std::map<ValueId, std::vector<Index>> reads;
  for (const ValueId x : e.graph().inputs) {
    if (draft.input_name(x).empty() || e.graph().value(x).type.shape.empty()) continue;
    e.bind(x, [&, x](const Coords& at) {
      const Index offset = e.index().linear(at, e.dims(x));
      auto& seen = reads[x];
      if (std::find(seen.begin(), seen.end(), offset) == seen.end()) seen.push_back(offset);
      return std::string("v");
    });
  }
  try {
    // All of them: what one reads across and another straight does not turn.
    for (const size_t o : group) e.value(e.graph().outputs[o], coords);
  } catch (const NotMatched&) {
    return false;
  }
  turn.inputs.clear();
  for (const auto& [x, offsets] : reads)
    for (const Index offset : offsets) {
      const auto across = e.index().slope(offset, place.across), along = e.index().slope(offset, place.along);
      if (!across || *across != 1 || !along || *along == 0) continue;
      if (offsets.size() > 1) return false;
      turn.inputs.push_back(x);
    }
  return !turn.inputs.empty();
}

// Four bytes an access where that is more than one element; a pitch that spreads columns over the banks.
struct Sides {
  int64_t lanes, side, pitch;
};
Sides sides_of(const ir::Graph& graph, const Turn& turn) {
  size_t widest = 1;
  for (const ValueId x : turn.inputs) widest = std::max(widest, dtype_bytes(graph.value(x).type.dtype));
  const int64_t lanes = std::max<int64_t>(1, 4 / static_cast<int64_t>(widest)), side = widest > 4 ? 32 : 64;
  return {lanes, side, side + (lanes == 1 ? 1 : lanes)};
}

}  // namespace

int64_t turn_shared_bytes(const ir::Graph& graph, const Turn& turn) {
  const Sides sides = sides_of(graph, turn);
  int64_t bytes = 0;
  for (const ValueId x : turn.inputs)
    bytes += sides.side * sides.pitch * static_cast<int64_t>(dtype_bytes(graph.value(x).type.dtype));
  return bytes;
}

std::optional<Turn> find_turn(const Workload& workload, const std::vector<size_t>& group) {
  const auto& shape = workload.graph.value(workload.graph.outputs[group[0]]).type.shape;
  constexpr int64_t kLeast = 8, kUnknown = 1024;
  const auto length = [&](size_t begin, size_t end) {
    const Dim all = product(shape, range(begin, end));
    return all.is_const() ? all.value() : kUnknown;
  };
  std::optional<Turn> best;
  int64_t score = 0;
  for (size_t a = 1; a < shape.size(); ++a)
    for (size_t b = 0; b < a; ++b)
      for (size_t b_end = b + 1; b_end <= a; ++b_end) {
        const int64_t across = length(b, b_end), along = length(a, shape.size());
        if (across < kLeast || along < kLeast) continue;
        const int64_t worth = std::min<int64_t>(across, 64) * std::min<int64_t>(along, 64);
        if (worth <= score) continue;
        Turn turn{b, b_end, a, {}};
        if (!turns(workload, group, turn)) continue;
        best = turn;
        score = worth;
      }
  return best;
}

KernelDraft turn_kernel(ProgramDraft& draft, const std::string& symbol, const std::vector<size_t>& group,
                        const Turn& turn, int64_t threads) {
  Emitter e(draft, symbol);
  const ir::Graph& graph = e.graph();
  const ValueId y = graph.outputs[group[0]];
  const auto& shape = graph.value(y).type.shape;
  const Sides sides = sides_of(graph, turn);
  const int64_t lanes = sides.lanes, side = sides.side, pitch = sides.pitch, a_line = side / lanes;
  const Axes outer = outer_axes(turn), across = range(turn.b, turn.b_end),
             along = range(turn.a, shape.size());
  const auto extent = [&](const char* what, const Axes& axes) {
    return e.text(e.index().extent(what, count(y, axes)));
  };
  const Dim a_dim = product(shape, along), b_dim = product(shape, across);
  const std::string na = a_dim.is_const() ? fmt::format("{}", a_dim.value()) : extent("along", along);
  const std::string nb = b_dim.is_const() ? fmt::format("{}", b_dim.value()) : extent("across", across);
  const auto tiles = [side](const Source& n) {
    return [n, side](const Facts& f) { return ceil_div(n(f), side); };
  };
  const Source tiles_a = tiles(count(y, along)), tiles_b = tiles(count(y, across)),
               outer_count = count(y, outer);
  const std::string ta = e.text(e.index().extent("tiles along", tiles_a));
  const std::string tb = e.text(e.index().extent("tiles across", tiles_b));
  e.line(fmt::format("const int a0 = TH_BLOCK % {} * {}, rest = TH_BLOCK / {};", ta, side, ta));
  e.line(fmt::format("const int b0 = rest % {} * {}, outer = rest / {};", tb, side, tb));
  const Place place{variable(e, "outer", product(shape, outer)), e.index().var("cb", b_dim),
                    e.index().var("ca", a_dim)};
  std::map<ValueId, std::string> shared;
  for (const ValueId x : turn.inputs)
    shared[x] = e.local_array(storage_type(graph.value(x).type.dtype), side * pitch);
  Emitter::Packs packs;
  packs.lanes = lanes;
  packs.places = side * side / lanes / threads;
  packs.place = "u";
  // `fast` runs over the work-items, `slow` over lines of them.
  const auto open_pass = [&](const char* fast, const char* slow, const std::string& n,
                             const std::string& slow_n) {
    e.line("TH_UNROLL");
    e.open(fmt::format("for (int u = 0; u < {}; ++u)", packs.places));
    e.line(fmt::format("const int q = u * {} + TH_THREAD;", threads));
    e.line(fmt::format("const int f = q % {} * {}, s = q / {};", a_line, lanes, a_line));
    e.line(fmt::format("const int first = {}0 + f, c{} = {}0 + s;", fast, slow, slow));
    e.open(fmt::format("if (first < {} && c{} < {})", n, slow, slow_n));
    packs.full = lanes == 1 ? "" : fmt::format("first + {} <= {}", lanes, n);
    packs.first = "0";
    packs.end = fmt::format("{} - first", n);
  };
  const auto close_pass = [&] {
    e.close();
    e.close();
  };
  const auto evaluate = [&] {
    const Coords coords = coords_of(e, y, turn, place);
    std::vector<std::string> elements;
    for (const size_t o : group) elements.push_back(e.value(graph.outputs[o], coords));
    return std::pair(coords, elements);
  };
  packs.lane = place.across;
  open_pass("b", "a", nb, na);
  e.load_packs(packs, "first", [&] { evaluate(); });
  close_pass();
  open_pass("b", "a", nb, na);
  e.line("TH_UNROLL");
  e.open(fmt::format("for (int t = 0; t < {}; ++t)", lanes));
  for (const ValueId x : turn.inputs) {
    const auto& buffers = packs.buffers;
    const auto it = std::find(buffers.begin(), buffers.end(), draft.input_name(x));
    if (it == buffers.end()) throw NotMatched{"an operand that turns is not read without condition"};
    e.line(fmt::format("{}[s * {} + f + t] = {}[u].v[t];", shared[x], pitch,
                       packs.loads[static_cast<size_t>(it - buffers.begin())]));
  }
  e.close();
  close_pass();
  e.line("TH_BARRIER();");
  packs.lane = place.along;
  for (const ValueId x : turn.inputs)
    e.bind(x, [&, x](const Coords&) {
      return e.load(shared[x], graph.value(x).type.dtype, fmt::format("(ca - a0) * {} + s", pitch));
    });
  const auto write = [&] {
    const auto [coords, elements] = evaluate();
    for (size_t k = 0; k < group.size(); ++k) e.store(group[k], coords, elements[k]);
  };
  open_pass("a", "b", na, nb);
  e.load_packs(packs, "first", write);
  e.use_packs(packs, "first", lanes == 1 ? "" : fmt::format("ca < {}", na), write);
  close_pass();
  return e.finish(
      [tiles_a, tiles_b, outer_count, threads](const Facts& f, artifact::Launch& launch) {
        set_grid(launch, tiles_a(f) * tiles_b(f) * outer_count(f), threads);
      },
      threads);
}

}  // namespace thrice::family
