#include "family/pool/pool.h"

#include <fmt/format.h>

#include "family/choices.h"
#include "family/drafted.h"
#include "family/scalar.h"
#include "family/window.h"

namespace thrice::family {

namespace {

using ir::Op;
using ir::ValueId;

Index index_of(Emitter& e, const Extent& extent) { return e.index().extent(extent.dim, extent.source); }
constexpr const char* kTapNames[] = {"r", "s", "u"};

struct PoolProblem {
  HeavyRegion region;
  ValueId x = ir::kNoValue, y = ir::kNoValue;  // y: the values, or the indices where only they are wanted
  bool wants_values = false, wants_indices = false;
  DType dtype = DType::kF32;
  std::string kind;
  bool include_pad = false, column_major = false;
  Window window;
};

PoolProblem make_pool(const Workload& workload) {
  PoolProblem p;
  p.region = find_heavy(workload, {Op::pool});
  const ir::Graph& graph = workload.graph;
  const ir::Node& node = *p.region.op;
  p.x = node.inputs[0];
  p.dtype = graph.value(p.x).type.dtype;
  p.wants_values = node.outputs[0] != ir::kNoValue;
  p.wants_indices = node.outputs.size() > 1 && node.outputs[1] != ir::kNoValue;
  p.y = p.wants_values ? node.outputs[0] : node.outputs[1];
  p.kind = node.string_attr("kind", "max");
  p.include_pad = node.int_attr("count_include_pad", 0) != 0;
  p.column_major = node.int_attr("storage_order", 0) != 0;
  const size_t spatial = graph.value(p.x).type.shape.size() - 2;
  if (spatial < 1 || spatial > 3)
    throw NotMatched{fmt::format("{} spatial axes; kernels are written for 1 to 3", spatial)};
  if (p.kind != "max" && p.kind != "avg" && p.kind != "sum")
    throw NotMatched{"unknown pool kind '" + p.kind + "'"};
  if (p.dtype == DType::kBool) throw NotMatched{"pooling of bool"};
  p.window = make_window(graph, node, ir::kNoValue);
  return p;
}

bool is_max(const PoolProblem& p) { return p.kind == "max"; }

// True where v replaces the maximum acc: larger, or the first NaN.
std::string wins(const PoolProblem& p, const std::string& v, const std::string& acc) {
  if (!is_float(p.dtype)) return fmt::format("{} > {}", v, acc);
  return fmt::format("({0} > {1} || ({0} != {0} && {1} == {1}))", v, acc);
}

// Divisor of an average at output `at`: taps inside the input, or inside input and padding.
std::string taps_counted(Emitter& e, const PoolProblem& p, const Coords& at) {
  std::string product;
  for (size_t a = 0; a < p.window.axes.size(); ++a) {
    const WindowAxis& axis = p.window.axes[a];
    const Index limit = e.index().extent(fmt::format("pool limit {} {}", a, p.include_pad),
                                         [in = axis.in.source, end = axis.end_source, all = p.include_pad](
                                             const Facts& f) { return in(f) + (all ? end(f) : 0); });
    const std::string start = e.text(p.window.position(e, a, at[a + 2], e.constant(0)));
    const std::string count = e.fresh("count");
    e.line(fmt::format("const int {} = th_pool_taps({}, {}, {}, {}, {});", count, start, e.text(limit),
                       e.text(index_of(e, axis.kernel)), axis.dilation, p.include_pad ? 1 : 0));
    product += (a ? " * " : "") + count;
  }
  return product;
}

constexpr const char* kTapCount =
    "#ifndef TH_POOL_TAPS\n#define TH_POOL_TAPS\n"
    "// Taps of a window from `start` on that lie below `limit` (and, but for padding that counts, not below "
    "0).\n"
    "TH_FN int th_pool_taps(int start, int limit, int taps, int dilation, int padded) {\n"
    "  int last = start >= limit ? 0 : (limit - start + dilation - 1) / dilation;\n"
    "  int first = start >= 0 || padded ? 0 : (-start + dilation - 1) / dilation;\n"
    "  if (last > taps) last = taps;\n"
    "  return last > first ? last - first : 0;\n"
    "}\n#endif\n";

void store_pool(Emitter& e, const PoolProblem& p, const Coords& at, std::string acc,
                const std::string& best) {
  if (p.kind == "avg") {
    const std::string count = taps_counted(e, p, at), type = compute_type(p.dtype);
    acc = e.declare(p.dtype,
                    fmt::format("({0}) > 0 ? {1} / ({2})({0}) : {3}", count, acc, type, zero_of(p.dtype)));
  }
  std::vector<std::string> elements{acc};
  if (p.wants_indices) {
    // Flat over the whole tensor: planes before, and the position in this one.
    const auto dims = e.dims(p.x);
    const Index plane = e.index().add(e.index().mul(at[0], dims[1]), at[1]);
    const Index size = e.product({dims.begin() + 2, dims.end()});
    const std::string base = e.text(e.index().mul(plane, size));
    elements.push_back(e.declare(DType::kI64, fmt::format("(th_i64)({} + {})", base, best)));
  }
  elements.resize(std::max<size_t>(elements.size(), p.region.op->outputs.size()));
  emit_epilogue(e, p.region, at, elements);
}

// Opens loops over the taps of the first `axes` axes, each with its check of the input's edge where windows
// leave it; appends the position in x of each to `x_at`. Returns the number of scopes to close.
size_t open_taps(Emitter& e, const PoolProblem& p, const Coords& at, size_t axes, Coords& x_at) {
  size_t opened = 0;
  for (size_t a = 0; a < axes; ++a) {
    const WindowAxis& axis = p.window.axes[a];
    e.open(
        fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", kTapNames[a], e.text(index_of(e, axis.kernel))));
    ++opened;
    const Index position = p.window.position(e, a, at[a + 2], e.index().var(kTapNames[a], axis.kernel.dim));
    if (!axis.always_inside) {
      e.open(fmt::format("if ((th_u32){} < (th_u32){})", e.text(position), e.text(index_of(e, axis.in))));
      ++opened;
    }
    x_at.push_back(position);
  }
  return opened;
}

KernelDraft emit_naive(ProgramDraft& draft, const PoolProblem& p, const Schedule& s) {
  Emitter e(draft, "pool_naive");
  e.preamble(kTapCount);
  const int64_t threads = s.get("threads");
  e.line("const int thread = TH_BLOCK * TH_THREADS + TH_THREAD;");
  e.open(fmt::format("if (thread < {})", e.text(e.elements(p.y))));
  const Coords at = e.split(e.index().var("thread", ir::num_elements(e.graph().value(p.y).type.shape)), p.y);
  e.line(fmt::format("{} acc = {};", compute_type(p.dtype),
                     is_max(p) ? neutral("max", p.dtype) : zero_of(p.dtype)));
  if (is_max(p)) e.line("int best = -1;");
  Coords x_at{at[0], at[1]};
  size_t opened = open_taps(e, p, at, p.window.axes.size(), x_at);
  const std::string v = e.value(p.x, x_at);
  if (is_max(p)) {
    e.open(fmt::format("if (best < 0 || {})", wins(p, v, "acc")));
    e.line(fmt::format("acc = {};", v));
    std::vector<Index> places(x_at.begin() + 2, x_at.end()), dims = e.dims(p.x);
    dims.erase(dims.begin(), dims.begin() + 2);
    if (p.column_major) {
      std::reverse(places.begin(), places.end());
      std::reverse(dims.begin(), dims.end());
    }
    e.line(p.wants_indices ? fmt::format("best = {};", e.text(e.index().linear(places, dims)))
                           : std::string("best = 0;"));
    e.close();
  } else {
    e.line(fmt::format("acc = {};", combine("sum", p.dtype, "acc", v)));
  }
  for (; opened > 0; --opened) e.close();
  if (is_max(p)) e.line("best = best < 0 ? 0 : best;");
  store_pool(e, p, at, "acc", "best");
  e.close();
  return e.finish([y = p.y, threads](const Facts& f, artifact::Launch& launch) {
    set_grid(launch, ceil_div(elements_at(f, y), threads), threads);
  });
}

// One thread computes `width` neighbouring outputs of a row. For each tap the outputs that it serves form one
// range, found once: the loop over them has no branch and becomes vectors on a CPU.
KernelDraft emit_row(ProgramDraft& draft, const PoolProblem& p, const Schedule& s) {
  Emitter e(draft, "pool_row");
  e.preamble(kTapCount);
  const int64_t threads = s.get("threads"), width = s.get("width");
  const WindowAxis& last = p.window.axes.back();
  const int rank = static_cast<int>(p.window.axes.size()) + 2;
  const Extent lines = product_of(e.graph(), p.y, 0, rank - 1);
  const auto pieces = [last, width](const Facts& f) { return ceil_div(last.out.source(f), width); };
  const std::string per_line = last.out.dim.is_const()
                                   ? e.text(e.constant(ceil_div(last.out.dim.value(), width)))
                                   : e.text(e.index().extent("pieces of a line", pieces));
  e.line("const int thread = TH_BLOCK * TH_THREADS + TH_THREAD;");
  e.line(fmt::format("const int own_q = thread % {} * {};", per_line, width));
  e.line(fmt::format("const int line = thread / {};", per_line));
  e.open(fmt::format("if (line < {})", e.text(index_of(e, lines))));
  std::vector<Index> dims = e.dims(p.y);
  dims.pop_back();
  Coords at = e.index().split(e.index().var("line", lines.dim), dims);
  const std::string q_extent = e.text(index_of(e, last.out)), in = e.text(index_of(e, last.in));
  e.line(fmt::format("const int end_q = own_q + {0} < {1} ? own_q + {0} : {1};", width, q_extent));
  e.line(fmt::format("{} line_acc[{}];", compute_type(p.dtype), width));
  e.line(fmt::format("for (int j = 0; j < {}; ++j) line_acc[j] = {};", width,
                     is_max(p) ? neutral("max", p.dtype) : zero_of(p.dtype)));
  Coords x_at{at[0], at[1]};
  size_t opened = open_taps(e, p, at, p.window.axes.size() - 1, x_at);
  e.open(fmt::format("for (int tap = 0; tap < {}; ++tap)", e.text(index_of(e, last.kernel))));
  const std::string shift =
      e.text(e.index().sub(e.index().mul(e.index().var("tap", last.kernel.dim), e.constant(last.dilation)),
                           p.window.pad(e, p.window.axes.size() - 1)));
  // 0 <= q * stride + shift < in
  e.line(fmt::format("const int low = {0} >= 0 ? 0 : (-{0} + {1} - 1) / {1};", shift, last.stride));
  e.line(fmt::format("const int high = {0} > {1} ? ({0} - 1 - {1}) / {2} + 1 : 0;", in, shift, last.stride));
  e.line("const int from = low > own_q ? low : own_q;");
  e.line("const int to = high < end_q ? high : end_q;");
  e.open("for (int q = from; q < to; ++q)");
  x_at.push_back(e.index().add(e.index().mul(e.index().var("q", last.out.dim), e.constant(last.stride)),
                               e.declare_int(shift)));
  const std::string v = e.value(p.x, x_at), acc = "line_acc[q - own_q]";
  e.line(fmt::format(
      "{} = {};", acc,
      is_max(p) ? fmt::format("{} ? {} : {}", wins(p, v, acc), v, acc) : combine("sum", p.dtype, acc, v)));
  e.close();
  e.close();
  for (; opened > 0; --opened) e.close();
  e.open("for (int q = own_q; q < end_q; ++q)");
  at.push_back(e.index().var("q", last.out.dim));
  const std::string result = e.declare(p.dtype, acc);
  store_pool(e, p, at, result, "");
  e.close();
  e.close();
  return e.finish([lines, pieces, threads](const Facts& f, artifact::Launch& launch) {
    set_grid(launch, ceil_div(lines.source(f) * pieces(f), threads), threads);
  });
}

// Elements of the last axis that `lanes` neighbouring outputs read; 0 where that is not known.
int64_t read_span(const PoolProblem& p, int64_t lanes) {
  const WindowAxis& last = p.window.axes.back();
  if (!last.kernel.dim.is_const()) return 0;
  return (lanes - 1) * last.stride + (last.kernel.dim.value() - 1) * last.dilation + 1;
}

// One work-item computes `lanes` neighbouring outputs of a line: what their windows read of a line of the
// input is loaded once, to places that are known when the text is compiled, and each element's test of the
// edge made once.
KernelDraft emit_lanes(ProgramDraft& draft, const PoolProblem& p, const Schedule& s) {
  Emitter e(draft, "pool_lanes");
  e.preamble(kTapCount);
  const int64_t threads = s.get("threads"), lanes = s.get("lanes"), span = read_span(p, lanes);
  const WindowAxis& last = p.window.axes.back();
  const int rank = static_cast<int>(p.window.axes.size()) + 2;
  const Extent lines = product_of(e.graph(), p.y, 0, rank - 1);
  const auto pieces = [last, lanes](const Facts& f) { return ceil_div(last.out.source(f), lanes); };
  const std::string per_line = last.out.dim.is_const()
                                   ? e.text(e.constant(ceil_div(last.out.dim.value(), lanes)))
                                   : e.text(e.index().extent("pieces of a line", pieces));
  const std::string type = compute_type(p.dtype),
                    zero = is_max(p) ? neutral("max", p.dtype) : zero_of(p.dtype);
  const auto fill = [&](const char* array, int64_t count) {
    e.line(fmt::format("{} {}[{}];", type, array, count));
    e.line("TH_UNROLL");
    e.line(fmt::format("for (int i = 0; i < {}; ++i) {}[i] = {};", count, array, zero));
  };
  e.line("const int thread = TH_BLOCK * TH_THREADS + TH_THREAD;");
  e.line(fmt::format("const int line = thread / {0}, own_q = (thread - line * {0}) * {1};", per_line, lanes));
  e.open(fmt::format("if (line < {})", e.text(index_of(e, lines))));
  std::vector<Index> dims = e.dims(p.y);
  dims.pop_back();
  Coords at = e.index().split(e.index().var("line", lines.dim), dims);
  fill("line_acc", lanes);
  e.line(fmt::format("const int first = own_q * {} - {};", last.stride,
                     e.text(p.window.pad(e, p.window.axes.size() - 1))));
  Coords x_at{at[0], at[1]};
  size_t opened = open_taps(e, p, at, p.window.axes.size() - 1, x_at);
  fill("read", span);
  e.line("TH_UNROLL");
  e.open(fmt::format("for (int i = 0; i < {}; ++i)", span));
  e.line("const int from = first + i;");
  e.open(fmt::format("if ((th_u32)from < (th_u32){})", e.text(index_of(e, last.in))));
  x_at.push_back(e.index().var("from", last.in.dim));
  e.line(fmt::format("read[i] = {};", e.value(p.x, x_at)));
  e.close();
  e.close();
  e.line("TH_UNROLL");
  e.open(fmt::format("for (int j = 0; j < {}; ++j)", lanes));
  e.line("TH_UNROLL");
  e.open(fmt::format("for (int tap = 0; tap < {}; ++tap)", last.kernel.dim.value()));
  const std::string v = fmt::format("read[j * {} + tap * {}]", last.stride, last.dilation);
  e.line(fmt::format("line_acc[j] = {};",
                     is_max(p) ? fmt::format("{} ? {} : line_acc[j]", wins(p, v, "line_acc[j]"), v)
                               : combine("sum", p.dtype, "line_acc[j]", v)));
  e.close();
  e.close();
  for (; opened > 0; --opened) e.close();
  e.line("TH_UNROLL");
  e.open(fmt::format("for (int j = 0; j < {}; ++j)", lanes));
  e.line("const int q = own_q + j;");
  e.open(fmt::format("if (q < {})", e.text(index_of(e, last.out))));
  at.push_back(e.index().var("q", last.out.dim));
  const std::string result = e.declare(p.dtype, "line_acc[j]");
  store_pool(e, p, at, result, "");
  e.close();
  e.close();
  e.close();
  return e.finish([lines, pieces, threads](const Facts& f, artifact::Launch& launch) {
    set_grid(launch, ceil_div(lines.source(f) * pieces(f), threads), threads);
  });
}

class Pool final : public DraftedFamily {
 public:
  std::string_view name() const override { return "pool"; }

  Refusal match(const Workload& workload) const override {
    try {
      make_pool(workload);
      return std::nullopt;
    } catch (const NotMatched& reason) {
      return reason.reason;
    }
  }

  Schedule default_schedule(const Workload& workload, const std::vector<Fact>&,
                            const DeviceSpec& device) const override {
    const Schedule row{"pool", "row", {{"threads", 16}, {"width", 32}}};
    if (device.is_cpu && !illegal(workload, row, device)) return row;
    return {"pool", "naive", {{"threads", device.is_cpu ? 64 : 256}}};
  }

  ScheduleSpace space(const Workload& workload, const std::vector<Fact>&,
                      const DeviceSpec& device) const override {
    ScheduleSpace space;
    space.tactics.push_back({"pool", "naive", {{"threads", {32, 64, 128, 256}}}});
    if (!illegal(workload, {"pool", "row", {{"threads", 16}, {"width", 16}}}, device))
      space.tactics.push_back(
          {"pool", "row", {{"threads", {1, 4, 16, 32, 64, 128}}, {"width", {4, 8, 16, 32, 64}}}});
    if (!illegal(workload, {"pool", "lanes", {{"threads", 64}, {"lanes", 2}}}, device))
      space.tactics.push_back({"pool", "lanes", {{"threads", {64, 128, 256}}, {"lanes", {2, 4, 8}}}});
    return space;
  }

  Refusal illegal(const Workload& workload, const Schedule& s, const DeviceSpec& device) const override {
    if (s.family != "pool" || (s.tactic != "naive" && s.tactic != "row" && s.tactic != "lanes"))
      return fmt::format("pool has no tactic '{}'", s.tactic);
    if (s.tactic == "lanes") {
      const PoolProblem p = make_pool(workload);
      constexpr int64_t kMostRead = 48;  // registers
      if (p.wants_indices) return "lanes keep no positions: take naive where indices are wanted";
      if (s.get("lanes") < 1 || read_span(p, s.get("lanes")) < 1 || read_span(p, s.get("lanes")) > kMostRead)
        return "windows of a length that is known, of which neighbours read at most 48 elements of a line";
    }
    if (s.tactic == "row") {
      const PoolProblem p = make_pool(workload);
      if (p.wants_indices) return "row keeps no positions: take naive where indices are wanted";
      if (s.get("width") < 1 || s.get("width") > 64) return "a line of 1 to 64 outputs is kept in registers";
      if (!device.is_cpu && s.get("width") > 8)
        return fmt::format(
            "{} outputs a thread are indexed at run time and would leave the registers of a GPU",
            s.get("width"));
    }
    return refuse_device(workload, device, s.get("threads"), 0);
  }

 private:
  ProgramDraft make_draft(const Workload& workload, const Schedule& schedule, bool) const override {
    ProgramDraft draft(workload);
    const PoolProblem p = make_pool(workload);
    draft.kernels.push_back(schedule.tactic == "row"     ? emit_row(draft, p, schedule)
                            : schedule.tactic == "lanes" ? emit_lanes(draft, p, schedule)
                                                         : emit_naive(draft, p, schedule));
    return draft;
  }
};

}  // namespace

const Family& pool_family() {
  static const Pool kFamily;
  return kFamily;
}

}  // namespace thrice::family
