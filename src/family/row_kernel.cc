#include "family/row_kernel.h"

#include <fmt/format.h>

#include "family/scalar.h"

namespace thrice::family {

using ir::Dim;
using ir::Op;
using ir::ValueId;

namespace {

// Columns summed into one set of accumulators before these join the total: bounds the error of long sums.
constexpr int64_t kChunk = 4096;

class RowKernel {
 public:
  RowKernel(ProgramDraft& draft, const RowForm& form, const RowSchedule& schedule, const std::string& symbol)
      : draft_(draft), form_(form), s_(schedule), e_(draft, symbol) {}

  KernelDraft make();

 private:
  // Writes the loops over the inner axes before axes.cut; returns how many were opened.
  size_t open_outer_loops(ValueId value, const RowAxes& axes, Coords& coords);
  Coords at_column(ValueId value, const RowAxes& axes, Coords coords, Index column);
  Dim joined(ValueId value, const RowAxes& axes) const;
  std::string joined_text(ValueId value, const RowAxes& axes);
  std::string tid() const { return s_.threads > 1 && s_.block ? "TH_THREAD" : "0"; }
  int64_t stride() const { return s_.block ? s_.threads : 1; }
  std::string plus_tid(const std::string& base) const { return tid() == "0" ? base : base + " + " + tid(); }

  void reduce(const Reduction& reduction);
  void accumulate(const Reduction& reduction, const std::string& kind, const std::string& total);
  std::string combine_threads(const std::string& kind, DType dtype, const std::string& partial);
  void arg_reduce(const Reduction& reduction);
  void arg_threads(const ir::Node& node, DType dtype, const std::string& best, const std::string& at);
  void write(const RowOutput& output);
  void stash_element(const Coords& coords, const std::string& element);

