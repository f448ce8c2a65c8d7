// conv: chunks of output positions as columns of a matrix, or tap by tap where a group has few outputs
// (depthwise).
#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>

#include "ir/evaluate_gemm.h"
#include "ir/evaluate_threads.h"
#include "ir/evaluate_window.h"

namespace thrice::ir {
namespace {

struct Problem {
  Window w;
  int64_t batch = 0, channels = 0, outputs = 0, group = 1;
  int64_t channels_in_group() const { return channels / group; }
  int64_t outputs_in_group() const { return outputs / group; }
};

// columns[(c, taps), p] = x[c, input position of (p, tap)], zero in the padding, for output positions [first,
// last).
template <class T>
void columns_of(const Window& w, const T* x, int64_t channels, int64_t first, int64_t last, T* columns) {
  const int64_t width = last - first, plane = w.out[1] * w.out[2];
  for (int64_t c = 0; c < channels; ++c, x += w.in_size())
    for (int64_t kd = 0; kd < w.kernel[0]; ++kd)
      for (int64_t kh = 0; kh < w.kernel[1]; ++kh)
        for (int64_t kw = 0; kw < w.kernel[2]; ++kw, columns += width) {
          const auto [valid, invalid] = valid_range(w, 2, kw);
          const int64_t shift = kw * w.dilation[2] - w.begin[2], s = w.stride[2];
          for (int64_t p = first; p < last;) {
            const int64_t od = p / plane, oh = p % plane / w.out[2], ow = p % w.out[2];
            const int64_t run = std::min(w.out[2] - ow, last - p);
            const int64_t id = od * w.stride[0] - w.begin[0] + kd * w.dilation[0];
            const int64_t ih = oh * w.stride[1] - w.begin[1] + kh * w.dilation[1];
            T* to = columns + (p - first);
            p += run;
            if (id < 0 || id >= w.in[0] || ih < 0 || ih >= w.in[1]) {
              std::fill_n(to, run, T{0});
              continue;
            }
            const T* row = x + (id * w.in[1] + ih) * w.in[2] + shift;
            const int64_t from = std::clamp(valid, ow, ow + run), until = std::clamp(invalid, from, ow + run);
            std::fill_n(to, from - ow, T{0});
            if (s == 1)
              std::copy_n(row + from, until - from, to + (from - ow));
            else
              for (int64_t o = from; o < until; ++o) to[o - ow] = row[o * s];
            std::fill_n(to + (until - ow), ow + run - until, T{0});
          }
        }
}

template <class T>
void by_columns(const Problem& p, const T* x, const T* weights, T* out) {
  const Window& w = p.w;
  const int64_t cg = p.channels_in_group(), og = p.outputs_in_group(), rows = cg * w.taps(),
                positions = w.out_size();
  const bool pointwise = w.taps() == 1 && w.stride == std::array<int64_t, 3>{1, 1, 1} &&
                         positions == w.in_size() && w.begin == std::array<int64_t, 3>{} &&
                         w.end == std::array<int64_t, 3>{};
  // Chunks hold about 2 MB of columns, and there are enough of them for the threads.
  const int64_t chunk = std::clamp<int64_t>(262144 / std::max<int64_t>(rows, 1), 64, 4096);
  const int64_t chunks =
      std::max<int64_t>(1, std::max((positions + chunk - 1) / chunk, std::min<int64_t>(4, positions / 16)));
  parallel_for(
      p.batch * p.group * chunks, rows * og * positions / chunks / 4, [&](int64_t begin, int64_t end) {
        std::vector<T> columns;
        for (int64_t piece = begin; piece < end; ++piece) {
          const int64_t part = piece % chunks, g = piece / chunks % p.group, n = piece / chunks / p.group;
          const int64_t first = positions * part / chunks, last = positions * (part + 1) / chunks;
          const T* image = x + (n * p.channels + g * cg) * w.in_size();
          MatrixView<T> b{image + first, w.in_size(), 1};
          if (!pointwise) {
            columns.resize(static_cast<size_t>(rows * (last - first)));
            columns_of(w, image, cg, first, last, columns.data());
            b = {columns.data(), last - first, 1};
          }
          gemm(og, last - first, rows, MatrixView<T>{weights + g * og * rows, rows, 1}, b,
               out + (n * p.outputs + g * og) * positions + first, positions);
        }
      });
}

template <class T>
void by_taps(const Problem& p, const T* x, const T* weights, T* out) {
  const Window& w = p.w;
  const int64_t cg = p.channels_in_group(), og = p.outputs_in_group();
  parallel_for(p.batch * p.outputs, cg * w.taps() * w.out_size(), [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t n = piece / p.outputs, o = piece % p.outputs;
      const T* image = x + (n * p.channels + o / og * cg) * w.in_size();
      const T* tap = weights + o * cg * w.taps();
      T* to = out + piece * w.out_size();
      for (int64_t c = 0; c < cg; ++c, image += w.in_size())
        for (int64_t kd = 0; kd < w.kernel[0]; ++kd)
          for (int64_t kh = 0; kh < w.kernel[1]; ++kh)
            for (int64_t kw = 0; kw < w.kernel[2]; ++kw) {
              const T weight = *tap++;
              const auto [d0, d1] = valid_range(w, 0, kd);
              const auto [h0, h1] = valid_range(w, 1, kh);
              const auto [w0, w1] = valid_range(w, 2, kw);
              const int64_t s = w.stride[2], shift = kw * w.dilation[2] - w.begin[2];
              for (int64_t od = d0; od < d1; ++od)
                for (int64_t oh = h0; oh < h1; ++oh) {
                  const int64_t id = od * w.stride[0] - w.begin[0] + kd * w.dilation[0];
                  const int64_t ih = oh * w.stride[1] - w.begin[1] + kh * w.dilation[1];
                  const T* row = image + (id * w.in[1] + ih) * w.in[2] + shift;
                  T* line = to + (od * w.out[1] + oh) * w.out[2];
                  if (s == 1)
                    for (int64_t i = w0; i < w1; ++i) line[i] += weight * row[i];
                  else
                    for (int64_t i = w0; i < w1; ++i) line[i] += weight * row[i * s];
                }
            }
    }
  });
}

template <class T>
void convolve(const Problem& p, const std::vector<T>& x, const std::vector<T>& weights,
              const std::vector<T>* bias, std::vector<T>& out) {
  const int64_t positions = p.w.out_size();
  if (bias != nullptr)
    parallel_for(p.batch * p.outputs, positions, [&](int64_t begin, int64_t end) {
      for (int64_t piece = begin; piece < end; ++piece)
        std::fill_n(out.begin() + piece * positions, positions,
                    (*bias)[static_cast<size_t>(piece % p.outputs)]);
    });
  if (out.empty() || x.empty() || weights.empty()) return;
  if (p.outputs_in_group() < 3)
    by_taps(p, x.data(), weights.data(), out.data());
  else
    by_columns(p, x.data(), weights.data(), out.data());
}

}  // namespace

