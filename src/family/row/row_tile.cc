#include "family/row/row_tile.h"

#include <fmt/format.h>

#include "family/choices.h"
#include "family/row_kernel.h"
#include "family/scalar.h"

namespace thrice::family {

using ir::Dim;
using ir::ValueId;

namespace {

constexpr int64_t kWarp = 32;

// The maximum has a form of one instruction; the rest is as everywhere.
std::string combined(const std::string& kind, DType dtype, const std::string& a, const std::string& b) {
  if (kind == "max" && compute_type(dtype) == "float") return fmt::format("th_top_f32({}, {})", a, b);
  return combine(kind, dtype, a, b);
}

class TileKernel {
 public:
  TileKernel(ProgramDraft& draft, const RowForm& form, const RowTile& tile, int64_t columns,
             const std::string& symbol)
      : draft_(draft), form_(form), t_(tile), n_(columns), e_(draft, symbol) {}

  KernelDraft make();

 private:
  bool ragged() const { return n_ % t_.lanes != 0; }
  std::string inside() const { return ragged() ? fmt::format("(th_u32)col < {}u", n_) : ""; }
  Coords at_column(ValueId value, const RowAxes& axes);
  // Opens the loop over the packs of a row that this work-item holds; two scopes.
  void open_packs();
  void close_packs();
  void reduce(const Reduction& reduction);
  void arg_reduce(const Reduction& reduction);
  bool can_keep() const;
  std::string combine_threads(const std::string& kind, DType dtype, const std::string& partial);
  void write(const RowOutput& output);

