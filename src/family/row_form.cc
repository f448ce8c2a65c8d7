#include "family/row_form.h"

#include <fmt/format.h>

#include <algorithm>

namespace thrice::family {

using ir::Dim;
using ir::NodeId;
using ir::Op;
using ir::ValueId;

bool is_reduction(const ir::Node& node) {
  return node.op == Op::arg_reduce || (node.op == Op::reduce && !node.ints_attr("axes").empty());
}

std::set<NodeId> reduction_nodes(const ir::Graph& graph) {
  std::set<NodeId> nodes;
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (is_reduction(graph.nodes[n])) nodes.insert(static_cast<NodeId>(n));
  return nodes;
}

namespace {

std::vector<int64_t> reduced_axes(const ir::Node& node) {
  if (node.op == Op::arg_reduce) return {node.int_attr("axis")};
  return node.ints_attr("axes");
}

Dim product(const ir::Shape& shape, const std::vector<size_t>& axes) {
  Dim all(1);
  for (const size_t a : axes) all = all * shape[a];
  return all;
}

// Evaluates `value` over the row with the inner axes from `cut` on joined; true when no index needs a
// division.
bool joins(const ProgramDraft& original, const RowForm& form, ValueId value, const RowAxes& axes,
           size_t cut) {
  ProgramDraft draft(original.workload());
  Emitter e(draft, "probe");
  const Index row = row_variable(e, form, "row");
  for (const auto& r : form.reductions) bind_reduction(e, r, row, "0");
  Coords coords = row_coords(e, value, axes, row);
  for (size_t k = 0; k < cut; ++k)
    coords[axes.inner[k]] =
        e.index().var(fmt::format("n{}", k), e.graph().value(value).type.shape[axes.inner[k]]);
  Dim bound(1);
  std::vector<Index> dims;
  for (size_t k = cut; k < axes.inner.size(); ++k) {
    bound = bound * e.graph().value(value).type.shape[axes.inner[k]];
    dims.push_back(e.dim(value, static_cast<int>(axes.inner[k])));
  }
  const Index j = e.index().var("j", bound);
  const Coords inner = e.index().split(j, dims);
  for (size_t k = cut; k < axes.inner.size(); ++k) coords[axes.inner[k]] = inner[k - cut];
  e.value(value, coords);
  // The value itself may be an output: its offset counts too.
  e.text(e.index().linear(coords, e.dims(value)));
  return !e.divides(j);
}

// A flat output: NotMatched where its rows do not lead back to the reductions'.
void try_flat(const ProgramDraft& original, const RowForm& form, ValueId value, const RowAxes& axes) {
  ProgramDraft draft(original.workload());
  Emitter e(draft, "probe");
  const Index row = row_variable(e, form, "row");
  for (const auto& r : form.reductions) bind_reduction(e, r, row, "0");
  const Index columns = e.index().extent(axes.columns, [](const Facts&) { return int64_t{1}; });
  e.value(value, flat_coords(e, value, axes, row, e.index().var("j", axes.columns), columns));
}

void choose_cut(const ProgramDraft& draft, const RowForm& form, ValueId value, RowAxes& axes) {
  axes.cut = 0;
  while (axes.cut + 1 < axes.inner.size() && !joins(draft, form, value, axes, axes.cut)) ++axes.cut;
  if (axes.inner.size() <= 1) joins(draft, form, value, axes, 0);  // for its NotMatched
}

RowOutput place_output(const ProgramDraft& draft, const RowForm& form, size_t output) {
  const ValueId y = draft.graph().outputs[output];
  const auto& shape = draft.graph().value(y).type.shape;
  std::vector<RowAxes> candidates;
  for (size_t cut = shape.size() + 1; cut-- > 0;) {
    RowAxes axes;
    for (size_t a = 0; a < shape.size(); ++a) (a < cut ? axes.outer : axes.inner).push_back(a);
    if (product(shape, axes.outer) == form.rows) candidates.push_back(axes);
  }
  for (const auto& r : form.reductions)
    if (draft.graph().value(r.input).type.shape == shape) candidates.push_back(r.axes);
  std::string reason = "an output does not follow the rows of the reduction";
  for (RowAxes& axes : candidates) {
    try {
      choose_cut(draft, form, y, axes);
      return {output, axes};
    } catch (const NotMatched& refused) {
      reason = refused.reason;
    }
  }
  RowAxes flat;
  flat.flat = true;
  flat.columns =
      product(draft.graph().value(form.reductions[0].input).type.shape, form.reductions[0].axes.inner);
  for (size_t a = 0; a < shape.size(); ++a) flat.outer.push_back(a);
  if (product(shape, flat.outer) == form.rows * flat.columns) {
    try_flat(draft, form, y, flat);
    return {output, flat};
  }
  throw NotMatched{reason};
}

}  // namespace

Coords flat_coords(Emitter& e, ValueId value, const RowAxes&, Index row, Index column, Index columns) {
  return e.split(e.index().add(e.index().mul(row, columns), column), value);
}

Index row_variable(Emitter& e, const RowForm& form, const std::string& name) {
  if (form.rows.is_const() && form.rows.value() == 1) return e.constant(0);
  return e.index().var(name, form.rows);
}

Coords row_coords(Emitter& e, ValueId value, const RowAxes& axes, Index row) {
  std::vector<Index> dims;
  for (const size_t a : axes.outer) dims.push_back(e.dim(value, static_cast<int>(a)));
  const Coords outer = e.index().split(row, dims);
  Coords coords(axes.outer.size() + axes.inner.size());
  for (size_t k = 0; k < outer.size(); ++k) coords[axes.outer[k]] = outer[k];
  return coords;
}

void bind_reduction(Emitter& e, const Reduction& reduction, Index row, const std::string& text) {
  const ir::Node& node = e.graph().nodes[static_cast<size_t>(reduction.node)];
  const bool keep = node.int_attr("keepdims", 1) != 0;
  e.bind(reduction.result, [&e, reduction, row, text, keep](const Coords& coords) {
    Coords outer;
    std::vector<Index> dims;
    for (size_t k = 0; k < reduction.axes.outer.size(); ++k) {
      const size_t axis = reduction.axes.outer[k];
      outer.push_back(coords[keep ? axis : k]);
      dims.push_back(e.dim(reduction.input, static_cast<int>(axis)));
    }
    if (!(e.index().linear(outer, dims) == row))
      throw NotMatched{"the result of a reduction is read at other rows than its own"};
    return text;
  });
}

int64_t RowForm::row_count(const Facts& facts) const {
  int64_t n = 1;
  for (const size_t a : reductions[0].axes.outer)
    n *= extent_at(facts, reductions[0].input, static_cast<int>(a));
  return n;
}

int64_t RowForm::column_count(const Facts& facts) const {
  int64_t n = 1;
  for (const size_t a : reductions[0].axes.inner)
    n *= extent_at(facts, reductions[0].input, static_cast<int>(a));
  return n;
}

RowForm analyse_rows(const ProgramDraft& draft) {
  const ir::Graph& graph = draft.graph();
  RowForm form;
  for (const NodeId id : reduction_nodes(graph)) {
    const ir::Node& node = graph.nodes[static_cast<size_t>(id)];
    Reduction r;
    r.node = id;
    r.input = node.inputs[0];
    r.result = node.outputs[0];
    const auto& shape = graph.value(r.input).type.shape;
    const auto axes = reduced_axes(node);
    for (size_t a = 0; a < shape.size(); ++a) {
      const bool reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(a)) != axes.end();
      (reduced ? r.axes.inner : r.axes.outer).push_back(a);
    }
    const Dim rows = product(shape, r.axes.outer);
    if (form.reductions.empty()) form.rows = rows;
    if (!(rows == form.rows)) throw NotMatched{"reductions over different numbers of rows"};
    form.reductions.push_back(std::move(r));
  }
  if (form.reductions.empty()) throw NotMatched{"there is no reduction"};
  for (auto& r : form.reductions) choose_cut(draft, form, r.input, r.axes);
  for (size_t o = 0; o < graph.outputs.size(); ++o) form.outputs.push_back(place_output(draft, form, o));
  return form;
}

}  // namespace thrice::family
