// View operators of the emitter: each turns coordinates of its result into coordinates of an operand.
#include <fmt/format.h>
#include <thrice/status.h>

#include "family/emitter.h"
#include "family/scalar.h"

namespace thrice::family {

using ir::Dim;
using ir::Op;
using ir::ValueId;

namespace {

std::optional<std::vector<int64_t>> constant_ints(const ir::Graph& graph, ValueId value) {
  const auto& constant = graph.value(value).constant;
  if (!constant) return std::nullopt;
  std::vector<int64_t> ints;
  for (int64_t i = 0; i < constant->size(); ++i) ints.push_back(constant->as_int(i));
  return ints;
}

// Axes of slice and pad: the attribute, or all from the first.
std::vector<int64_t> axes_of(const ir::Node& node, size_t count) {
  if (node.has_attr("axes")) return node.ints_attr("axes");
  std::vector<int64_t> axes;
  for (size_t a = 0; a < count; ++a) axes.push_back(static_cast<int64_t>(a));
  return axes;
}

Source known_element(ValueId value, size_t element) {
  return [value, element](const Facts& facts) {
    return known_ints(facts[static_cast<size_t>(value)]).at(element);
  };
}

}  // namespace

std::string Emitter::view(const ir::Node& node, ValueId result, const Coords& coords) {
  const ValueId x = node.inputs[0];
  const auto& shape = graph().value(result).type.shape;
  if (lanes_ > 0 && node.op != Op::reshape && node.op != Op::transpose && node.op != Op::slice &&
      node.op != Op::expand)
    throw NotMatched{fmt::format("{} does not keep lanes together", ir::op_name(node.op))};
  switch (node.op) {
    case Op::iota: {
      const auto axis = static_cast<size_t>(node.int_attr("axis", 0));
      return declare(DType::kI64, fmt::format("(th_i64){}", text(coords[axis])));
    }
    case Op::reshape:
      return value(x, reshape(x, result, coords));
    case Op::transpose: {
      const auto& perm = node.ints_attr("perm");
      Coords inner(coords.size());
      for (size_t k = 0; k < perm.size(); ++k) inner[static_cast<size_t>(perm[k])] = coords[k];
      return value(x, inner);
    }
    case Op::slice:
      return value(x, slice(node, coords));
    case Op::expand:
      return value(x, broadcast(x, coords, shape));
    case Op::concat:
      return concat(node, result, coords);
    case Op::pad:
      return pad(node, result, coords);
    case Op::tile: {
      Coords inner = coords;
      const auto& from = graph().value(x).type.shape;
      for (size_t a = 0; a < coords.size(); ++a)
        if (!(from[a] == shape[a])) inner[a] = index_.mod(coords[a], dim(x, static_cast<int>(a)));
      return value(x, inner);
    }
    case Op::gather: {
      const auto axis = static_cast<size_t>(node.int_attr("axis", 0));
      const size_t rank = graph().value(node.inputs[1]).type.shape.size();
      const auto begin = coords.begin() + static_cast<std::ptrdiff_t>(axis);
      const Coords at(begin, begin + static_cast<std::ptrdiff_t>(rank));
      Coords inner(coords.begin(), begin);
      inner.push_back(gather_index(node.inputs[1], at, dim(x, static_cast<int>(axis))));
      inner.insert(inner.end(), begin + static_cast<std::ptrdiff_t>(rank), coords.end());
      return value(x, inner);
    }
    case Op::gather_elements: {
      const auto axis = static_cast<size_t>(node.int_attr("axis", 0));
      Coords inner = coords;
      inner[axis] = gather_index(node.inputs[1], coords, dim(x, static_cast<int>(axis)));
      return value(x, inner);
    }
    case Op::gather_nd:
      return value(x, gather_nd(node, coords));
    default:
      throw NotMatched{fmt::format("no kernel text for view {}", ir::op_name(node.op))};
  }
}

// Groups axes whose products are provably equal; within a group coordinates are joined and split again.
Coords Emitter::reshape(ValueId from, ValueId to, const Coords& coords) {
  const auto& f = graph().value(from).type.shape;
  const auto& t = graph().value(to).type.shape;
  const std::vector<Index> fd = dims(from), td = dims(to);
  const auto is_one = [](const Dim& d) { return d.is_const() && d.value() == 1; };
  Coords inner(f.size());
  size_t i = 0, j = 0;
  while (i < f.size()) {
    if (is_one(f[i])) {
      inner[i++] = constant(0);
      continue;
    }
    if (j < t.size() && is_one(t[j])) {
      ++j;
      continue;
    }
    size_t ie = f.size(), je = t.size();
    bool found = false;
    for (size_t total = 2; !found && total <= (f.size() - i) + (t.size() - j); ++total)
      for (size_t a = 1; !found && a < total && i + a <= f.size(); ++a) {
        const size_t b = total - a;
        if (j + b > t.size()) continue;
        Dim pf(1), pt(1);
        for (size_t k = 0; k < a; ++k) pf = pf * f[i + k];
        for (size_t k = 0; k < b; ++k) pt = pt * t[j + k];
        if (pf == pt) {
          found = true;
          ie = i + a;
          je = j + b;
        }
      }
    const auto cut = [](const auto& all, size_t b, size_t e) {
      return std::vector<Index>(all.begin() + static_cast<std::ptrdiff_t>(b),
                                all.begin() + static_cast<std::ptrdiff_t>(e));
    };
    if (ie == i + 1 && je == j + 1) {
      inner[i] = coords[j];
    } else {
      const Index flat = index_.linear(cut(coords, j, je), cut(td, j, je));
      const Coords parts = index_.split(flat, cut(fd, i, ie));
      for (size_t k = 0; k < parts.size(); ++k) inner[i + k] = parts[k];
    }
    i = ie;
    j = je;
  }
  return inner;
}

// Integer `element` of a shape operand after `source` has resolved it: a literal where the caller knows that
// the constant itself is the resolved value.
Index Emitter::operand_int(const ir::Node& node, size_t operand, size_t element, const std::string& what,
                           const Source& source, bool literal) {
  if (literal) return constant((*constant_ints(graph(), node.inputs[operand]))[element]);
  return index_.extent(fmt::format("{} of {} [{}]", what, node.outputs[0], element), source);
}

Coords Emitter::slice(const ir::Node& node, const Coords& coords) {
  const ValueId x = node.inputs[0];
  const auto starts = constant_ints(graph(), node.inputs[1]);
  const auto ends = constant_ints(graph(), node.inputs[2]);
  const bool has_steps = node.inputs.size() > 3 && node.inputs[3] != ir::kNoValue;
  const auto steps = has_steps ? constant_ints(graph(), node.inputs[3]) : std::nullopt;
  const auto& shape = graph().value(node.inputs[1]).type.shape;
  const auto axes = axes_of(node, static_cast<size_t>(shape[0].value()));
  Coords inner = coords;
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto axis = static_cast<size_t>(axes[k]);
    const Source range = [node, x, axis, k, has_steps](const Facts& facts) {
      const auto at = [&](size_t operand) {
        return known_ints(facts[static_cast<size_t>(node.inputs[operand])]).at(k);
      };
      return ir::resolve_slice(extent_at(facts, x, static_cast<int>(axis)), at(1), at(2),
                               has_steps ? at(3) : 1)
          .start;
    };
    Index step = constant(1);
    if (has_steps)
      step = operand_int(node, 3, k, "slice step", known_element(node.inputs[3], k), steps.has_value());
    const bool forward = !has_steps || (steps && (*steps)[k] > 0);
    // A non-negative start of a forward slice is itself, or the slice is empty.
    Index start;
    const Dim& extent = graph().value(x).type.shape[axis];
    if (starts && forward && (*starts)[k] >= 0 && (*starts)[k] < (int64_t{1} << 31))
      start = constant((*starts)[k]);
    else if (starts && ends && (!has_steps || steps) && extent.is_const())
      start = constant(
          ir::resolve_slice(extent.value(), (*starts)[k], (*ends)[k], has_steps ? (*steps)[k] : 1).start);
    else
      start = index_.extent(fmt::format("slice start of {} [{}]", node.outputs[0], k), range);
    inner[axis] = index_.add(index_.mul(coords[axis], step), start);
  }
  return inner;
}

