// Types of views.
#include <algorithm>

#include "ir/infer_rules.h"

namespace thrice::ir {
namespace {

// The extents that a shape operand asks for; unknown ones become fresh symbols.
Shape wanted_shape(const InferContext& c, size_t operand) {
  const int64_t length = c.shape_operand_length(operand);
  if (auto known = c.known(operand)) return *known;
  Shape shape;
  for (int64_t i = 0; i < length; ++i) shape.push_back(c.fresh(0, static_cast<size_t>(i)));
  return shape;
}

// The extent that -1 stands for. Where both sides have zeros these are left out alike, so that [s, 4] -> [s,
// -1] gives 4 for s = 0 too.
Dim rest_extent(const InferContext& c, const Shape& from, const Shape& to, size_t hole) {
  Dim all(1), others(1), zeros(0);
  for (const Dim& d : from) {
    if (d == Dim(0))
      zeros = zeros + 1;
    else
      all = all * d;
  }
  for (size_t i = 0; i < to.size(); ++i) {
    if (i == hole) continue;
    if (to[i] == Dim(0))
      zeros = zeros - 1;
    else
      others = others * to[i];
  }
  if (zeros.value() > 0) return 0;
  const Dim extent = floor_div(all, others);
  if (extent.is_const() && extent * others != all && is_static(from) && is_static(to))
    c.fail(fmt::format("{} elements cannot have shape {}", num_elements(from).str(), shape_str(to)));
  return extent;
}

Shape reshape(const InferContext& c) {
  const Shape& from = c.shape(0);
  Shape to = wanted_shape(c, 1);
  const bool known = c.known(1).has_value();
  std::optional<size_t> hole;
  for (size_t i = 0; i < to.size(); ++i) {
    if (!to[i].is_const()) continue;
    if (to[i] == Dim(0) && c.node.int_attr("allowzero", 0) == 0) {
      if (i >= from.size())
        c.fail(fmt::format("extent {} of the new shape is 0 (keep), but the operand has rank {}", i,
                           from.size()));
      to[i] = from[i];
    } else if (to[i] == Dim(-1)) {
      c.require(!hole, "the new shape has more than one -1");
      hole = i;
    }
  }
  if (hole) to[*hole] = rest_extent(c, from, to, *hole);
  if (known && is_static(from) && is_static(to) && num_elements(from) != num_elements(to))
    c.fail(fmt::format("shape {} cannot become {}", shape_str(from), shape_str(to)));
  return to;
}

Shape transpose(const InferContext& c) {
  const std::vector<int64_t> perm = c.ints("perm", c.shape(0).size(), 0);
  Shape shape;
  std::vector<bool> seen(perm.size());
  for (int64_t p : perm) {
    c.require(p >= 0 && p < c.rank(0) && !seen[static_cast<size_t>(p)], "perm is no permutation of the axes");
    seen[static_cast<size_t>(p)] = true;
    shape.push_back(c.shape(0)[static_cast<size_t>(p)]);
  }
  return shape;
}

// Numbers this large mean "to the end" in ONNX; no extent comes near them.
constexpr int64_t kFar = int64_t{1} << 31;

bool is_negative(const Dim& d) { return d.is_const() ? d.value() < 0 : is_nonnegative(Dim(-1) - d); }

// Length of x[start:end:step] on a symbolic extent, or nullopt where the sign of a bound is not known. Only
// the clamps that can matter are written down: a start beyond the end gives a negative length, which becomes
// 0.
std::optional<Dim> slice_length(const Dim& extent, const Dim& start, const Dim& end, int64_t step) {
  const bool from_front = is_nonnegative(start), from_back = is_negative(start);
  const bool end_front = is_nonnegative(end), end_back = is_negative(end);
  if ((!from_front && !from_back) || (!end_front && !end_back)) return std::nullopt;
  const bool far_end = end.is_const() && (end.value() >= kFar || end.value() <= -kFar);
  const bool far_start = start.is_const() && (start.value() >= kFar || start.value() <= -kFar);
  Dim distance;
  if (step > 0) {
    const Dim last = far_end     ? (end_front ? extent : Dim(0))
                     : end_front ? dim_min(end, extent)
                                 : extent + end;
    if (from_back && !far_start && last == extent) {
      distance = dim_min(Dim(0) - start, extent);
    } else {
      const Dim first = far_start    ? (from_front ? extent : Dim(0))
                        : from_front ? start
                                     : dim_max(extent + start, 0);
      distance = last - first;
    }
  } else {
    const Dim first = far_start    ? (from_front ? extent - 1 : Dim(0))
                      : from_front ? dim_min(start, extent - 1)
                                   : dim_max(extent + start, 0);
    const Dim last = far_end     ? (end_front ? extent - 1 : Dim(-1))
                     : end_front ? end
                                 : dim_max(extent + end, -1);
    distance = first - last;
  }
  // Backward from a start before the first element of a non-empty axis still takes element 0 (ONNX clamps to
  // 0); on an empty axis it takes none: bounded by the extent below.
  const Dim length = dim_max(ceil_div(distance, step > 0 ? step : -step), 0);
  return step < 0 ? dim_min(length, extent) : length;
}

Shape slice(const InferContext& c) {
  Shape shape = c.shape(0);
  const std::vector<int64_t>& axes = c.node.ints_attr("axes");
  for (size_t operand = 1; operand <= 3; ++operand)
    if (c.shape_operand_length(operand) != static_cast<int64_t>(axes.size()))
      c.fail(fmt::format("operand {} and axes differ in length", operand));
  const auto starts = c.known(1), ends = c.known(2), steps = c.known(3);
  for (size_t i = 0; i < axes.size(); ++i) {
    c.require(axes[i] >= 0 && axes[i] < c.rank(0), "an axis is outside the rank");
    Dim& extent = shape[static_cast<size_t>(axes[i])];
    std::optional<Dim> length;
    if (starts && ends && steps && (*steps)[i].is_const()) {
      const Dim &start = (*starts)[i], &end = (*ends)[i];
      const int64_t step = (*steps)[i].value();
      c.require(step != 0, "a step is zero");
      if (extent.is_const() && start.is_const() && end.is_const())
        length = resolve_slice(extent.value(), start.value(), end.value(), step).length;
      else
        length = slice_length(extent, start, end, step);
    }
    extent = length ? *length : c.fresh(0, static_cast<size_t>(axes[i]));
  }
  return shape;
}

Shape concat(const InferContext& c) {
  Shape shape = c.shape(0);
  const size_t axis = c.axis("axis", c.rank(0));
  for (size_t i = 1; i < c.operands.size(); ++i) {
    c.require_same_dtype(0, i);
    const Shape& other = c.shape(i);
    c.require(other.size() == shape.size(), "operands differ in rank");
    for (size_t a = 0; a < shape.size(); ++a)
      shape[a] = a == axis ? shape[a] + other[a] : unify(c, shape[a], other[a]);
  }
  return shape;
}

Shape pad(const InferContext& c) {
  Shape shape = c.shape(0);
  const std::vector<int64_t>& axes = c.node.ints_attr("axes");
  if (c.shape_operand_length(1) != static_cast<int64_t>(2 * axes.size()))
    c.fail(fmt::format("pads has {} entries for {} axes", c.shape_operand_length(1), axes.size()));
  const auto pads = c.known(1);
  for (size_t i = 0; i < axes.size(); ++i) {
    c.require(axes[i] >= 0 && axes[i] < c.rank(0), "an axis is outside the rank");
    Dim& extent = shape[static_cast<size_t>(axes[i])];
    extent = pads ? extent + (*pads)[i] + (*pads)[i + axes.size()] : c.fresh(0, static_cast<size_t>(axes[i]));
  }
  return shape;
}

Shape tile(const InferContext& c) {
  Shape shape = c.shape(0);
  c.require(c.shape_operand_length(1) == c.rank(0), "repeats and rank differ");
  const auto repeats = c.known(1);
  for (size_t i = 0; i < shape.size(); ++i) shape[i] = repeats ? shape[i] * (*repeats)[i] : c.fresh(0, i);
  return shape;
}

void require_indices(const InferContext& c, size_t i) {
  c.require(c.dtype(i) == DType::kI64 || c.dtype(i) == DType::kI32, "indices are not i32 or i64");
}

Shape gather(const InferContext& c) {
  require_indices(c, 1);
  const Shape &x = c.shape(0), &indices = c.shape(1);
  const size_t axis = c.axis("axis", c.rank(0));
  Shape shape(x.begin(), x.begin() + static_cast<int64_t>(axis));
  shape.insert(shape.end(), indices.begin(), indices.end());
  shape.insert(shape.end(), x.begin() + static_cast<int64_t>(axis) + 1, x.end());
  return shape;
}

Shape gather_elements(const InferContext& c) {
  require_indices(c, 1);
  c.axis("axis", c.rank(0));
  c.require(c.rank(0) == c.rank(1), "indices and data differ in rank");
  return c.shape(1);
}

Shape gather_nd(const InferContext& c) {
  require_indices(c, 1);
  const Shape &x = c.shape(0), &indices = c.shape(1);
  const int64_t batch = c.node.int_attr("batch_dims", 0);
  c.require(!indices.empty() && batch >= 0 && batch < c.rank(1),
            "batch_dims is outside the rank of the indices");
  if (!indices.back().is_const())
    throw Error(Code::kUnsupported,
                "gather_nd: the length of the index tuples (last extent) is not a number");
  const int64_t tuple = indices.back().value();
  c.require(tuple >= 0 && batch + tuple <= c.rank(0), "the index tuples are longer than the rank");
  Shape shape(indices.begin(), indices.end() - 1);
  for (int64_t i = 0; i < batch; ++i)
    shape[static_cast<size_t>(i)] = unify(c, shape[static_cast<size_t>(i)], x[static_cast<size_t>(i)]);
  shape.insert(shape.end(), x.begin() + batch + tuple, x.end());
  return shape;
}

Shape view_shape(const InferContext& c) {
  switch (c.node.op) {
    case Op::iota: {
      Shape shape = wanted_shape(c, 0);
      c.axis("axis", static_cast<int64_t>(shape.size()));
      return shape;
    }
    case Op::reshape:
      return reshape(c);
    case Op::transpose:
      return transpose(c);
    case Op::slice:
      return slice(c);
    case Op::expand:
      return broadcast_shapes(c, c.shape(0), wanted_shape(c, 1));
    case Op::concat:
      return concat(c);
    case Op::pad:
      return pad(c);
    case Op::tile:
      return tile(c);
    case Op::gather:
      return gather(c);
    case Op::gather_elements:
      return gather_elements(c);
    case Op::gather_nd:
      return gather_nd(c);
    default:
      throw Error(Code::kInternal, fmt::format("{} is no view", op_name(c.node.op)));
  }
}

}  // namespace

std::vector<Fact> infer_view(const InferContext& c) {
  const DType dtype = c.node.op == Op::iota ? DType::kI64 : c.dtype(0);
  return {Fact{{dtype, view_shape(c)}, nullptr, std::nullopt}};
}

}  // namespace thrice::ir