Results evaluate_conv(const Node& node, const Operands& operands) {
  const Array& x = operand(node, operands, 0);
  const Array& weights = operand(node, operands, 1);
  const Array* bias = has_operand(operands, 2) ? operands[2].get() : nullptr;
  if (x.shape.size() < 3 || weights.shape.size() != x.shape.size())
    bad_node(node, "x and weights need the same rank, 3 to 5");
  if (x.dtype != weights.dtype || lives_in_s(x.dtype)) bad_node(node, "operands need one numeric dtype");
  Problem p;
  p.group = node.int_attr("group", 1);
  p.batch = x.shape[0];
  p.channels = x.shape[1];
  p.outputs = weights.shape[0];
  if (p.group < 1 || p.channels != weights.shape[1] * p.group || p.outputs % p.group != 0)
    bad_node(node, fmt::format("{} channels, {} a group and {} groups do not fit", p.channels,
                               weights.shape[1], p.group));
  if (bias != nullptr && bias->size() != p.outputs) bad_node(node, "bias does not match the output channels");
  p.w = make_window(node, x.shape, {weights.shape.begin() + 2, weights.shape.end()}, false);
  auto out = make_array(x.dtype, p.w.out_shape(p.batch, p.outputs));
  if (lives_in_f(x.dtype)) {
    convolve(p, x.f, weights.f, bias != nullptr ? &bias->f : nullptr, out->f);
  } else {
    convolve(p, x.i, weights.i, bias != nullptr ? &bias->i : nullptr, out->i);
    for (int64_t& v : out->i) v = wrap_to(x.dtype, v);
  }
  return {out};
}

}  // namespace thrice::ir
