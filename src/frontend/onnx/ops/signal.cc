// Fourier transforms of known length as products with cosine and sine matrices, computed in float64 at
// import.
#include <algorithm>
#include <cmath>

#include "frontend/onnx/ops/expr.h"
#include "frontend/onnx/ops/groups.h"
#include "frontend/onnx/tensor_decode.h"

namespace thrice::frontend::onnx {
namespace {

constexpr int64_t kMaxTransform = 8192;  // longer ones want a fast transform, not a matrix

struct Waves {
  Tensor cosine, sine;  // [n, bins]: cos and sin of 2 pi * row * column / period
};

// The product row * column is reduced modulo the period first, so that large angles stay exact.
Waves waves(DType dtype, int64_t rows, int64_t bins, int64_t period) {
  std::vector<double> cosine, sine;
  const double turn = 2 * std::acos(-1.0) / static_cast<double>(period);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < bins; ++k) {
      const double angle = turn * static_cast<double>(i * k % period);
      cosine.push_back(std::cos(angle));
      sine.push_back(std::sin(angle));
    }
  return {Tensor::of(dtype, {rows, bins}, cosine), Tensor::of(dtype, {rows, bins}, sine)};
}

void check_length(NodeContext& ctx, int64_t length) {
  if (length < 1) ctx.invalid("the transform has no length");
  if (length > kMaxTransform)
    ctx.refuse("transforms longer than " + std::to_string(kMaxTransform) + " are not built");
}

// Operand of one or two components (real, imaginary) on its last axis.
struct Complex {
  Expr real;
  std::optional<Expr> imaginary;
};

Complex components(const Expr& x) {
  const Dim parts = x.dim(-1);
  if (!parts.is_const() || parts.value() < 1 || parts.value() > 2)
    x.ctx().refuse("the last axis must be known and hold the real or the real and imaginary part");
  Complex c{squeeze(slice(x, -1, 0, 1), {-1}), std::nullopt};
  if (parts.value() == 2) c.imaginary = squeeze(slice(x, -1, 1, 2), {-1});
  return c;
}

// Sum of x[n] * exp(sign * 2 pi i k n / period) over the last axis -> [..., bins, 2].
Expr transform(NodeContext& ctx, const Complex& x, int64_t length, int64_t bins, int64_t period,
               bool inverse) {
  const Waves w = waves(x.real.dtype(), length, bins, period);
  const Expr cosine = constant(ctx, w.cosine), sine = constant(ctx, w.sine);
  const auto times = [&](const Expr& a, const Expr& b) { return matmul(a, b); };
  Expr real = times(x.real, cosine);
  Expr imaginary = inverse ? times(x.real, sine) : -times(x.real, sine);
  if (x.imaginary) {
    const Expr crossed = times(*x.imaginary, sine);
    real = inverse ? real - crossed : real + crossed;
    imaginary = imaginary + times(*x.imaginary, cosine);
  }
  return concat({unsqueeze(real, {-1}), unsqueeze(imaginary, {-1})}, -1);
}

// Cut or padded with zeros at the end of the last axis.
Expr fitted(const Expr& x, int64_t length) {
  const Dim extent = x.dim(-1);
  if (extent == Dim(length)) return x;
  const Dim kept = ir::dim_min(extent, length);
  return pad_zero(slice(x, -1, 0, kept), -1, 0, Dim(length) - kept);
}

// One-sided spectrum -> real signal: bins other than the first and (for even lengths) the last count twice.
Expr real_inverse(NodeContext& ctx, const Complex& x, int64_t length) {
  const int64_t bins = length / 2 + 1;
  std::vector<double> cosine, sine;
  const Waves w = waves(DType::kF64, bins, length, length);
  for (int64_t k = 0; k < bins; ++k)
    for (int64_t n = 0; n < length; ++n) {
      const double times = (k == 0 || 2 * k == length ? 1.0 : 2.0) / static_cast<double>(length);
      cosine.push_back(times * w.cosine.as_double(k * length + n));
      sine.push_back(-times * w.sine.as_double(k * length + n));
    }
  const DType dtype = x.real.dtype();
  Expr y = matmul(fitted(x.real, bins), constant(ctx, Tensor::of(dtype, {bins, length}, cosine)));
  if (x.imaginary)
    y = y + matmul(fitted(*x.imaginary, bins), constant(ctx, Tensor::of(dtype, {bins, length}, sine)));
  return unsqueeze(y, {-1});
}

Expr swapped(const Expr& x, int64_t a, int64_t b) {
  std::vector<int64_t> perm = axes_from(0, x.rank());
  std::swap(perm[static_cast<size_t>(a)], perm[static_cast<size_t>(b)]);
  return transpose(x, perm);
}

void dft(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  int64_t axis = ctx.opset() < 20 ? ctx.int_attr("axis", 1) : -2;
  if (ctx.opset() >= 20 && ctx.has_input(2)) axis = ctx.structural_ints(2).at(0);
  axis = ctx.axis(x.id(), axis);
  if (axis == x.rank() - 1) ctx.invalid("axis is that of the components");
  const bool inverse = ctx.int_attr("inverse", 0) != 0, onesided = ctx.int_attr("onesided", 0) != 0;
  int64_t length;
  if (ctx.has_input(1)) {
    length = ctx.structural_ints(1).at(0);
  } else {
    const Dim extent = x.dim(axis);
    if (!extent.is_const()) ctx.refuse("the transform's length is not known; fix extent " + extent.str());
    length = inverse && onesided ? 2 * (extent.value() - 1) : extent.value();
  }
  check_length(ctx, length);
  // The transformed axis goes last (before the components).
  const int64_t last = x.rank() - 2;
  const Expr wide = widened(swapped(x, axis, last));
  Complex c = components(wide);
  Expr y = c.real;
  if (inverse && onesided) {
    y = real_inverse(ctx, c, length);
  } else {
    const int64_t bins = onesided ? length / 2 + 1 : length;
    c.real = fitted(c.real, length);
    if (c.imaginary) c.imaginary = fitted(*c.imaginary, length);
    y = transform(ctx, c, length, bins, length, inverse);
    if (inverse) y = y / static_cast<double>(length);
  }
  out(ctx, 0, cast(swapped(y, axis, last), x.dtype()));
}

// Frames of the signal [batch, length, 1 | 2], each times the window, transformed: [batch, frames, bins, 2].
void stft(NodeContext& ctx) {
  const Expr signal = in(ctx, 0);
  const int64_t step = ctx.structural_ints(1).at(0);
  std::optional<Expr> window;
  if (ctx.has_input(2)) window = widened(in(ctx, 2));
  int64_t length;
  if (ctx.has_input(3))
    length = ctx.structural_ints(3).at(0);
  else if (window && window->dim(0).is_const())
    length = window->dim(0).value();
  else
    ctx.refuse("the frame length is not known");
  check_length(ctx, length);
  if (step < 1) ctx.invalid("frame_step must be positive");
  const Dim frames = ir::floor_div(signal.dim(1) - length, step) + 1;
  const Expr index =
      iota_along(ctx, frames, 0, 2) * static_cast<double>(step) + iota_along(ctx, length, 1, 2);
  Complex c = components(widened(signal));
  const auto framed = [&](const Expr& part) {
    const Expr cut = gather(part, index, 1);
    return window ? cut * cast(*window, cut.dtype()) : cut;
  };
  c.real = framed(c.real);
  if (c.imaginary) c.imaginary = framed(*c.imaginary);
  const int64_t bins = ctx.int_attr("onesided", 1) != 0 ? length / 2 + 1 : length;
  out(ctx, 0, cast(transform(ctx, c, length, bins, length, false), signal.dtype()));
}

double real_constant(NodeContext& ctx, size_t i) {
  const Tensor* value = ctx.constant_value(ctx.input(i));
  if (value == nullptr || value->size() != 1)
    ctx.refuse("operand " + std::to_string(i) + " must be a constant");
  return value->as_double(0);
}

// Triangular filters, equally spaced on the mel scale.
void mel_weight_matrix(NodeContext& ctx) {
  const int64_t filters = ctx.structural_ints(0).at(0), length = ctx.structural_ints(1).at(0);
  const int64_t rate = ctx.structural_ints(2).at(0), bins = length / 2 + 1;
  if (filters < 1 || length < 1 || rate < 1 || filters > kMaxTransform || length > kMaxTransform)
    ctx.invalid("the numbers of filters, points and samples must be positive and moderate");
  const auto mel = [](double hertz) { return 2595.0 * std::log10(1.0 + hertz / 700.0); };
  const double low = mel(real_constant(ctx, 3)), high = mel(real_constant(ctx, 4));
  const double step = (high - low) / static_cast<double>(filters + 2);
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < filters + 2; ++i) {
    const double hertz = 700.0 * (std::pow(10.0, (low + step * static_cast<double>(i)) / 2595.0) - 1.0);
    const double bin = std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    edges.push_back(static_cast<int64_t>(std::min(std::max(bin, 0.0), static_cast<double>(bins - 1))));
  }
  std::vector<double> weights(static_cast<size_t>(bins * filters), 0.0);
  for (int64_t i = 0; i < filters; ++i) {
    const int64_t left = edges[static_cast<size_t>(i)], middle = edges[static_cast<size_t>(i) + 1],
                  right = edges[static_cast<size_t>(i) + 2];
    const auto at = [&](int64_t bin) -> double& { return weights[static_cast<size_t>(bin * filters + i)]; };
    for (int64_t bin = left; bin <= middle; ++bin)
      at(bin) = left == middle ? 1.0 : static_cast<double>(bin - left) / static_cast<double>(middle - left);
    for (int64_t bin = middle; bin < right; ++bin)
      at(bin) = static_cast<double>(right - bin) / static_cast<double>(right - middle);
  }
  const DType dtype = dtype_of_onnx(static_cast<int32_t>(ctx.int_attr("output_datatype", 1)), ctx.op_type());
  out(ctx, 0, constant(ctx, Tensor::of(dtype, {bins, filters}, weights)));
}

}  // namespace

std::vector<OperatorImport> signal_imports() {
  return {
      {"", "DFT", 17, dft},
      {"", "STFT", 17, stft},
      {"", "MelWeightMatrix", 17, mel_weight_matrix},
  };
}

}  // namespace thrice::frontend::onnx
