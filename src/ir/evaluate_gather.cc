// gather, gather_elements, gather_nd. Negative indices count from the end; out of range is clamped
// (docs/ops.md).
#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>

#include "ir/evaluate_groups.h"
#include "ir/evaluate_strides.h"

namespace thrice::ir {
namespace {

int64_t clamp_index(int64_t index, int64_t extent) {
  return std::clamp<int64_t>(index < 0 ? index + extent : index, 0, extent - 1);
}

int64_t product(const std::vector<int64_t>& shape, size_t begin, size_t end) {
  int64_t p = 1;
  for (size_t d = begin; d < end; ++d) p *= shape[d];
  return p;
}

size_t axis_of(const Node& node, const Array& x) {
  const int64_t axis = node.int_attr("axis", 0);
  if (axis < 0 || axis >= static_cast<int64_t>(x.shape.size())) bad_node(node, "axis out of range");
  return static_cast<size_t>(axis);
}

void refuse_empty_axis(const Node& node, int64_t extent, int64_t wanted) {
  if (extent == 0 && wanted > 0) bad_node(node, "indices into an empty axis");
}

ArrayPtr gather(const Node& node, const Array& x, const Array& indices) {
  const size_t axis = axis_of(node, x);
  std::vector<int64_t> shape(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.shape.end());
  auto out = make_array(x.dtype, shape);
  const int64_t outer = product(x.shape, 0, axis), extent = x.shape[axis];
  const int64_t block = product(x.shape, axis + 1, x.shape.size());
  refuse_empty_axis(node, extent, out->size());
  if (out->size() == 0) return out;
  on_storage(*out, x, [&](auto& to, const auto& from) {
    const auto count = static_cast<int64_t>(indices.i.size());
    parallel_for(outer * count, block + 4, [&](int64_t begin, int64_t end) {
      auto o = to.begin() + begin * block;
      for (int64_t piece = begin; piece < end; ++piece) {
        const int64_t index = clamp_index(indices.i[static_cast<size_t>(piece % count)], extent);
        o = std::copy_n(from.begin() + (piece / count * extent + index) * block, block, o);
      }
    });
  });
  return out;
}

ArrayPtr gather_elements(const Node& node, const Array& x, const Array& indices) {
  const size_t axis = axis_of(node, x);
  if (indices.shape.size() != x.shape.size()) bad_node(node, "indices and data differ in rank");
  for (size_t d = 0; d < x.shape.size(); ++d)
    if (d != axis && indices.shape[d] > x.shape[d]) bad_node(node, "indices are larger than the data");
  auto out = make_array(x.dtype, indices.shape);
  refuse_empty_axis(node, x.shape[axis], out->size());
  std::vector<int64_t> strides = row_major_strides(x.shape);
  const int64_t along = strides[axis], extent = x.shape[axis];
  strides[axis] = 0;
  on_storage(*out, x, [&](auto& to, const auto& from) {
    size_t o = 0;
    for_each_run<1>(indices.shape, {strides}, [&](const auto& at, int64_t n, const auto& stride) {
      for (int64_t i = 0; i < n; ++i, ++o)
        to[o] = from[static_cast<size_t>(at[0] + i * stride[0] + clamp_index(indices.i[o], extent) * along)];
    });
  });
  return out;
}

ArrayPtr gather_nd(const Node& node, const Array& x, const Array& indices) {
  const auto batch = static_cast<size_t>(node.int_attr("batch_dims", 0));
  if (indices.shape.empty() || batch >= indices.shape.size()) bad_node(node, "indices need more axes");
  const auto depth = static_cast<size_t>(indices.shape.back());
  if (batch + depth > x.shape.size()) bad_node(node, "index tuples are longer than the data's rank");
  std::vector<int64_t> shape(indices.shape.begin(), indices.shape.end() - 1);
  shape.insert(shape.end(), x.shape.begin() + static_cast<std::ptrdiff_t>(batch + depth), x.shape.end());
  auto out = make_array(x.dtype, shape);
  if (out->size() == 0) return out;
  const int64_t batches = product(indices.shape, 0, batch);
  const int64_t tuples = product(indices.shape, batch, indices.shape.size() - 1);
  const int64_t block = product(x.shape, batch + depth, x.shape.size());
  const std::vector<int64_t> strides = row_major_strides(x.shape);
  const int64_t batch_stride = product(x.shape, batch, x.shape.size());
  for (size_t d = 0; d < depth; ++d) refuse_empty_axis(node, x.shape[batch + d], out->size());
  on_storage(*out, x, [&](auto& to, const auto& from) {
    auto o = to.begin();
    const int64_t* tuple = indices.i.data();
    for (int64_t b = 0; b < batches; ++b)
      for (int64_t t = 0; t < tuples; ++t, tuple += depth) {
        int64_t at = b * batch_stride;
        for (size_t d = 0; d < depth; ++d)
          at += clamp_index(tuple[d], x.shape[batch + d]) * strides[batch + d];
        o = std::copy_n(from.begin() + at, block, o);
      }
  });
  return out;
}

}  // namespace

Results evaluate_gather(const Node& node, const Operands& operands) {
  const Array& x = operand(node, operands, 0);
  const Array& indices = operand(node, operands, 1);
  if (lives_in_f(indices.dtype) || lives_in_s(indices.dtype)) bad_node(node, "indices must be integers");
  switch (node.op) {
    case Op::gather:
      return {gather(node, x, indices)};
    case Op::gather_elements:
      return {gather_elements(node, x, indices)};
    case Op::gather_nd:
      return {gather_nd(node, x, indices)};
    default:
      bad_node(node, "has no evaluation");
  }
}

}  // namespace thrice::ir