  ProgramDraft& draft_;
  const RowForm& form_;
  const RowSchedule& s_;
  Emitter e_;
  Index row_;
  bool stashed_ = false;
};

Dim RowKernel::joined(ValueId value, const RowAxes& axes) const {
  Dim all(1);
  for (size_t k = axes.cut; k < axes.inner.size(); ++k)
    all = all * draft_.graph().value(value).type.shape[axes.inner[k]];
  return all;
}

std::string RowKernel::joined_text(ValueId value, const RowAxes& axes) {
  std::vector<Index> dims;
  for (size_t k = axes.cut; k < axes.inner.size(); ++k)
    dims.push_back(e_.dim(value, static_cast<int>(axes.inner[k])));
  return e_.text(e_.product(dims));
}

size_t RowKernel::open_outer_loops(ValueId value, const RowAxes& axes, Coords& coords) {
  for (size_t k = 0; k < axes.cut; ++k) {
    const std::string n = e_.text(e_.dim(value, static_cast<int>(axes.inner[k])));
    coords[axes.inner[k]] = e_.open_loop("0", n, "1", draft_.graph().value(value).type.shape[axes.inner[k]]);
  }
  return axes.cut;
}

Coords RowKernel::at_column(ValueId value, const RowAxes& axes, Coords coords, Index column) {
  std::vector<Index> dims;
  for (size_t k = axes.cut; k < axes.inner.size(); ++k)
    dims.push_back(e_.dim(value, static_cast<int>(axes.inner[k])));
  const Coords inner = e_.index().split(column, dims);
  for (size_t k = axes.cut; k < axes.inner.size(); ++k) coords[axes.inner[k]] = inner[k - axes.cut];
  return coords;
}

void RowKernel::stash_element(const Coords& coords, const std::string& element) {
  if (stashed_) e_.store(form_.outputs[0].output, coords, element);
}

void RowKernel::accumulate(const Reduction& r, const std::string& kind, const std::string& total) {
  const DType dtype = draft_.graph().value(r.input).type.dtype;
  const std::string type = compute_type(dtype), zero = neutral(kind, dtype);
  const bool last = r.node == form_.reductions.back().node;
  Coords coords = row_coords(e_, r.input, r.axes, row_);
  const size_t loops = open_outer_loops(r.input, r.axes, coords);
  const Dim bound = joined(r.input, r.axes);
  const std::string n = joined_text(r.input, r.axes);
  const int64_t chunk = kChunk * stride();
  const bool chunked = !(bound.is_const() && bound.value() <= chunk);
  const bool few = bound.is_const() && bound.value() < s_.accumulators * stride();
  const int64_t count = few ? 1 : s_.accumulators;
  std::string begin = "0", end = n;
  if (chunked) {
    begin = e_.fresh("b");
    e_.open(fmt::format("for (int {0} = 0; {0} < {1}; {0} += {2})", begin, n, chunk));
    end = e_.fresh("n");
    e_.line(fmt::format("const int {} = th_min_int({} + {}, {});", end, begin, chunk, n));
  } else {
    e_.open("");
  }
  const std::string acc = e_.fresh("a"), j = e_.fresh("j");
  const auto element = [&](const std::string& column, const std::string& target) {
    const Coords at = at_column(r.input, r.axes, coords, e_.index().var(column, bound));
    const std::string v = e_.value(r.input, at);
    if (last) stash_element(at, v);
    e_.line(fmt::format("{} = {};", target, combine(kind, dtype, target, v)));
  };
  if (count == 1) {
    e_.line(fmt::format("{} {} = {};", type, acc, zero));
    e_.open(fmt::format("for (int {0} = {1}; {0} < {2}; {0} += {3})", j, plus_tid(begin), end, stride()));
    element(j, acc);
    e_.close();
    e_.line(fmt::format("{} = {};", total, combine(kind, dtype, total, acc)));
  } else {
    e_.line(fmt::format("{} {}[{}];", type, acc, count));
    e_.line("TH_UNROLL");
    e_.line(fmt::format("for (int u = 0; u < {}; ++u) {}[u] = {};", count, acc, zero));
    e_.line(fmt::format("int {} = {};", j, plus_tid(begin)));
    e_.open(
        fmt::format("for (; {0} + {1} < {2}; {0} += {3})", j, (count - 1) * stride(), end, count * stride()));
    e_.line("TH_UNROLL");
    e_.open(fmt::format("for (int u = 0; u < {}; ++u)", count));
    const std::string c = e_.fresh("c");
    e_.line(fmt::format("const int {} = {} + u * {};", c, j, stride()));
    element(c, acc + "[u]");
    e_.close();
    e_.close();
    e_.open(fmt::format("for (; {0} < {1}; {0} += {2})", j, end, stride()));
    element(j, acc + "[0]");
    e_.close();
    for (int64_t w = count / 2; w > 0; w /= 2)
      for (int64_t u = 0; u < w; ++u)
        e_.line(fmt::format(
            "{0}[{1}] = {2};", acc, u,
            combine(kind, dtype, fmt::format("{}[{}]", acc, u), fmt::format("{}[{}]", acc, u + w))));
    e_.line(fmt::format("{} = {};", total, combine(kind, dtype, total, acc + "[0]")));
  }
  e_.close();
  for (size_t k = 0; k < loops; ++k) e_.close();
}

std::string RowKernel::combine_threads(const std::string& kind, DType dtype, const std::string& partial) {
  if (stride() == 1) return partial;
  const std::string type = compute_type(dtype);
  const std::string shared = e_.local_array(type, s_.threads);
  e_.line(fmt::format("{}[TH_THREAD] = {};", shared, partial));
  e_.line("TH_BARRIER();");
  e_.open(fmt::format("for (int w = {}; w > 0; w >>= 1)", s_.threads / 2));
  const std::string a = shared + "[TH_THREAD]", b = shared + "[TH_THREAD + w]";
  e_.line(fmt::format("if (TH_THREAD < w) {} = {};", a, combine(kind, dtype, a, b)));
  e_.line("TH_BARRIER();");
  e_.close();
  const std::string all = e_.fresh("r");
  e_.line(fmt::format("const {} {} = {}[0];", type, all, shared));
  return all;
}

void RowKernel::reduce(const Reduction& r) {
  const ir::Node& node = draft_.graph().nodes[static_cast<size_t>(r.node)];
  if (node.op == Op::arg_reduce) return arg_reduce(r);
  const std::string kind = node.string_attr("kind", "sum");
  const DType dtype = draft_.graph().value(r.input).type.dtype;
  const std::string total = e_.fresh("s");
  e_.line(fmt::format("{} {} = {};", compute_type(dtype), total, neutral(kind, dtype)));
  accumulate(r, kind, total);
  std::string result = combine_threads(kind, dtype, total);
  if (kind == "mean") {
    std::vector<Index> dims;
    for (const size_t a : r.axes.inner) dims.push_back(e_.dim(r.input, static_cast<int>(a)));
    const std::string n = e_.text(e_.product(dims)), type = compute_type(dtype);
    const std::string mean = e_.fresh("r");
    const std::string text =
        is_float(dtype) ? fmt::format("{} / ({}){}", result, type, n)
                        : fmt::format("th_div_{}({}, ({}){})", compute_suffix(dtype), result, type, n);
    e_.line(fmt::format("const {} {} = {};", type, mean, text));
    result = mean;
  }
  bind_reduction(e_, r, row_, result);
}

}  // namespace

std::string arg_takes(const ir::Node& node, DType dtype, const std::string& v, const std::string& i,
                      const std::string& best, const std::string& at) {
  const char* order = node.string_attr("kind", "max") == "max" ? ">" : "<";
  const char* tie = node.int_attr("select_last", 0) != 0 ? ">" : "<";
  std::string better = fmt::format("{} {} {} || ({} == {} && {} {} {})", v, order, best, v, best, i, tie, at);
  if (is_float(dtype))
    better =
        fmt::format("{0} != {0} ? ({1} == {1} || {2} < {3}) : {1} == {1} && ({4})", v, best, i, at, better);
  return fmt::format("{} < 0 || ({})", at, better);
}

namespace {

void RowKernel::arg_threads(const ir::Node& node, DType dtype, const std::string& best,
                            const std::string& at) {
  const std::string values = e_.local_array(compute_type(dtype), s_.threads);
  const std::string places = e_.local_array("int", s_.threads);
  e_.line(fmt::format("{}[TH_THREAD] = {}; {}[TH_THREAD] = {};", values, best, places, at));
  e_.line("TH_BARRIER();");
  e_.open(fmt::format("for (int w = {}; w > 0; w >>= 1)", s_.threads / 2));
  e_.open("if (TH_THREAD < w)");
  e_.line(fmt::format("const {} v = {}[TH_THREAD + w];", compute_type(dtype), values));
  e_.line(fmt::format("const int i = {}[TH_THREAD + w];", places));
  e_.open(fmt::format("if (i >= 0 && ({}))", arg_takes(node, dtype, "v", "i", best, at)));
  e_.line(fmt::format("{} = v; {} = i;", best, at));
  e_.line(fmt::format("{}[TH_THREAD] = v; {}[TH_THREAD] = i;", values, places));
  e_.close();
  e_.close();
  e_.line("TH_BARRIER();");
  e_.close();
  e_.line(fmt::format("{} = {}[0];", at, places));
}

void RowKernel::arg_reduce(const Reduction& r) {
  const ir::Node& node = draft_.graph().nodes[static_cast<size_t>(r.node)];
  const DType dtype = draft_.graph().value(r.input).type.dtype;
  const std::string best = e_.fresh("s"), at = e_.fresh("at");
  e_.line(fmt::format("{} {} = {};", compute_type(dtype), best, neutral("sum", dtype)));
  e_.line(fmt::format("int {} = -1;", at));
  Coords coords = row_coords(e_, r.input, r.axes, row_);
  const Dim bound = joined(r.input, r.axes);
  const Index j = e_.open_loop(tid(), joined_text(r.input, r.axes), fmt::format("{}", stride()), bound);
  const Coords here = at_column(r.input, r.axes, coords, j);
  const std::string v = e_.value(r.input, here), column = e_.text(j);
  if (r.node == form_.reductions.back().node) stash_element(here, v);
  e_.line(fmt::format("if ({}) {{ {} = {}; {} = {}; }}", arg_takes(node, dtype, v, column, best, at), best, v,
                      at, column));
  e_.close();
  if (stride() > 1) arg_threads(node, dtype, best, at);
  const std::string result = e_.fresh("r");
  e_.line(fmt::format("const th_i64 {} = {};", result, at));
  bind_reduction(e_, r, row_, result);
}

void RowKernel::write(const RowOutput& output) {
  const ValueId y = draft_.graph().outputs[output.output];
  if (output.axes.flat) {
    std::vector<Index> dims;
    const Reduction& first = form_.reductions[0];
    for (const size_t a : first.axes.inner) dims.push_back(e_.dim(first.input, static_cast<int>(a)));
    const Index columns = e_.product(dims);
    const Index j = e_.open_loop(tid(), e_.text(columns), fmt::format("{}", stride()), output.axes.columns);
    const Coords coords = flat_coords(e_, y, output.axes, row_, j, columns);
    e_.store(output.output, coords, e_.value(y, coords));
    e_.close();
    return;
  }
  Coords coords = row_coords(e_, y, output.axes, row_);
  if (output.axes.inner.empty()) {
    e_.open(stride() > 1 ? "if (TH_THREAD == 0)" : "");
    e_.store(output.output, coords, e_.value(y, coords));
    e_.close();
    return;
  }
  const size_t loops = open_outer_loops(y, output.axes, coords);
  const Index j =
      e_.open_loop(tid(), joined_text(y, output.axes), fmt::format("{}", stride()), joined(y, output.axes));
  coords = at_column(y, output.axes, coords, j);
  if (stashed_) {
    const ValueId kept = form_.reductions.back().input;
    e_.bind(kept, [this, y, coords, kept](const Coords& at) {
      if (!(at == coords)) throw NotMatched{"the kept value is read at other elements"};
      return e_.load(draft_.output_name(form_.outputs[0].output), draft_.graph().value(kept).type.dtype,
                     e_.text(e_.index().linear(coords, e_.dims(y))));
    });
  }
  e_.store(output.output, coords, e_.value(y, coords));
  e_.close();
  for (size_t k = 0; k < loops; ++k) e_.close();
}

KernelDraft RowKernel::make() {
  stashed_ = s_.stash;
  const RowForm& form = form_;
  const std::string rows =
      e_.text(e_.index().extent(form.rows, [form](const Facts& facts) { return form.row_count(facts); }));
  row_ = row_variable(e_, form, "row");
  bool loop = false;
  if (e_.index().is_const(row_)) {
    e_.open(s_.block || s_.threads == 1 ? "" : "if (TH_THREAD == 0)");
  } else if (s_.block) {
    e_.line("const int row = TH_BLOCK;");
  } else {
    const std::string first =
        s_.threads == 1 ? "TH_BLOCK" : fmt::format("(TH_BLOCK * {} + TH_THREAD)", s_.threads);
    e_.line(fmt::format("const int r0 = {} * {};", first, s_.rows));
    e_.line(fmt::format("const int r1 = th_min_int(r0 + {}, {});", s_.rows, rows));
    e_.open("for (int row = r0; row < r1; ++row)");
    loop = true;
  }
  for (const auto& r : form_.reductions) reduce(r);
  for (const auto& output : form_.outputs) write(output);
  if (loop || e_.index().is_const(row_)) e_.close();
  const int64_t per_block = s_.block ? 1 : s_.threads * s_.rows;
  return e_.finish(
      [form, per_block, threads = s_.threads](const Facts& facts, artifact::Launch& launch) {
        set_grid(launch, (form.row_count(facts) + per_block - 1) / per_block, threads);
      },
      s_.threads);
}

}  // namespace

KernelDraft row_kernel(ProgramDraft& draft, const RowForm& form, const RowSchedule& schedule,
                       const std::string& symbol) {
  return RowKernel(draft, form, schedule, symbol).make();
}

bool can_stash(const ProgramDraft& draft, const RowForm& form) {
  const ir::Graph& graph = draft.graph();
  const Reduction& last = form.reductions.back();
  const ir::Value& kept = graph.value(last.input);
  // Keeping pays only where the value is computed and an output of the same type and place exists.
  if (kept.producer < 0 || form.outputs.size() != 1) return false;
  const ir::Value& y = graph.value(graph.outputs[form.outputs[0].output]);
  const RowAxes& a = form.outputs[0].axes;
  if (a.flat || !(y.type == kept.type) || y.type.dtype == DType::kF16 || y.type.dtype == DType::kBF16 ||
      y.type.dtype == DType::kBool || a.inner != last.axes.inner || a.cut != last.axes.cut)
    return false;
  try {
    ProgramDraft probe(draft.workload());
    RowSchedule schedule;
    schedule.stash = true;
    const KernelDraft kernel = row_kernel(probe, form, schedule, "probe");
    const std::string name = probe.output_name(form.outputs[0].output);
    return kernel.text.find("= " + name + "[") != std::string::npos;  // it is read again
  } catch (const NotMatched&) {
    return false;
  }
}

}  // namespace thrice::family
