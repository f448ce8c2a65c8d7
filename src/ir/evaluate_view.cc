// Views: most of them are one index map an axis.
#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <numeric>

#include "ir/evaluate_groups.h"
#include "ir/evaluate_strides.h"
#include "ir/infer.h"

namespace thrice::ir {
namespace {

constexpr int64_t kFill = -1;  // an index map's entry that reads no element but the fill value

using AxisMap = std::vector<int64_t>;  // index along the input axis for each index along the output axis

AxisMap identity_map(int64_t extent) {
  AxisMap map(static_cast<size_t>(extent));
  std::iota(map.begin(), map.end(), int64_t{0});
  return map;
}

bool is_identity(const AxisMap& map, int64_t extent) {
  if (static_cast<int64_t>(map.size()) != extent) return false;
  for (size_t i = 0; i < map.size(); ++i)
    if (map[i] != static_cast<int64_t>(i)) return false;
  return true;
}

// Copies x read through one map an axis; trailing axes that are read whole go as blocks.
ArrayPtr read_through(const Array& x, const std::vector<AxisMap>& maps, const Array* fill = nullptr) {
  std::vector<int64_t> shape;
  for (const AxisMap& m : maps) shape.push_back(static_cast<int64_t>(m.size()));
  auto out = make_array(x.dtype, shape);
  if (out->size() == 0) return out;
  size_t rank = maps.size();
  int64_t block = 1;
  while (rank > 0 && is_identity(maps[rank - 1], x.shape[rank - 1])) block *= x.shape[--rank];
  const std::vector<int64_t> strides = row_major_strides(x.shape);
  on_storage(*out, x, [&](auto& to, const auto& from) {
    using Element = std::decay_t<decltype(from[0])>;
    Element filling{};
    if (fill != nullptr) {
      if constexpr (std::is_same_v<Element, double>)
        filling = fill->f.at(0);
      else if constexpr (std::is_same_v<Element, int64_t>)
        filling = fill->i.at(0);
    }
    const auto walk = [&](const auto& self, size_t axis, int64_t base, auto& o) -> void {
      if (axis == rank) {
        if (base < 0)
          o = std::fill_n(o, block, filling);
        else
          o = std::copy_n(from.begin() + base, block, o);
        return;
      }
      if (axis + 1 == rank && block == 1) {  // the common innermost loop without recursion
        for (int64_t index : maps[axis])
          *o++ =
              base < 0 || index == kFill ? filling : from[static_cast<size_t>(base + index * strides[axis])];
        return;
      }
      for (int64_t index : maps[axis])
        self(self, axis + 1, base < 0 || index == kFill ? -1 : base + index * strides[axis], o);
    };
    // Split by the first axis, or the first two: batches and channels, of which one is often 1.
    const size_t split = rank > 2 || (rank == 2 && block > 1) ? 2 : std::min<size_t>(rank, 1);
    const int64_t columns = split == 2 ? static_cast<int64_t>(maps[1].size()) : 1;
    const int64_t pieces = split == 0 ? 1 : static_cast<int64_t>(maps[0].size()) * columns;
    const int64_t piece = out->size() / pieces;
    parallel_for(pieces, piece * 2, [&](int64_t begin, int64_t end) {
      auto o = to.begin() + begin * piece;
      for (int64_t p = begin; p < end; ++p) {
        int64_t base = 0;
        for (size_t axis = 0; axis < split && base >= 0; ++axis) {
          const int64_t index = maps[axis][static_cast<size_t>(axis == 0 ? p / columns : p % columns)];
          base = index == kFill ? -1 : base + index * strides[axis];
        }
        walk(walk, split, base, o);
      }
    });
  });
  return out;
}

std::vector<AxisMap> identity_maps(const Array& x) {
  std::vector<AxisMap> maps;
  for (int64_t extent : x.shape) maps.push_back(identity_map(extent));
  return maps;
}

ArrayPtr with_shape(const Array& x, std::vector<int64_t> shape) {
  auto out = make_array(x.dtype, std::move(shape));
  on_storage(*out, x, [&](auto& to, const auto& from) {
    parallel_for(static_cast<int64_t>(from.size()), 1, [&](int64_t begin, int64_t end) {
      std::copy(from.begin() + begin, from.begin() + end, to.begin() + begin);
    });
  });
  return out;
}

ArrayPtr reshape(const Node& node, const Array& x, std::vector<int64_t> shape) {
  const bool allow_zero = node.int_attr("allowzero", 0) != 0;
  int64_t product = 1, unknown = -1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0 && !allow_zero) {
      if (d >= x.shape.size()) bad_node(node, "a 0 in the shape has no input axis to copy");
      shape[d] = x.shape[d];
    }
    if (shape[d] == -1 && unknown < 0)
      unknown = static_cast<int64_t>(d);
    else if (shape[d] < 0)
      bad_node(node, "negative extent");
    else if (__builtin_mul_overflow(product, shape[d], &product))
      bad_node(node, "more elements than can be counted");
  }
  if (unknown >= 0) {
    if (product != 0 && x.size() % product == 0)
      shape[static_cast<size_t>(unknown)] = x.size() / product;
    else if (product == 0 && x.size() == 0)
      shape[static_cast<size_t>(unknown)] = 0;
    else
      bad_node(node, fmt::format("{} elements do not divide by {}", x.size(), product));  // nor by 0
  } else if (product != x.size()) {
    bad_node(node, fmt::format("{} elements do not fit {}", x.size(), shape_str(to_shape(shape))));
  }
  return with_shape(x, std::move(shape));
}

