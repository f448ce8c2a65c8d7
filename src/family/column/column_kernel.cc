#include "family/column/column_kernel.h"

#include <fmt/format.h>

#include "family/scalar.h"

namespace thrice::family {

using ir::Dim;
using ir::Op;
using ir::ValueId;

namespace {

constexpr int64_t kChunk =
    256;  // terms added before a partial joins the total: bounds the error of long sums

// Outer axes of the first reduction that come after its reduced axes.
std::vector<size_t> kept_axes(const Reduction& r) {
  std::vector<size_t> kept;
  for (const size_t a : r.axes.outer)
    if (a > r.axes.inner.back()) kept.push_back(a);
  return kept;
}

class ColumnKernel {
 public:
  ColumnKernel(ProgramDraft& draft, const RowForm& form, const ColumnSchedule& schedule,
               const std::string& symbol)
      : draft_(draft), form_(form), s_(schedule), e_(draft, symbol) {}

  KernelDraft make();

 private:
  const ir::Shape& shape(ValueId v) const { return draft_.graph().value(v).type.shape; }
  Coords outer_coords(ValueId value, const RowAxes& axes);
  void open_lanes();
  void close_lanes();
  void reduce(const Reduction& reduction);
  void write(const RowOutput& output);

  ProgramDraft& draft_;
  const RowForm& form_;
  const ColumnSchedule& s_;
  Emitter e_;
  Dim lead_dim_, kept_dim_;
  Index lead_, kept_, k_, row_;  // row_ = lead_ * kept_ + k_
  std::string kept_text_;
};

// Coordinates of the axes that make the row, from (lead, k): the list of axes is cut where the products
// agree.
Coords ColumnKernel::outer_coords(ValueId value, const RowAxes& axes) {
  if (axes.flat) throw NotMatched{"an output's axes do not end where its columns do"};
  Coords coords(axes.outer.size() + axes.inner.size());
  for (size_t cut = axes.outer.size() + 1; cut-- > 0;) {
    Dim lead(1), kept(1);
    std::vector<Index> lead_dims, kept_dims;
    for (size_t k = 0; k < axes.outer.size(); ++k) {
      const size_t a = axes.outer[k];
      (k < cut ? lead : kept) = (k < cut ? lead : kept) * shape(value)[a];
      (k < cut ? lead_dims : kept_dims).push_back(e_.dim(value, static_cast<int>(a)));
    }
    if (!(lead == lead_dim_ && kept == kept_dim_)) continue;
    const Coords l = e_.index().split(lead_, lead_dims), k = e_.index().split(k_, kept_dims);
    for (size_t i = 0; i < axes.outer.size(); ++i) coords[axes.outer[i]] = i < cut ? l[i] : k[i - cut];
    return coords;
  }
  throw NotMatched{"the kept columns are not the same axes for all reductions and outputs"};
}

void ColumnKernel::open_lanes() {
  if (s_.threads == 1) {
    e_.open("for (int l = 0; l < lanes; ++l)");
    e_.line("const int k = k0 + l;");
    return;
  }
  e_.line("TH_UNROLL");
  e_.open(fmt::format("for (int l = 0; l < {}; ++l)", s_.lanes));
  e_.line(fmt::format("const int k = k0 + l * {};", s_.threads));
  e_.open(fmt::format("if (k < {})", kept_text_));
}

void ColumnKernel::close_lanes() {
  e_.close();
  if (s_.threads != 1) e_.close();
}

void ColumnKernel::reduce(const Reduction& r) {
  const ir::Node& node = draft_.graph().nodes[static_cast<size_t>(r.node)];
  if (node.op == Op::arg_reduce) throw NotMatched{"arg_reduce over columns takes the general kernel"};
  const std::string kind = node.string_attr("kind", "sum");
  const DType dtype = draft_.graph().value(r.input).type.dtype;
  const std::string type = compute_type(dtype), zero = neutral(kind, dtype);
  const std::string total = e_.fresh("s");
  const auto fill = [&](const std::string& array) {
    e_.line(fmt::format("for (int l = 0; l < {}; ++l) {}[l] = {};", s_.lanes, array, zero));
  };
  e_.line(fmt::format("{} {}[{}];", type, total, s_.lanes));
  fill(total);
  Coords coords = outer_coords(r.input, r.axes);
  const size_t loops = r.axes.inner.size();
  Index count = e_.constant(1);
  for (size_t i = 0; i < loops; ++i)
    count = e_.index().mul(count, e_.dim(r.input, static_cast<int>(r.axes.inner[i])));
  for (size_t i = 0; i + 1 < loops; ++i) {
    const size_t a = r.axes.inner[i];
    coords[a] = e_.open_loop("0", e_.text(e_.dim(r.input, static_cast<int>(a))), "1", shape(r.input)[a]);
  }
  const size_t last = r.axes.inner.back();
  const std::string n = e_.text(e_.dim(r.input, static_cast<int>(last)));
  const Dim& bound = shape(r.input)[last];
  const bool chunked = !(bound.is_const() && bound.value() <= kChunk);
  std::string begin = "0", end = n, partial = total;
  if (chunked) {
    begin = e_.fresh("b");
    e_.open(fmt::format("for (int {0} = 0; {0} < {1}; {0} += {2})", begin, n, kChunk));
    end = e_.fresh("n");
    e_.line(fmt::format("const int {} = th_min_int({} + {}, {});", end, begin, kChunk, n));
    partial = e_.fresh("a");
    e_.line(fmt::format("{} {}[{}];", type, partial, s_.lanes));
    fill(partial);
  }
  coords[last] = e_.open_loop(begin, end, "1", bound);
  open_lanes();
  e_.line(fmt::format("{0}[l] = {1};", partial,
                      combine(kind, dtype, partial + "[l]", e_.value(r.input, coords))));
  close_lanes();
  e_.close();
  if (chunked) {
    e_.line(fmt::format("for (int l = 0; l < {}; ++l) {}[l] = {};", s_.lanes, total,
                        combine(kind, dtype, total + "[l]", partial + "[l]")));
    e_.close();
  }
  for (size_t i = 0; i + 1 < loops; ++i) e_.close();
  if (kind == "mean") {
    const std::string t = total + "[l]", c = e_.text(count);
    e_.line(fmt::format("for (int l = 0; l < {}; ++l) {} = {};", s_.lanes, t,
                        is_float(dtype)
                            ? fmt::format("{} / ({}){}", t, type, c)
                            : fmt::format("th_div_{}({}, ({}){})", compute_suffix(dtype), t, type, c)));
  }
  bind_reduction(e_, r, row_, total + "[l]");
}

void ColumnKernel::write(const RowOutput& output) {
  const ValueId y = draft_.graph().outputs[output.output];
  Coords coords = outer_coords(y, output.axes);
  for (const size_t a : output.axes.inner)
    coords[a] = e_.open_loop("0", e_.text(e_.dim(y, static_cast<int>(a))), "1", shape(y)[a]);
  open_lanes();
  e_.store(output.output, coords, e_.value(y, coords));
  close_lanes();
  for (size_t i = 0; i < output.axes.inner.size(); ++i) e_.close();
}

KernelDraft ColumnKernel::make() {
  const Reduction& first = form_.reductions[0];
  const auto kept = kept_axes(first);
  lead_dim_ = Dim(1);
  kept_dim_ = Dim(1);
  std::vector<Index> lead_dims, kept_dims;
  for (const size_t a : first.axes.outer) {
    const bool is_kept = a > first.axes.inner.back();
    (is_kept ? kept_dim_ : lead_dim_) = (is_kept ? kept_dim_ : lead_dim_) * shape(first.input)[a];
    (is_kept ? kept_dims : lead_dims).push_back(e_.dim(first.input, static_cast<int>(a)));
  }
  kept_ = e_.product(kept_dims);
  kept_text_ = e_.text(kept_);
  const RowForm form = form_;
  const int64_t width = s_.threads * s_.lanes;
  const auto tiles = [form, width](const Facts& f) { return (kept_columns(form, f) + width - 1) / width; };
  const std::string tiles_text = e_.text(e_.index().extent("column tiles", tiles));
  const bool one = lead_dim_.is_const() && lead_dim_.value() == 1;
  e_.line(fmt::format("const int lead = TH_BLOCK / {};", tiles_text));
  lead_ = one ? e_.constant(0) : e_.index().var("lead", lead_dim_);
  e_.line(fmt::format("const int k0 = TH_BLOCK % {} * {}{};", tiles_text, width,
                      s_.threads > 1 ? " + TH_THREAD" : ""));
  if (s_.threads == 1)
    e_.line(fmt::format("const int lanes = th_min_int({}, {} - k0);", s_.lanes, kept_text_));
  k_ = kept_dim_.is_const() && kept_dim_.value() == 1 ? e_.constant(0) : e_.index().var("k", kept_dim_);
  row_ = e_.index().add(e_.index().mul(lead_, kept_), k_);
  for (const auto& r : form_.reductions) reduce(r);
  for (const auto& output : form_.outputs) write(output);
  return e_.finish(
      [form, tiles, threads = s_.threads](const Facts& f, artifact::Launch& launch) {
        const int64_t kept_count = kept_columns(form, f);
        set_grid(launch, kept_count == 0 ? 0 : tiles(f) * (form.row_count(f) / kept_count), threads);
      },
      s_.threads);
}

}  // namespace

KernelDraft column_kernel(ProgramDraft& draft, const RowForm& form, const ColumnSchedule& schedule,
                          const std::string& symbol) {
  return ColumnKernel(draft, form, schedule, symbol).make();
}

int64_t kept_columns(const RowForm& form, const Facts& facts) {
  int64_t n = 1;
  for (const size_t a : kept_axes(form.reductions[0]))
    n *= extent_at(facts, form.reductions[0].input, static_cast<int>(a));
  return n;
}

}  // namespace thrice::family
