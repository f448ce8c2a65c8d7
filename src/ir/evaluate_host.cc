// Host operators: shape, nonzero, unique, compress, non_max_suppression, det.
#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/evaluate_groups.h"
#include "ir/evaluate_strides.h"

namespace thrice::ir {
namespace {

ArrayPtr int_vector(std::vector<int64_t> values) {
  auto out = std::make_shared<Array>();
  out->dtype = DType::kI64;
  out->shape = {static_cast<int64_t>(values.size())};
  out->i = std::move(values);
  return out;
}

ArrayPtr shape_of(const Node& node, const Array& x) {
  const auto rank = static_cast<int64_t>(x.shape.size());
  const auto bound = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
  const int64_t start = bound(node.int_attr("start", 0)), end = bound(node.int_attr("end", rank));
  std::vector<int64_t> out;
  for (int64_t d = start; d < end; ++d) out.push_back(x.shape[static_cast<size_t>(d)]);
  return int_vector(std::move(out));
}

ArrayPtr nonzero(const Array& x) {
  const std::vector<int64_t> strides = row_major_strides(x.shape);
  std::vector<int64_t> found;
  for (int64_t i = 0; i < x.size(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (lives_in_f(x.dtype) ? x.f[at] != 0 : x.i[at] != 0) found.push_back(i);
  }
  // A scalar counts as a vector of one (NumPy's at-least-1d).
  const size_t rank = x.shape.size();
  auto out = make_array(DType::kI64, {static_cast<int64_t>(rank), static_cast<int64_t>(found.size())});
  for (size_t d = 0; d < rank; ++d)
    for (size_t k = 0; k < found.size(); ++k)
      out->i[d * found.size() + k] = found[k] / strides[d] % x.shape[d];
  return out;
}

// Blocks of x along `axis` as rows of element indices, so that whole slices can be compared and copied.
struct Slices {
  int64_t count = 0, outer = 1, inner = 1;
  size_t element(int64_t slice, int64_t k) const {
    return static_cast<size_t>((k / inner * count + slice) * inner + k % inner);
  }
  int64_t length() const { return outer * inner; }
};

Slices slices_of(const Node& node, const Array& x, int64_t axis) {
  if (axis < 0) axis += static_cast<int64_t>(x.shape.size());
  if (axis < 0 || axis >= static_cast<int64_t>(x.shape.size())) bad_node(node, "axis out of range");
  Slices s;
  s.count = x.shape[static_cast<size_t>(axis)];
  for (size_t d = 0; d < x.shape.size(); ++d) {
    if (static_cast<int64_t>(d) < axis) s.outer *= x.shape[d];
    if (static_cast<int64_t>(d) > axis) s.inner *= x.shape[d];
  }
  return s;
}

// Slices `chosen` of x along its axis; a flattened vector where there is no axis.
ArrayPtr take(const Array& x, const Slices& s, const std::vector<int64_t>& chosen,
              std::vector<int64_t> shape) {
  auto out = make_array(x.dtype, std::move(shape));
  const auto n = static_cast<int64_t>(chosen.size());
  on_storage(*out, x, [&](auto& to, const auto& from) {
    for (int64_t c = 0; c < n; ++c)
      for (int64_t k = 0; k < s.length(); ++k)
        to[static_cast<size_t>((k / s.inner * n + c) * s.inner + k % s.inner)] =
            from[s.element(chosen[static_cast<size_t>(c)], k)];
  });
  return out;
}

std::vector<int64_t> shape_with(const Node& node, const Array& x, int64_t count) {
  if (!node.has_attr("axis")) return {count};
  std::vector<int64_t> shape = x.shape;
  const int64_t axis = node.int_attr("axis");
  shape.at(static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis)) = count;
  return shape;
}

Slices slices_or_elements(const Node& node, const Array& x) {
  if (node.has_attr("axis")) return slices_of(node, x, node.int_attr("axis"));
  Slices s;
  s.count = x.size();
  return s;
}

Results unique(const Node& node, const Array& x) {
  const Slices s = slices_or_elements(node, x);
  const auto order_of = [&](int64_t a, int64_t b) {  // -1, 0, 1
    const auto compare = [&](const auto& v) {
      for (int64_t k = 0; k < s.length(); ++k) {
        const auto& p = v[s.element(a, k)];
        const auto& q = v[s.element(b, k)];
        if (p < q) return -1;
        if (q < p) return 1;
      }
      return 0;
    };
    return lives_in_f(x.dtype) ? compare(x.f) : lives_in_s(x.dtype) ? compare(x.s) : compare(x.i);
  };
  std::vector<int64_t> order(static_cast<size_t>(s.count));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return order_of(a, b) < 0; });
  struct Group {
    int64_t first, count;
    std::vector<int64_t> members;
  };
  std::vector<Group> groups;
  for (int64_t e : order) {
    if (groups.empty() || order_of(groups.back().first, e) != 0) groups.push_back({e, 0, {}});
    ++groups.back().count;
    groups.back().members.push_back(e);
  }
  if (node.int_attr("sorted", 1) == 0)
    std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.first < b.first; });
  std::vector<int64_t> first, inverse(static_cast<size_t>(s.count)), counts;
  for (size_t g = 0; g < groups.size(); ++g) {
    first.push_back(groups[g].first);
    counts.push_back(groups[g].count);
    for (int64_t e : groups[g].members) inverse[static_cast<size_t>(e)] = static_cast<int64_t>(g);
  }
  ArrayPtr values = take(x, s, first, shape_with(node, x, static_cast<int64_t>(first.size())));
  return {values, int_vector(first), int_vector(inverse), int_vector(counts)};
}