ArrayPtr transpose(const Node& node, const Array& x) {
  const std::vector<int64_t>& perm = node.ints_attr("perm");
  if (perm.size() != x.shape.size()) bad_node(node, "perm does not match the rank");
  const std::vector<int64_t> own = row_major_strides(x.shape);
  std::vector<int64_t> shape, strides;
  for (int64_t p : perm) {
    shape.push_back(x.shape.at(static_cast<size_t>(p)));
    strides.push_back(own[static_cast<size_t>(p)]);
  }
  auto out = make_array(x.dtype, shape);
  on_storage(*out, x, [&](auto& to, const auto& from) {
    for_each_run_in_parts<1>(
        shape, {strides}, 2, [&](int64_t first, const auto& at, int64_t n, const auto& stride) {
          for (int64_t i = 0; i < n; ++i)
            to[static_cast<size_t>(first + i)] = from[static_cast<size_t>(at[0] + i * stride[0])];
        });
  });
  return out;
}

ArrayPtr slice(const Node& node, const Array& x, const Operands& operands) {
  const auto& starts = ints_of(node, operands, 1);
  const auto& ends = ints_of(node, operands, 2);
  const std::vector<int64_t> steps =
      has_operand(operands, 3) ? ints_of(node, operands, 3) : std::vector<int64_t>(starts.size(), 1);
  const auto& axes = node.ints_attr("axes");
  if (ends.size() != starts.size() || steps.size() != starts.size() || axes.size() != starts.size())
    bad_node(node, "starts, ends, steps and axes differ in length");
  std::vector<AxisMap> maps = identity_maps(x);
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto axis = static_cast<size_t>(axes[k]);
    if (axis >= maps.size()) bad_node(node, "axis out of range");
    const SliceRange range = resolve_slice(x.shape[axis], starts[k], ends[k], steps[k]);
    AxisMap map(static_cast<size_t>(range.length));
    for (size_t i = 0; i < map.size(); ++i) map[i] = range.start + static_cast<int64_t>(i) * range.step;
    maps[axis] = std::move(map);
  }
  return read_through(x, maps);
}

ArrayPtr expand(const Array& x, const std::vector<int64_t>& to) {
  const std::vector<int64_t> shape = broadcast_shapes(x.shape, to);
  std::vector<int64_t> own(shape.size() - x.shape.size(), 1);
  own.insert(own.end(), x.shape.begin(), x.shape.end());
  if (own == shape) return with_shape(x, shape);
  std::vector<AxisMap> maps;
  for (size_t d = 0; d < shape.size(); ++d)
    maps.push_back(own[d] == shape[d] ? identity_map(shape[d]) : AxisMap(static_cast<size_t>(shape[d]), 0));
  return read_through(*with_shape(x, own), maps);
}

ArrayPtr concat(const Node& node, const Operands& operands) {
  const Array& first = operand(node, operands, 0);
  const int64_t axis = node.int_attr("axis");
  if (axis < 0 || axis >= static_cast<int64_t>(first.shape.size())) bad_node(node, "axis out of range");
  const auto a = static_cast<size_t>(axis);
  std::vector<int64_t> shape = first.shape;
  shape[a] = 0;
  for (size_t k = 0; k < operands.size(); ++k) {
    const Array& x = operand(node, operands, k);
    if (x.shape.size() != shape.size() || x.dtype != first.dtype)
      bad_node(node, "operands differ in rank or dtype");
    for (size_t d = 0; d < shape.size(); ++d)
      if (d != a && x.shape[d] != shape[d]) bad_node(node, fmt::format("operands differ along axis {}", d));
    shape[a] += x.shape[a];
  }
  auto out = make_array(first.dtype, shape);
  int64_t outer = 1, inner = 1;
  for (size_t d = 0; d < a; ++d) outer *= shape[d];
  for (size_t d = a + 1; d < shape.size(); ++d) inner *= shape[d];
  int64_t at = 0;
  for (const ArrayPtr& x : operands) {
    const int64_t block = x->shape[a] * inner;
    on_storage(*out, *x, [&](auto& to, const auto& from) {
      for (int64_t o = 0; o < outer; ++o)
        std::copy_n(from.begin() + o * block, block, to.begin() + o * shape[a] * inner + at);
    });
    at += block;
  }
  return out;
}