  ProgramDraft& draft_;
  const RowForm& form_;
  const RowTile& t_;
  int64_t n_;
  Emitter e_;
  Emitter::Packs packs_;
  Index row_, column_;
};

Coords TileKernel::at_column(ValueId value, const RowAxes& axes) {
  if (axes.flat) return flat_coords(e_, value, axes, row_, column_, e_.constant(n_));
  Coords coords = row_coords(e_, value, axes, row_);
  std::vector<Index> dims;
  for (const size_t a : axes.inner) dims.push_back(e_.dim(value, static_cast<int>(a)));
  const Coords inner = e_.index().split(column_, dims);
  for (size_t k = 0; k < inner.size(); ++k) coords[axes.inner[k]] = inner[k];
  return coords;
}

void TileKernel::open_packs() {
  e_.line("TH_UNROLL");
  e_.open(fmt::format("for (int u = 0; u < {}; ++u)", packs_.places));
  e_.line(
      fmt::format("const int c = (u * {} + tid) * {}{};", t_.threads, t_.lanes, ragged() ? " - shift" : ""));
  const bool exact = !ragged() && packs_.places * t_.threads * t_.lanes == n_;
  e_.open(exact ? "" : fmt::format("if (c < {})", n_));
}

void TileKernel::close_packs() {
  e_.close();
  e_.close();
}

std::string TileKernel::combine_threads(const std::string& kind, DType dtype, const std::string& partial) {
  const std::string type = compute_type(dtype), all = e_.fresh("r"), other = e_.fresh("o");
  e_.line(fmt::format("{} {} = {};", type, all, partial));
  const auto shuffle = [&](int64_t width) {
    e_.line("TH_UNROLL");
    e_.open(fmt::format("for (int w = {}; w > 0; w >>= 1)", width / 2));
    e_.line(fmt::format("const {} {} = __shfl_xor_sync(0xffffffffu, {}, w);", type, other, all));
    e_.line(fmt::format("{} = {};", all, combined(kind, dtype, all, other)));
    e_.close();
  };
  shuffle(kWarp);
  const int64_t warps = t_.threads / kWarp;
  if (warps == 1) return all;
  const std::string shared = e_.local_array(type, warps);
  e_.line(fmt::format("if ((TH_THREAD & 31) == 0) {}[TH_THREAD >> 5] = {};", shared, all));
  e_.line("TH_BARRIER();");
  e_.line(fmt::format("{} = {}[TH_THREAD & {}];", all, shared, warps - 1));
  shuffle(warps);
  return all;
}

void TileKernel::arg_reduce(const Reduction& r) {
  const ir::Node& node = draft_.graph().nodes[static_cast<size_t>(r.node)];
  const DType dtype = draft_.graph().value(r.input).type.dtype;
  const std::string type = compute_type(dtype), best = e_.fresh("s"), at = e_.fresh("at");
  e_.line(fmt::format("{} {} = {};", type, best, neutral("sum", dtype)));
  e_.line(fmt::format("int {} = -1;", at));
  const auto element = [&] { return e_.value(r.input, at_column(r.input, r.axes)); };
  open_packs();
  e_.load_packs(packs_, "c", [&] { element(); });
  close_packs();
  open_packs();
  e_.use_packs(packs_, "c", inside(), [&] {
    const std::string v = element();
    e_.line(fmt::format("if ({}) {{ {} = {}; {} = col; }}", arg_takes(node, dtype, v, "col", best, at), best,
                        v, at));
  });
  close_packs();
  const std::string v = e_.fresh("o"), i = e_.fresh("oi");
  const auto shuffle = [&](int64_t width) {
    e_.line("TH_UNROLL");
    e_.open(fmt::format("for (int w = {}; w > 0; w >>= 1)", width / 2));
    e_.line(fmt::format("const {} {} = __shfl_xor_sync(0xffffffffu, {}, w);", type, v, best));
    e_.line(fmt::format("const int {} = __shfl_xor_sync(0xffffffffu, {}, w);", i, at));
    e_.line(fmt::format("if ({0} >= 0 && ({1})) {{ {2} = {3}; {4} = {0}; }}", i,
                        arg_takes(node, dtype, v, i, best, at), best, v, at));
    e_.close();
  };
  shuffle(kWarp);
  const int64_t warps = t_.threads / kWarp;
  if (warps > 1) {
    const std::string values = e_.local_array(type, warps), places = e_.local_array("int", warps);
    e_.line(
        fmt::format("if ((TH_THREAD & 31) == 0) {{ {0}[TH_THREAD >> 5] = {1}; {2}[TH_THREAD >> 5] = {3}; }}",
                    values, best, places, at));
    e_.line("TH_BARRIER();");
    e_.line(fmt::format("{0} = {1}[TH_THREAD & {4}]; {2} = {3}[TH_THREAD & {4}];", best, values, at, places,
                        warps - 1));
    shuffle(warps);
  }
  const std::string result = e_.fresh("r");
  e_.line(fmt::format("const th_i64 {} = {};", result, at));
  bind_reduction(e_, r, row_, result);
}

// Whether the last reduction's input is computed, so that what the outputs need of it is kept.
bool TileKernel::can_keep() const {
  const Reduction& last = form_.reductions.back();
  return t_.keep && draft_.graph().value(last.input).producer >= 0 &&
         draft_.graph().nodes[static_cast<size_t>(last.node)].op == ir::Op::reduce;
}

void TileKernel::reduce(const Reduction& r) {
  const ir::Node& node = draft_.graph().nodes[static_cast<size_t>(r.node)];
  if (node.op == ir::Op::arg_reduce) return arg_reduce(r);
  const bool keeps = can_keep();
  const std::string kind = node.string_attr("kind", "sum");
  const DType dtype = draft_.graph().value(r.input).type.dtype;
  const std::string type = compute_type(dtype), zero = neutral(kind, dtype), acc = e_.fresh("a");
  e_.line(fmt::format("{} {}[{}];", type, acc, t_.lanes));
  e_.line("TH_UNROLL");
  e_.line(fmt::format("for (int t = 0; t < {}; ++t) {}[t] = {};", t_.lanes, acc, zero));
  const auto element = [&] { return e_.value(r.input, at_column(r.input, r.axes)); };
  open_packs();
  e_.load_packs(packs_, "c", [&] { element(); });
  close_packs();
  open_packs();
  e_.use_packs(packs_, "c", inside(), [&] {
    const std::string partial = fmt::format("{}[{}]", acc, packs_.element), v = element();
    if (keeps && r.node == form_.reductions.back().node)
      e_.line(fmt::format("kept[u * {} + {}] = {};", t_.lanes, packs_.element, v));
    e_.line(fmt::format("{} = {};", partial, combined(kind, dtype, partial, v)));
  });
  close_packs();
  for (int64_t w = t_.lanes / 2; w > 0; w /= 2)
    for (int64_t t = 0; t < w; ++t)
      e_.line(fmt::format(
          "{0}[{1}] = {2};", acc, t,
          combined(kind, dtype, fmt::format("{}[{}]", acc, t), fmt::format("{}[{}]", acc, t + w))));
  std::string result = combine_threads(kind, dtype, acc + "[0]");
  if (kind == "mean") {
    const std::string mean = e_.fresh("r");
    e_.line(fmt::format("const {0} {1} = {2};", type, mean,
                        is_float(dtype)
                            ? fmt::format("{} / ({}){}", result, type, n_)
                            : fmt::format("th_div_{}({}, ({}){})", compute_suffix(dtype), result, type, n_)));
    result = mean;
  }
  bind_reduction(e_, r, row_, result);
}

void TileKernel::write(const RowOutput& output) {
  const ValueId y = draft_.graph().outputs[output.output];
  if (!output.axes.flat && output.axes.inner.empty()) {
    e_.open("if (tid == 0)");
    const Coords coords = row_coords(e_, y, output.axes, row_);
    e_.store(output.output, coords, e_.value(y, coords));
    e_.close();
    return;
  }
  if (can_keep()) {
    const Reduction& last = form_.reductions.back();
    const Coords here = at_column(last.input, last.axes);
    e_.bind(last.input, [this, here](const Coords& at) {
      if (!(at == here)) throw NotMatched{"the kept value is read at other elements"};
      return fmt::format("kept[u * {} + {}]", t_.lanes, packs_.element.empty() ? "0" : packs_.element);
    });
  }
  const auto element = [&] {
    const Coords coords = at_column(y, output.axes);
    e_.store(output.output, coords, e_.value(y, coords));
  };
  open_packs();
  e_.load_packs(packs_, "c", element);
  e_.use_packs(packs_, "c", inside(), element);
  close_packs();
}

KernelDraft TileKernel::make() {
  const RowForm form = form_;
  const RowTile tile = t_;
  const std::string rows =
      e_.text(e_.index().extent(form.rows, [form](const Facts& facts) { return form.row_count(facts); }));
  row_ = row_variable(e_, form, "row");
  column_ = e_.index().var("col", Dim(n_));
  packs_.lane = column_;
  packs_.lanes = t_.lanes;
  packs_.places = tile_packs(n_, t_);
  packs_.place = "u";
  if (ragged()) {
    packs_.full = fmt::format("c >= 0 && c + {} <= {}", t_.lanes, n_);
    packs_.first = "-c";
    packs_.end = fmt::format("{} - c", n_);
    packs_.even = e_.index().add(e_.index().mul(row_, e_.constant(n_)), column_);
  }
  if (t_.threads == kWarp) {
    e_.line(fmt::format("const int row = TH_BLOCK * {} + (TH_THREAD >> 5), tid = TH_THREAD & 31;", t_.rows));
    e_.open(fmt::format("if (row < {})", rows));
  } else {
    e_.line("const int row = TH_BLOCK, tid = TH_THREAD;");
    e_.open("");
  }
  if (can_keep()) {
    const DType kept = draft_.graph().value(form_.reductions.back().input).type.dtype;
    e_.line(fmt::format("{} kept[{}];", compute_type(kept), packs_.places * t_.lanes));
  }
  if (ragged()) e_.line(fmt::format("const int shift = row * {} & {};", n_, t_.lanes - 1));
  for (const auto& r : form_.reductions) reduce(r);
  for (const auto& output : form_.outputs) write(output);
  e_.close();
  return e_.finish(
      [form, tile](const Facts& facts, artifact::Launch& launch) {
        set_grid(launch, ceil_div(form.row_count(facts), tile.rows), tile.threads * tile.rows);
      },
      t_.threads * t_.rows);
}

}  // namespace

int64_t tile_packs(int64_t columns, const RowTile& tile) {
  const int64_t slack = columns % tile.lanes == 0 ? 0 : tile.lanes - 1;
  return ceil_div(ceil_div(columns + slack, tile.lanes), tile.threads);
}

int64_t tile_columns(const ProgramDraft& draft, const RowForm& form) {
  int64_t columns = 0;
  const auto same = [&](ValueId value, const RowAxes& axes) {
    Dim all = axes.flat ? axes.columns : Dim(1);
    if (!axes.flat)
      for (const size_t a : axes.inner) all = all * draft.graph().value(value).type.shape[a];
    if (!all.is_const() || all.value() < 1 || (columns != 0 && columns != all.value())) return false;
    columns = all.value();
    return true;
  };
  for (const Reduction& r : form.reductions) {
    if (!same(r.input, r.axes)) return 0;
  }
  for (const RowOutput& o : form.outputs)
    if ((o.axes.flat || !o.axes.inner.empty()) && !same(draft.graph().outputs[o.output], o.axes)) return 0;
  return columns;
}

KernelDraft row_tile_kernel(ProgramDraft& draft, const RowForm& form, const RowTile& tile,
                            const std::string& symbol) {
  const int64_t columns = tile_columns(draft, form);
  if (columns == 0) throw NotMatched{"rows are not of one length that is known beforehand"};
  return TileKernel(draft, form, tile, columns, symbol).make();
}

}  // namespace thrice::family