std::string Emitter::concat(const ir::Node& node, ValueId result, const Coords& coords) {
  const auto axis = static_cast<size_t>(node.int_attr("axis"));
  const DType dtype = graph().value(result).type.dtype;
  const size_t count = node.inputs.size();
  if (count == 1) return value(node.inputs[0], coords);
  // Where each operand ends along the axis.
  std::vector<Index> ends{constant(0)};
  Dim sum(0);
  for (size_t k = 0; k + 1 < count; ++k) {
    sum = sum + graph().value(node.inputs[k]).type.shape[axis];
    const std::vector<ValueId> before(node.inputs.begin(),
                                      node.inputs.begin() + static_cast<std::ptrdiff_t>(k + 1));
    ends.push_back(index_.extent(sum, [before, axis](const Facts& facts) {
      int64_t n = 0;
      for (const ValueId v : before) n += extent_at(facts, v, static_cast<int>(axis));
      return n;
    }));
  }
  const std::string c = text(coords[axis]);
  std::vector<std::string> limits;
  for (size_t k = 0; k + 1 < count; ++k) limits.push_back(text(ends[k + 1]));
  const std::string name = fresh("v");
  line(fmt::format("{} {};", compute_type(dtype), name));
  for (size_t k = 0; k < count; ++k) {
    if (k == 0)
      open(fmt::format("if ({} < {})", c, limits[0]));
    else if (k + 1 < count)
      open(fmt::format("else if ({} < {})", c, limits[k]));
    else
      open("else");
    Coords inner = coords;
    inner[axis] = index_.sub(coords[axis], ends[k]);
    line(fmt::format("{} = {};", name, value(node.inputs[k], inner)));
    close();
  }
  return name;
}

