// pool: windows clipped to the input; padding never wins a maximum.
#include <fmt/format.h>
#include <thrice/status.h>

#include <cmath>
#include <limits>

#include "ir/evaluate_threads.h"
#include "ir/evaluate_window.h"

namespace thrice::ir {
namespace {

struct Clip {
  int64_t first, last;  // taps inside the input
  int64_t counted;      // taps inside input and padding (count_include_pad)
};

Clip clip(const Window& w, size_t axis, int64_t o) {
  const int64_t start = o * w.stride[axis] - w.begin[axis], d = w.dilation[axis];
  const auto taps_below = [&](int64_t limit) {  // taps whose position is < limit
    return start >= limit ? int64_t{0} : std::min(w.kernel[axis], (limit - start + d - 1) / d);
  };
  return {taps_below(0), taps_below(w.in[axis]), taps_below(w.in[axis] + w.end[axis])};
}

template <class F>
void each_tap(const Window& w, const std::array<Clip, 3>& c, const std::array<int64_t, 3>& o, F f) {
  std::array<int64_t, 3> start;
  for (size_t a = 0; a < 3; ++a) start[a] = o[a] * w.stride[a] - w.begin[a];
  for (int64_t d = c[0].first; d < c[0].last; ++d)
    for (int64_t h = c[1].first; h < c[1].last; ++h)
      for (int64_t x = c[2].first; x < c[2].last; ++x)
        f(start[0] + d * w.dilation[0], start[1] + h * w.dilation[1], start[2] + x * w.dilation[2]);
}

enum class Kind { kMax, kAverage, kSum };

template <class T, class Stored>
void pool_planes(const Window& w, Kind kind, bool include_pad, bool column_major, int64_t planes,
                 const std::vector<Stored>& in, std::vector<Stored>& out, std::vector<int64_t>* indices) {
  parallel_for(planes, w.out_size() * w.taps() * 2, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const Stored* from = in.data() + plane * w.in_size();
      int64_t at = plane * w.out_size();
      std::array<int64_t, 3> o;
      for (o[0] = 0; o[0] < w.out[0]; ++o[0])
        for (o[1] = 0; o[1] < w.out[1]; ++o[1])
          for (o[2] = 0; o[2] < w.out[2]; ++o[2], ++at) {
            const std::array<Clip, 3> c{clip(w, 0, o[0]), clip(w, 1, o[1]), clip(w, 2, o[2])};
            T acc{};
            int64_t best = -1, count = 0;
            each_tap(w, c, o, [&](int64_t d, int64_t h, int64_t x) {
              const T v = static_cast<T>(from[(d * w.in[1] + h) * w.in[2] + x]);
              ++count;
              if (kind != Kind::kMax) {
                acc += v;
                return;
              }
              bool wins = best < 0 || v > acc;
              if constexpr (std::is_same_v<T, double>) wins = wins || (std::isnan(v) && !std::isnan(acc));
              if (!wins) return;
              acc = v;
              best = column_major ? (x * w.in[1] + h) * w.in[0] + d : (d * w.in[1] + h) * w.in[2] + x;
            });
            if (kind == Kind::kAverage) {
              if (include_pad) count = c[0].counted * c[1].counted * c[2].counted;
              acc = count == 0 ? T{} : acc / static_cast<T>(count);
            }
            if (kind == Kind::kMax && best < 0)
              acc = std::is_same_v<T, double> ? static_cast<T>(-std::numeric_limits<double>::infinity())
                                              : std::numeric_limits<T>::lowest();
            out[static_cast<size_t>(at)] = static_cast<Stored>(acc);
            if (indices != nullptr)
              (*indices)[static_cast<size_t>(at)] = plane * w.in_size() + std::max<int64_t>(best, 0);
          }
    }
  });
}

}  // namespace

Results evaluate_pool(const Node& node, const Operands& operands) {
  const Array& x = operand(node, operands, 0);
  if (lives_in_s(x.dtype)) bad_node(node, "not defined on strings");
  const std::string name = node.string_attr("kind", "max");
  if (name != "max" && name != "avg" && name != "sum") bad_node(node, fmt::format("unknown kind '{}'", name));
  const Kind kind = name == "max" ? Kind::kMax : name == "avg" ? Kind::kAverage : Kind::kSum;
  const Window w = make_window(node, x.shape, node.ints_attr("kernel"), node.int_attr("ceil_mode", 0) != 0);
  const bool include_pad = node.int_attr("count_include_pad", 0) != 0;
  const bool column_major = node.int_attr("storage_order", 0) != 0;
  const int64_t planes = x.shape[0] * x.shape[1];
  auto out = make_array(x.dtype, w.out_shape(x.shape[0], x.shape[1]));
  std::shared_ptr<Array> indices;
  if (kind == Kind::kMax && node.outputs.size() > 1 && node.outputs[1] != kNoValue)
    indices = make_array(DType::kI64, out->shape);
  std::vector<int64_t>* to = indices != nullptr ? &indices->i : nullptr;
  if (out->size() == 0) return {out, indices};
  if (lives_in_f(x.dtype))
    pool_planes<double>(w, kind, include_pad, column_major, planes, x.f, out->f, to);
  else if (is_signed_integer(x.dtype))
    pool_planes<int64_t>(w, kind, include_pad, column_major, planes, x.i, out->i, to);
  else
    pool_planes<uint64_t>(w, kind, include_pad, column_major, planes, x.i, out->i, to);
  for (int64_t& v : out->i) v = wrap_to(x.dtype, v);
  return {out, indices};
}

}  // namespace thrice::ir
