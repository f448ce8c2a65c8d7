#include "transform/pack_axes.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace thrice::transform {

using ir::Dim;
using ir::Graph;
using ir::ValueId;

namespace {

// Odd and different, so that no product of the model's own extents is taken for them.
constexpr int64_t kBatches[PackSizes::kProbes] = {3, 5}, kLengths[PackSizes::kProbes] = {11, 7};

int64_t product(const std::vector<int64_t>& sizes, size_t begin) {
  return std::accumulate(sizes.begin() + static_cast<std::ptrdiff_t>(begin), sizes.end(), int64_t{1},
                         std::multiplies<>());
}

// Where `count` steps of `stride` elements lie in a shape: the axis, how many elements of it are behind one
// step, and how many times the axis holds them all.
struct Place {
  int axis = -1;
  int64_t inner = 1, outer = 1;
};
std::optional<Place> find_place(const std::vector<int64_t>& sizes, int64_t stride, int64_t count,
                                int64_t outer) {
  for (size_t a = 0; a < sizes.size(); ++a) {
    const int64_t behind = product(sizes, a + 1);
    if (behind == 0 || stride % behind != 0 || stride * count > behind * sizes[a]) continue;
    const Place place{static_cast<int>(a), stride / behind, behind * sizes[a] / (stride * count)};
    if (behind * sizes[a] == stride * count * place.outer && (place.outer == 1 || place.outer == outer))
      return place;
  }
  return std::nullopt;
}

}  // namespace

PackSizes::PackSizes(const Graph& graph, ValueId mask) {
  for (size_t p = 0; p < kProbes; ++p) fill(graph, mask, p, kBatches[p], kLengths[p]);
}
PackSizes::PackSizes(const Graph& graph, ValueId mask, int64_t batch, int64_t length) {
  for (size_t p = 0; p < kProbes; ++p) fill(graph, mask, p, batch, length);
}

void PackSizes::fill(const Graph& graph, ValueId mask, size_t p, int64_t batch, int64_t length) {
  const ir::Shape& shape = graph.value(mask).type.shape;
  if (!shape[0].is_const()) bindings_[p][shape[0].str()] = batch;
  if (!shape[1].is_const()) bindings_[p][shape[1].str()] = length;
  const auto number = [&](const Dim& dim) {
    for (const std::string& symbol : dim.symbols())
      if (!bindings_[p].count(symbol))
        throw Error(Code::kUnsupported,
                    fmt::format("the model cannot be packed: extent '{}' is neither the batch nor the "
                                "length of its mask [{}, {}]; fix it with --shape",
                                symbol, shape[0].str(), shape[1].str()));
    return dim.evaluate(bindings_[p]);
  };
  batch_[p] = number(shape[0]);
  length_[p] = number(shape[1]);
  for (const ir::Value& value : graph.values) {
    sizes_[p].emplace_back();
    for (const Dim& dim : value.type.shape) sizes_[p].back().push_back(number(dim));
  }
}

std::optional<int64_t> PackSizes::fixed(ValueId value, int axis) const {
  if (axis < 0) return 1;
  const int64_t first = of(value, 0)[static_cast<size_t>(axis)];
  return of(value, 1)[static_cast<size_t>(axis)] == first ? std::optional(first) : std::nullopt;
}
bool PackSizes::is_one(ValueId value, int axis) const { return fixed(value, axis) == int64_t{1}; }
bool PackSizes::is_batch(ValueId value, int axis) const {
  for (size_t p = 0; p < kProbes; ++p)
    if (axis < 0 || of(value, p)[static_cast<size_t>(axis)] != batch_[p]) return false;
  return true;
}
bool PackSizes::is_length(ValueId value, int axis) const {
  for (size_t p = 0; p < kProbes; ++p)
    if (axis < 0 || of(value, p)[static_cast<size_t>(axis)] != length_[p]) return false;
  return true;
}
bool PackSizes::is_small(ValueId value) const {
  for (size_t p = 0; p < kProbes; ++p)
    if (product(of(value, p), 0) > batch_[p] * length_[p]) return false;
  return true;
}

std::optional<PackAxes> PackSizes::padded_axes(ValueId value) const {
  const int rank = static_cast<int>(of(value, 0).size());
  for (int b = 0; b < rank; ++b)
    for (int s = b + 1; is_batch(value, b) && s < rank; ++s)
      if (is_length(value, s)) return PackAxes{b, s};
  return std::nullopt;
}

std::optional<PackAxes> PackSizes::reshaped(ValueId from, const PackAxes& axes, ValueId to) const {
  std::optional<PackAxes> found;
  for (size_t p = 0; p < kProbes; ++p) {
    const std::vector<int64_t>&in = of(from, p), &out = of(to, p);
    const auto behind = [&](int axis) { return product(in, static_cast<size_t>(axis) + 1); };
    const bool joined = axes.batch == axes.tokens;
    const auto batch = find_place(out, behind(axes.batch) * (joined ? length_[p] : axes.inner), batch_[p], 1);
    if (!batch) return std::nullopt;
    PackAxes result{batch->axis, -1, -1, batch->inner};
    if (axes.tokens >= 0) {
      const auto tokens = find_place(out, behind(axes.tokens), length_[p], batch_[p]);
      if (!tokens || tokens->inner != 1) return std::nullopt;
      result.tokens = tokens->axis;
      const bool joins = result.tokens == result.batch;
      if (joins ? batch->inner != length_[p] : tokens->outer != 1) return std::nullopt;
      if (joins) result.inner = 1;
    }
    if (axes.keys >= 0) {
      const auto keys = find_place(out, behind(axes.keys), length_[p], 1);
      if (!keys || keys->inner != 1 || keys->axis == result.tokens || keys->axis == result.batch)
        return std::nullopt;
      result.keys = keys->axis;
    }
    if (found && !(*found == result)) return std::nullopt;
    found = result;
  }
  return found;
}

}  // namespace thrice::transform
