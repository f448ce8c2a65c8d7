#include "family/column/column_split.h"

#include <fmt/format.h>

#include "family/choices.h"
#include "family/column/column_kernel.h"
#include "family/scalar.h"

namespace thrice::family {

using ir::Dim;
using ir::ValueId;

namespace {

constexpr int64_t kWarp = 32, kUnroll = 4;

// The parts of the one reduction: [lead, reduced, kept], each a run of axes.
struct Parts {
  Reduction reduction;  // a copy: launches outlive the form
  std::string kind;
  DType dtype;
  Dim lead{1}, reduced{1}, kept{1};
  size_t first = 0, last = 0;  // reduced axes [first, last)
  int64_t product(const Facts& f, size_t begin, size_t end) const {
    int64_t n = 1;
    for (size_t a = begin; a < end; ++a) n *= extent_at(f, reduction.input, static_cast<int>(a));
    return n;
  }
  size_t rank(const Facts& f) const { return f[static_cast<size_t>(reduction.input)].type.shape.size(); }
  int64_t lead_count(const Facts& f) const { return product(f, 0, first); }
  int64_t reduced_count(const Facts& f) const { return product(f, first, last); }
  int64_t kept_count(const Facts& f) const { return product(f, last, rank(f)); }
};

Parts parts_of(const ProgramDraft& draft, const RowForm& form) {
  if (form.reductions.size() != 1) throw NotMatched{"more than one reduction"};
  Parts p;
  p.reduction = form.reductions[0];
  const ir::Node& node = draft.graph().nodes[static_cast<size_t>(p.reduction.node)];
  if (node.op != ir::Op::reduce) throw NotMatched{"arg_reduce is not shared among blocks"};
  p.kind = node.string_attr("kind", "sum");
  p.dtype = draft.graph().value(p.reduction.input).type.dtype;
  const auto& inner = p.reduction.axes.inner;
  for (size_t k = 1; k < inner.size(); ++k)
    if (inner[k] != inner[k - 1] + 1) throw NotMatched{"the reduced axes are not neighbours"};
  p.first = inner.front();
  p.last = inner.back() + 1;
  const auto& shape = draft.graph().value(p.reduction.input).type.shape;
  for (size_t a = 0; a < shape.size(); ++a) {
    Dim& part = a < p.first ? p.lead : a < p.last ? p.reduced : p.kept;
    part = part * shape[a];
  }
  for (const RowOutput& o : form.outputs)
    if (o.axes.flat || !o.axes.inner.empty()) throw NotMatched{"an output is not one element a column"};
  return p;
}

// Partial results of the rows of one split, for `lanes` columns a work-item: scratch[split][lead * kept +
// column].
KernelDraft partial_kernel(ProgramDraft& draft, const Parts& p, const ColumnSplit& s, int scratch) {
  Emitter e(draft, "column_part");
  const ValueId x = p.reduction.input;
  const std::string type = compute_type(p.dtype), zero = neutral(p.kind, p.dtype);
  const int64_t width = kWarp * s.lanes, splits = s.splits;
  const Parts parts = p;
  const std::string kept =
      e.text(e.index().extent(p.kept, [parts](const Facts& f) { return parts.kept_count(f); }));
  const std::string count =
      e.text(e.index().extent(p.reduced, [parts](const Facts& f) { return parts.reduced_count(f); }));
  const auto tiles = [parts, width](const Facts& f) { return ceil_div(parts.kept_count(f), width); };
  const std::string tiles_text = e.text(e.index().extent("column tiles", tiles));
  const std::string rows = e.text(e.index().extent("rows a split", [parts, splits](const Facts& f) {
    return std::max<int64_t>(1, ceil_div(parts.reduced_count(f), splits));
  }));
  const std::string columns = e.text(e.index().extent(
      "columns", [parts](const Facts& f) { return parts.lead_count(f) * parts.kept_count(f); }));
  e.line("const int warp = TH_THREAD >> 5;");
  e.line(fmt::format("const int split = TH_BLOCK % {}, tile = TH_BLOCK / {};", splits, splits));
  e.line(fmt::format("const int lead = tile / {0}, c = (tile % {0} * 32 + (TH_THREAD & 31)) * {1};",
                     tiles_text, s.lanes));
  e.line(fmt::format("const int r1 = th_min_int((split + 1) * {}, {});", rows, count));
  const bool ragged = !(p.kept.is_const() && p.kept.value() % s.lanes == 0);
  const std::string acc = e.fresh("a");
  e.line(fmt::format("{} {}[{}];", type, acc, s.lanes));
  e.line("TH_UNROLL");
  e.line(fmt::format("for (int t = 0; t < {}; ++t) {}[t] = {};", s.lanes, acc, zero));
  const bool one = p.lead.is_const() && p.lead.value() == 1;
  const Index lead = one ? e.constant(0) : e.index().var("lead", p.lead),
              row = e.index().var("row", p.reduced);
  Emitter::Packs pack;
  pack.lane = e.index().var("col", p.kept);
  pack.lanes = s.lanes;
  pack.places = kUnroll;
  pack.place = "u";
  if (ragged) {
    pack.full = fmt::format("c + {} <= {}", s.lanes, kept);
    pack.first = "0";
    pack.end = fmt::format("{} - c", kept);
  }
  const auto element = [&] {
    const std::vector<Index> dims = e.dims(x);
    const auto at = [&](size_t begin, size_t end) {
      return std::vector<Index>(dims.begin() + static_cast<std::ptrdiff_t>(begin),
                                dims.begin() + static_cast<std::ptrdiff_t>(end));
    };
    Coords coords = e.index().split(lead, at(0, p.first));
    for (const Index i : e.index().split(row, at(p.first, p.last))) coords.push_back(i);
    for (const Index i : e.index().split(pack.lane, at(p.last, dims.size()))) coords.push_back(i);
    return e.value(x, coords);
  };
  // Sums of at most kRows terms join the total: that bounds the error of long ones.
  constexpr int64_t kRows = 64;
  e.open(fmt::format("if (c < {})", kept));
  e.open(fmt::format("for (int b = split * {} + warp; b < r1; b += {})", rows, kRows * s.warps));
  const std::string part = e.fresh("a");
  e.line(fmt::format("{} {}[{}];", type, part, s.lanes));
  e.line("TH_UNROLL");
  e.line(fmt::format("for (int t = 0; t < {}; ++t) {}[t] = {};", s.lanes, part, zero));
  e.line(fmt::format("const int end = th_min_int(b + {}, r1);", kRows * s.warps));
  e.open(fmt::format("for (int r = b; r < end; r += {})", kUnroll * s.warps));
  const auto open_row = [&] {
    e.line("TH_UNROLL");
    e.open(fmt::format("for (int u = 0; u < {}; ++u)", kUnroll));
    e.line(fmt::format("const int row = r + u * {};", s.warps));
    e.open("if (row < end)");
  };
  open_row();
  e.load_packs(pack, "c", [&] { element(); });
  e.close();
  e.close();
  open_row();
  e.use_packs(pack, "c", ragged ? fmt::format("col < {}", kept) : "", [&] {
    const std::string target = fmt::format("{}[{}]", part, pack.element);
    e.line(fmt::format("{} = {};", target, combine(p.kind, p.dtype, target, element())));
  });
  e.close();
  e.close();
  e.close();
  const auto join = [&](const std::string& other) {
    e.line("TH_UNROLL");
    const std::string target = acc + "[t]";
    e.line(fmt::format("for (int t = 0; t < {}; ++t) {} = {};", s.lanes, target,
                       combine(p.kind, p.dtype, target, other)));
  };
  join(part + "[t]");
  e.close();
  e.close();
  const std::string shared = e.local_array(type, s.warps * width);
  e.line("TH_UNROLL");
  e.line(fmt::format("for (int t = 0; t < {0}; ++t) {1}[(warp * {0} + t) * 32 + (TH_THREAD & 31)] = {2}[t];",
                     s.lanes, shared, acc));
  e.line("TH_BARRIER();");
  e.open("if (warp == 0)");
  e.open(fmt::format("for (int w = 1; w < {}; ++w)", s.warps));
  join(fmt::format("{}[(w * {} + t) * 32 + TH_THREAD]", shared, s.lanes));
  e.close();
  e.line("TH_UNROLL");
  e.open(fmt::format("for (int t = 0; t < {}; ++t)", s.lanes));
  e.open(fmt::format("if (c + t < {})", kept));
  e.store_temporary(scratch, fmt::format("split * {} + lead * {} + c + t", columns, kept), acc + "[t]");
  e.close();
  e.close();
  e.close();
  return e.finish(
      [parts, tiles, s](const Facts& f, artifact::Launch& launch) {
        set_grid(launch, tiles(f) * parts.lead_count(f) * s.splits, kWarp * s.warps);
      },
      kWarp * s.warps);
}

// Joins the partial results of a column and writes what depends on it.
KernelDraft final_kernel(ProgramDraft& draft, const RowForm& form, const Parts& p, const ColumnSplit& s,
                         int scratch) {
  constexpr int64_t kThreads = 128;
  Emitter e(draft, "column_join");
  const Parts parts = p;
  const std::string type = compute_type(p.dtype);
  const std::string columns =
      e.text(e.index().extent(form.rows, [form](const Facts& f) { return form.row_count(f); }));
  const Index row = row_variable(e, form, "row");
  e.line(fmt::format("const int row = TH_BLOCK * {} + TH_THREAD;", kThreads));
  e.open(fmt::format("if (row < {})", columns));
  std::string total = e.fresh("s");
  e.line(fmt::format("{} {} = {};", type, total, neutral(p.kind, p.dtype)));
  e.line("TH_UNROLL");
  e.line(fmt::format("for (int s = 0; s < {}; ++s) {} = {};", s.splits, total,
                     combine(p.kind, p.dtype, total,
                             fmt::format("{}[s * {} + row]", draft.temporary_name(scratch), columns))));
  if (p.kind == "mean") {
    const std::string n =
        e.text(e.index().extent(p.reduced, [parts](const Facts& f) { return parts.reduced_count(f); }));
    total = is_float(p.dtype) ? fmt::format("({} / ({}){})", total, type, n)
                              : fmt::format("th_div_{}({}, ({}){})", compute_suffix(p.dtype), total, type, n);
  }
  bind_reduction(e, p.reduction, row, total);
  for (const RowOutput& o : form.outputs) {
    const ValueId y = draft.graph().outputs[o.output];
    const Coords coords = row_coords(e, y, o.axes, row);
    e.store(o.output, coords, e.value(y, coords));
  }
  e.close();
  return e.finish(
      [form](const Facts& f, artifact::Launch& launch) {
        set_grid(launch, ceil_div(form.row_count(f), kThreads), kThreads);
      },
      kThreads);
}

}  // namespace

void column_split_kernels(ProgramDraft& draft, const RowForm& form, const ColumnSplit& split) {
  const Parts parts = parts_of(draft, form);
  const DType dtype = parts.dtype == DType::kF16 || parts.dtype == DType::kBF16 ? DType::kF32
                      : parts.dtype == DType::kBool                             ? DType::kI32
                                                                                : parts.dtype;
  const int scratch = draft.add_temporary(
      dtype, [form, splits = split.splits](const Facts& f) { return splits * form.row_count(f); });
  draft.kernels.push_back(partial_kernel(draft, parts, split, scratch));
  draft.kernels.push_back(final_kernel(draft, form, parts, split, scratch));
}

}  // namespace thrice::family