ArrayPtr compress(const Node& node, const Array& x, const Array& condition) {
  const Slices s = slices_or_elements(node, x);
  std::vector<int64_t> chosen;
  for (int64_t k = 0; k < std::min<int64_t>(s.count, condition.size()); ++k)
    if (condition.i[static_cast<size_t>(k)] != 0) chosen.push_back(k);
  return take(x, s, chosen, shape_with(node, x, static_cast<int64_t>(chosen.size())));
}

struct Box {
  double y0, x0, y1, x1;
};

double overlap(const Box& a, const Box& b) {
  const double h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0),
               w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  if (!(h > 0) || !(w > 0)) return 0;
  const double shared = h * w, all = (a.y1 - a.y0) * (a.x1 - a.x0) + (b.y1 - b.y0) * (b.x1 - b.x0) - shared;
  return all > 0 ? shared / all : 0;
}

ArrayPtr non_max_suppression(const Node& node, const Operands& operands) {
  const Array& boxes = operand(node, operands, 0);
  const Array& scores = operand(node, operands, 1);
  if (boxes.shape.size() != 3 || boxes.shape[2] != 4 || scores.shape.size() != 3 ||
      scores.shape[0] != boxes.shape[0] || scores.shape[2] != boxes.shape[1] || !lives_in_f(boxes.dtype) ||
      !lives_in_f(scores.dtype))
    bad_node(node, "boxes [B, N, 4] and scores [B, C, N] do not fit");
  const auto float_of = [&](size_t i, double otherwise) {
    return has_operand(operands, i) && !operands[i]->f.empty() ? operands[i]->f[0] : otherwise;
  };
  const int64_t most = has_operand(operands, 2) && !operands[2]->i.empty() ? operands[2]->i[0] : 0;
  const double iou = float_of(3, 0), least = float_of(4, -std::numeric_limits<double>::infinity());
  const bool centred = node.int_attr("center_point_box", 0) != 0;
  std::vector<int64_t> rows;
  const int64_t batches = boxes.shape[0], n = boxes.shape[1], classes = scores.shape[1];
  for (int64_t b = 0; b < batches; ++b) {
    std::vector<Box> box;
    for (int64_t k = 0; k < n; ++k) {
      const double* v = boxes.f.data() + (b * n + k) * 4;
      box.push_back(centred ? Box{v[1] - v[3] / 2, v[0] - v[2] / 2, v[1] + v[3] / 2, v[0] + v[2] / 2}
                            : Box{std::min(v[0], v[2]), std::min(v[1], v[3]), std::max(v[0], v[2]),
                                  std::max(v[1], v[3])});
    }
    for (int64_t c = 0; c < classes; ++c) {
      const double* score = scores.f.data() + (b * classes + c) * n;
      std::vector<int64_t> order;
      for (int64_t k = 0; k < n; ++k)
        if (score[k] > least) order.push_back(k);
      std::stable_sort(order.begin(), order.end(), [&](int64_t p, int64_t q) { return score[p] > score[q]; });
      std::vector<int64_t> kept;
      for (int64_t k : order) {
        if (static_cast<int64_t>(kept.size()) >= most) break;
        const bool hidden = std::any_of(kept.begin(), kept.end(), [&](int64_t j) {
          return overlap(box[static_cast<size_t>(k)], box[static_cast<size_t>(j)]) > iou;
        });
        if (hidden) continue;
        kept.push_back(k);
        rows.insert(rows.end(), {b, c, k});
      }
    }
  }
  ArrayPtr flat = int_vector(std::move(rows));
  auto out = std::make_shared<Array>(*flat);
  out->shape = {out->shape[0] / 3, 3};
  return out;
}