AxisMap pad_map(const Node& node, const std::string& mode, int64_t extent, int64_t begin, int64_t end) {
  const int64_t length = extent + begin + end;
  if (length < 0) bad_node(node, "pads crop more than there is");
  if (extent == 0 && length > 0 && mode != "constant")
    bad_node(node, "nothing to repeat along an empty axis");
  AxisMap map(static_cast<size_t>(length));
  for (int64_t o = 0; o < length; ++o) {
    int64_t i = o - begin;
    if (mode == "constant") {
      if (i < 0 || i >= extent) i = kFill;
    } else if (mode == "edge") {
      i = std::clamp<int64_t>(i, 0, extent - 1);
    } else if (mode == "wrap") {
      i = ((i % extent) + extent) % extent;
    } else if (mode == "reflect") {
      const int64_t period = std::max<int64_t>(1, 2 * (extent - 1));
      i = ((i % period) + period) % period;
      if (i >= extent) i = period - i;
    } else {
      bad_node(node, fmt::format("unknown mode '{}'", mode));
    }
    map[static_cast<size_t>(o)] = i;
  }
  return map;
}

ArrayPtr pad(const Node& node, const Array& x, const Operands& operands) {
  const auto& pads = ints_of(node, operands, 1);
  const std::string mode = node.string_attr("mode", "constant");
  std::vector<int64_t> axes(x.shape.size());
  std::iota(axes.begin(), axes.end(), int64_t{0});
  axes = ints_or(node, "axes", axes);
  if (pads.size() != 2 * axes.size()) bad_node(node, "pads must hold a begin and an end for each axis");
  std::vector<AxisMap> maps = identity_maps(x);
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto axis = static_cast<size_t>(axes[k]);
    if (axis >= maps.size()) bad_node(node, "axis out of range");
    maps[axis] = pad_map(node, mode, x.shape[axis], pads[k], pads[k + axes.size()]);
  }
  return read_through(x, maps, has_operand(operands, 2) ? operands[2].get() : nullptr);
}

ArrayPtr tile(const Node& node, const Array& x, const std::vector<int64_t>& repeats) {
  if (repeats.size() != x.shape.size()) bad_node(node, "one repeat an axis is needed");
  std::vector<AxisMap> maps;
  for (size_t d = 0; d < repeats.size(); ++d) {
    if (repeats[d] < 0) bad_node(node, "negative repeat");
    AxisMap map;
    for (int64_t r = 0; r < repeats[d]; ++r)
      for (int64_t i = 0; i < x.shape[d]; ++i) map.push_back(i);
    maps.push_back(std::move(map));
  }
  return read_through(x, maps);
}

ArrayPtr iota(const Node& node, const std::vector<int64_t>& shape) {
  auto out = make_array(DType::kI64, shape);
  const int64_t axis = node.int_attr("axis", 0);
  if (axis < 0 || (axis >= static_cast<int64_t>(shape.size()) && !shape.empty()))
    bad_node(node, "axis out of range");
  if (shape.empty()) return out;
  const int64_t inner = row_major_strides(shape)[static_cast<size_t>(axis)];
  const int64_t extent = shape[static_cast<size_t>(axis)];
  for (int64_t i = 0; i < out->size(); ++i) out->i[static_cast<size_t>(i)] = i / inner % extent;
  return out;
}

}  // namespace

Results evaluate_view(const Node& node, const Operands& operands) {
  if (node.op == Op::iota) return {iota(node, ints_of(node, operands, 0))};
  if (node.op == Op::concat) return {concat(node, operands)};
  const Array& x = operand(node, operands, 0);
  switch (node.op) {
    case Op::reshape:
      return {reshape(node, x, ints_of(node, operands, 1))};
    case Op::transpose:
      return {transpose(node, x)};
    case Op::slice:
      return {slice(node, x, operands)};
    case Op::expand:
      return {expand(x, ints_of(node, operands, 1))};
    case Op::pad:
      return {pad(node, x, operands)};
    case Op::tile:
      return {tile(node, x, ints_of(node, operands, 1))};
    default:
      return evaluate_gather(node, operands);
  }
}

}  // namespace thrice::ir
