#include "ir/evaluate_strides.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>

#include "ir/dim.h"

namespace thrice::ir {

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

std::vector<int64_t> broadcast_shapes(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  const size_t rank = std::max(a.size(), b.size());
  std::vector<int64_t> out(rank);
  for (size_t d = 0; d < rank; ++d) {  // d counts from the last axis
    const int64_t x = d < a.size() ? a[a.size() - 1 - d] : 1;
    const int64_t y = d < b.size() ? b[b.size() - 1 - d] : 1;
    if (x != y && x != 1 && y != 1)
      throw Error(Code::kInvalidModel, fmt::format("shapes {} and {} do not broadcast",
                                                   shape_str(to_shape(a)), shape_str(to_shape(b))));
    out[rank - 1 - d] = x == 1 ? y : x;
  }
  return out;
}

std::vector<int64_t> broadcast_strides(const std::vector<int64_t>& shape, const std::vector<int64_t>& out) {
  const std::vector<int64_t> own = row_major_strides(shape);
  std::vector<int64_t> strides(out.size(), 0);
  const size_t shift = out.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d) strides[shift + d] = shape[d] == 1 ? 0 : own[d];
  return strides;
}

}  // namespace thrice::ir