double determinant(std::vector<double> m, size_t n) {
  double det = 1;
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t r = k + 1; r < n; ++r)
      if (std::fabs(m[r * n + k]) > std::fabs(m[pivot * n + k])) pivot = r;
    if (m[pivot * n + k] == 0) return 0;
    if (pivot != k) {
      std::swap_ranges(m.begin() + static_cast<std::ptrdiff_t>(k * n),
                       m.begin() + static_cast<std::ptrdiff_t>((k + 1) * n),
                       m.begin() + static_cast<std::ptrdiff_t>(pivot * n));
      det = -det;
    }
    det *= m[k * n + k];
    for (size_t r = k + 1; r < n; ++r) {
      const double factor = m[r * n + k] / m[k * n + k];
      for (size_t c = k; c < n; ++c) m[r * n + c] -= factor * m[k * n + c];
    }
  }
  return det;
}

ArrayPtr det(const Node& node, const Array& x) {
  const size_t rank = x.shape.size();
  if (rank < 2 || x.shape[rank - 1] != x.shape[rank - 2] || !lives_in_f(x.dtype))
    bad_node(node, "needs square matrices");
  auto out = make_array(x.dtype, {x.shape.begin(), x.shape.end() - 2});
  const auto n = static_cast<size_t>(x.shape.back());
  for (size_t b = 0; b < out->f.size(); ++b) {
    const auto begin = x.f.begin() + static_cast<std::ptrdiff_t>(b * n * n);
    out->f[b] = determinant({begin, begin + static_cast<std::ptrdiff_t>(n * n)}, n);
  }
  return out;
}

}  // namespace

Results evaluate_host(const Node& node, const Operands& operands) {
  const Array& x = operand(node, operands, 0);
  switch (node.op) {
    case Op::shape:
      return {shape_of(node, x)};
    case Op::nonzero:
      if (lives_in_s(x.dtype)) bad_node(node, "not defined on strings");
      return {nonzero(x)};
    case Op::unique:
      return unique(node, x);
    case Op::compress:
      ints_of(node, operands, 1);
      return {compress(node, x, *operands[1])};
    case Op::non_max_suppression:
      return {non_max_suppression(node, operands)};
    case Op::det:
      return {det(node, x)};
    default:
      throw Error(Code::kUnsupported, fmt::format("{} has no evaluation", op_name(node.op)));
  }
}

}  // namespace thrice::ir
