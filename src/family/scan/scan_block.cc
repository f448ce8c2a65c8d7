#include "family/scan/scan_block.h"

#include <fmt/format.h>

#include "family/scalar.h"

namespace thrice::family {

KernelDraft scan_block_kernel(ProgramDraft& draft, const ir::Node& node, int64_t threads) {
  Emitter e(draft, "scan0");
  const ir::ValueId x = node.inputs[0], y = node.outputs[0];
  const auto& type = e.graph().value(x).type;
  const size_t axis = type.shape.size() - 1;
  if (type.shape.empty() || static_cast<size_t>(node.int_attr("axis")) != axis)
    throw NotMatched{"running sums across lines take a work-item a line"};
  const bool reverse = node.int_attr("reverse", 0) != 0, exclusive = node.int_attr("exclusive", 0) != 0;
  const std::string kind = node.string_attr("kind", "sum"), t = compute_type(type.dtype);
  const std::string zero = neutral(kind, type.dtype);
  size_t widest = 1;
  for (const ir::ValueId v : {x, y}) widest = std::max(widest, dtype_bytes(e.graph().value(v).type.dtype));
  const int64_t lanes = static_cast<int64_t>(16 / widest), warps = threads / 32, width = threads * lanes;
  constexpr int64_t kPlaces = 4;
  const std::vector<Index> dims = e.dims(x);
  ir::Dim lines(1);
  for (size_t a = 0; a < axis; ++a) lines = lines * type.shape[a];
  const Source count = [x, axis](const Facts& f) {
    int64_t all = extent_at(f, x, static_cast<int>(axis)) == 0 ? 0 : 1;
    for (size_t a = 0; a < axis; ++a) all *= extent_at(f, x, static_cast<int>(a));
    return all;
  };
  const std::string n = e.text(dims[axis]);
  const bool one = lines.is_const() && lines.value() == 1;
  const Index row = one ? e.constant(0) : e.index().var("row", lines);
  e.line("const int row = TH_BLOCK, lane = TH_THREAD & 31, warp = TH_THREAD >> 5;");
  const std::string shared = e.local_array(t, 2 * warps);
  Emitter::Packs pack;
  pack.lane = e.index().var("col", type.shape[axis]);
  pack.lanes = lanes;
  pack.places = kPlaces;
  pack.place = "u";
  const bool ragged = reverse || !(type.shape[axis].is_const() && type.shape[axis].value() % lanes == 0);
  if (ragged) {
    pack.full = fmt::format("c >= 0 && c + {} <= {}", lanes, n);
    pack.first = "-c";
    pack.end = fmt::format("{} - c", n);
  }
  const std::string guard = ragged ? fmt::format("(th_u32)col < (th_u32){}", n) : "";
  const auto coords = [&] {
    Coords at = e.index().split(row, {dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(axis)});
    at.push_back(pack.lane);
    return at;
  };
  // Place u of a round: the column where its pack begins; backwards, packs lie from the end of the line.
  const auto open_place = [&] {
    e.line("TH_UNROLL");
    e.open(fmt::format("for (int u = 0; u < {}; ++u)", kPlaces));
    e.line(fmt::format("const int from = base + (u * {} + TH_THREAD) * {};", threads, lanes));
    e.line(reverse ? fmt::format("const int c = {} - {} - from;", n, lanes) : "const int c = from;");
  };
  e.line(fmt::format("{} carry = {};", t, zero));
  e.line(fmt::format("{} part[{}];", t, lanes));
  e.open(fmt::format("for (int base = 0; base < {}; base += {})", n, width * kPlaces));
  open_place();
  e.open(fmt::format("if (from < {})", n));
  e.load_packs(pack, "c", [&] { e.value(x, coords()); });
  e.close();
  e.close();
  open_place();
  // Neutral elements where the line has ended; the shuffles below need every work-item.
  e.line("TH_UNROLL");
  e.line(fmt::format("for (int t = 0; t < {}; ++t) part[t] = {};", lanes, zero));
  e.open(fmt::format("if (from < {})", n));
  e.use_packs(pack, "c", guard, [&] {
    e.line(fmt::format("part[{}] = {};",
                       reverse ? fmt::format("{} - 1 - {}", lanes, pack.element) : pack.element,
                       e.value(x, coords())));
  });
  e.close();
  e.line("TH_UNROLL");
  e.line(fmt::format("for (int t = 1; t < {}; ++t) part[t] = {};", lanes,
                     combine(kind, type.dtype, "part[t - 1]", "part[t]")));
  e.line(fmt::format("{} sum = part[{}];", t, lanes - 1));
  e.line("TH_UNROLL");
  e.open("for (int w = 1; w < 32; w *= 2)");
  e.line(fmt::format("const {} other = __shfl_up_sync(0xffffffffu, sum, w);", t));
  e.line(fmt::format("if (lane >= w) sum = {};", combine(kind, type.dtype, "other", "sum")));
  e.close();
  // Two sets of totals in turn, so that one barrier a place is enough.
  e.line(fmt::format("{}* const totals = {} + (u & 1) * {};", t, shared, warps));
  e.line("if (lane == 31) totals[warp] = sum;");
  e.line(fmt::format("{} before = __shfl_up_sync(0xffffffffu, sum, 1);", t));
  e.line(fmt::format("if (lane == 0) before = {};", zero));
  e.line("TH_BARRIER();");
  e.line(fmt::format("{} ahead = carry;", t));
  e.line("TH_UNROLL");
  e.open(fmt::format("for (int w = 0; w < {}; ++w)", warps));
  e.line(fmt::format("if (w == warp) ahead = carry;"));
  e.line(fmt::format("carry = {};", combine(kind, type.dtype, "carry", "totals[w]")));
  e.close();
  e.line(fmt::format("before = {};", combine(kind, type.dtype, "ahead", "before")));
  e.open(fmt::format("if (from < {})", n));
  const auto write = [&] {
    const std::string here = pack.element.empty() ? "0"
                             : reverse            ? fmt::format("{} - 1 - {}", lanes, pack.element)
                                                  : pack.element;
    const std::string v = e.declare(
        type.dtype,
        exclusive ? fmt::format("({0}) > 0 ? {1} : before", here,
                                combine(kind, type.dtype, "before", fmt::format("part[({}) - 1]", here)))
                  : combine(kind, type.dtype, "before", fmt::format("part[{}]", here)));
    e.store(0, coords(), v);
  };
  e.load_packs(pack, "c", write);
  e.use_packs(pack, "c", guard, write);
  e.close();
  e.close();
  e.close();
  return e.finish(
      [count, threads](const Facts& f, artifact::Launch& launch) { set_grid(launch, count(f), threads); },
      threads);
}

}  // namespace thrice::family