std::string Emitter::pad(const ir::Node& node, ValueId result, const Coords& coords) {
  const ValueId x = node.inputs[0];
  const std::string mode = node.string_attr("mode", "constant");
  const auto pads = constant_ints(graph(), node.inputs[1]);
  const auto& pads_shape = graph().value(node.inputs[1]).type.shape;
  const auto axes = axes_of(node, static_cast<size_t>(pads_shape[0].value()) / 2);
  Coords inner = coords;
  std::string inside;
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto axis = static_cast<size_t>(axes[k]);
    const Index begin =
        operand_int(node, 1, k, "pad begin", known_element(node.inputs[1], k), pads.has_value());
    const bool before = !pads || (*pads)[k] > 0, after = !pads || (*pads)[axes.size() + k] > 0;
    inner[axis] = index_.sub(coords[axis], begin);
    if (!before && !after) continue;
    const std::string c = text(inner[axis]), n = text(dim(x, static_cast<int>(axis)));
    if (mode == "constant") {
      if (before) inside += fmt::format("{}{} >= 0", inside.empty() ? "" : " && ", c);
      if (after) inside += fmt::format("{}{} < {}", inside.empty() ? "" : " && ", c, n);
    } else {
      const std::string function = mode == "edge"      ? "th_clamp"
                                   : mode == "reflect" ? "th_reflect"
                                   : mode == "wrap"    ? "th_wrap"
                                                       : "";
      if (function.empty()) throw NotMatched{"unknown pad mode '" + mode + "'"};
      inner[axis] = declare_int(fmt::format("{}({}, {})", function, c, n));
    }
  }
  if (inside.empty()) return value(x, inner);
  const DType dtype = graph().value(result).type.dtype;
  std::string outside = is_float(dtype) ? float_literal(dtype, 0) : int_literal(dtype, 0);
  if (node.inputs.size() > 2 && node.inputs[2] != ir::kNoValue)
    outside = value(node.inputs[2], Coords(graph().value(node.inputs[2]).type.shape.size(), constant(0)));
  const std::string name = fresh("v");
  line(fmt::format("{} {} = {};", compute_type(dtype), name, outside));
  open(fmt::format("if ({})", inside));
  line(fmt::format("{} = {};", name, value(x, inner)));
  close();
  return name;
}

Index Emitter::gather_index(ValueId indices, const Coords& at, Index extent) {
  const auto& constant_index = graph().value(indices).constant;
  if (constant_index && constant_index->size() == 1 && index_.is_const(extent)) {
    const int64_t n = index_.node(extent).value;
    int64_t i = constant_index->as_int(0);
    if (i < 0) i += n;
    return constant(std::max<int64_t>(0, std::min(i, n - 1)));
  }
  const std::string i = value(indices, at);
  const std::string n = text(extent);
  return declare_int(fmt::format("th_index((th_i64){}, {})", i, n));
}

Coords Emitter::gather_nd(const ir::Node& node, const Coords& coords) {
  const ValueId x = node.inputs[0], indices = node.inputs[1];
  const auto batch = static_cast<size_t>(node.int_attr("batch_dims", 0));
  const auto& shape = graph().value(indices).type.shape;
  if (!shape.back().is_const()) throw NotMatched{"gather_nd with an index length known only at run time"};
  const auto depth = static_cast<size_t>(shape.back().value());
  Coords at(coords.begin(), coords.begin() + static_cast<std::ptrdiff_t>(shape.size() - 1));
  Coords inner(coords.begin(), coords.begin() + static_cast<std::ptrdiff_t>(batch));
  at.push_back({});
  for (size_t k = 0; k < depth; ++k) {
    at.back() = constant(static_cast<int64_t>(k));
    inner.push_back(gather_index(indices, at, dim(x, static_cast<int>(batch + k))));
  }
  inner.insert(inner.end(), coords.begin() + static_cast<std::ptrdiff_t>(shape.size() - 1), coords.end());
  return inner;
}

}  // namespace thrice::family
