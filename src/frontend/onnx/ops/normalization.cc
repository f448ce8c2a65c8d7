// Normalizations. Statistics of 16-bit floats are computed in f32 (stash_type) and rounded once.
#include "frontend/onnx/ops/normalization.h"

#include <algorithm>

#include "frontend/onnx/ops/groups.h"

namespace thrice::frontend::onnx {

Moments moments(const Expr& x, const std::vector<int64_t>& axes) {
  const Expr mean = reduce(x, "mean", axes), centred = x - mean;
  return {mean, centred, reduce(centred * centred, "mean", axes)};
}

Expr inverse_rms(const Expr& x, const std::vector<int64_t>& axes, double epsilon) {
  return emit(Op::reciprocal, emit(Op::sqrt, reduce(x * x, "mean", axes) + epsilon));
}

Normalized layer_normalized(const Expr& x, int64_t axis, double epsilon) {
  const Moments m = moments(x, axes_from(axis, x.rank()));
  const Expr inverse = emit(Op::reciprocal, emit(Op::sqrt, m.variance + epsilon));
  return {m.centred * inverse, m.mean, inverse};
}

namespace {

// A [C] operand beside x [N, C, ...].
Expr per_channel(const Expr& vector, const Expr& x) {
  return along(widened(vector), 1, std::max<int64_t>(x.rank(), 2));
}

void batch_normalization(NodeContext& ctx) {
  const Expr x = in(ctx, 0), wide = widened(x);
  if (x.rank() < 2) ctx.refuse("the operand has no channel axis");
  if (ctx.opset() < 9 && ctx.int_attr("spatial", 1) == 0)
    ctx.refuse("spatial=0: one statistic for each element");
  const double epsilon = ctx.float_attr("epsilon", 1e-5);
  const bool training = ctx.opset() >= 14 && ctx.int_attr("training_mode", 0) != 0;
  if (ctx.opset() < 14)
    for (size_t i = 1; i < ctx.num_outputs(); ++i)
      if (ctx.wants_output(i)) ctx.refuse("outputs of the training form: export the model for inference");
  const Expr scale = per_channel(in(ctx, 1), x), bias = per_channel(in(ctx, 2), x);
  Expr mean = per_channel(in(ctx, 3), x), variance = per_channel(in(ctx, 4), x), centred = wide;
  if (training) {
    std::vector<int64_t> axes{0};
    for (int64_t axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
    const Moments batch = moments(wide, axes);
    const double momentum = ctx.float_attr("momentum", 0.9);
    const auto running = [&](size_t operand, const Expr& now) {
      const Expr old = in(ctx, operand);
      const Expr flat = reshape(now, {x.dim(1)});
      return cast(widened(old) * momentum + cast(flat, widened(old).dtype()) * (1 - momentum), old.dtype());
    };
    out(ctx, 1, running(3, batch.mean));
    out(ctx, 2, running(4, batch.variance));
    centred = batch.centred;
    variance = batch.variance;
  } else {
    centred = wide - cast(mean, wide.dtype());
  }
  const DType dtype = wide.dtype();
  const Expr factor = cast(scale, dtype) / emit(Op::sqrt, cast(variance, dtype) + epsilon);
  out(ctx, 0, cast(centred * factor + cast(bias, dtype), x.dtype()));
}

void instance_normalization(NodeContext& ctx) {
  const Expr x = in(ctx, 0), wide = widened(x);
  const Moments m = moments(wide, axes_from(2, x.rank()));
  const Expr inverse = emit(Op::reciprocal, emit(Op::sqrt, m.variance + ctx.float_attr("epsilon", 1e-5)));
  out(ctx, 0, cast(m.centred * inverse * per_channel(in(ctx, 1), x) + per_channel(in(ctx, 2), x), x.dtype()));
}

// x [N, C, ...] as [N, groups, rest]. Scale and bias are one a group before opset 21, one a channel since.
void group_normalization(NodeContext& ctx) {
  const Expr x = in(ctx, 0), wide = widened(x);
  const int64_t groups = ctx.int_attr("num_groups");
  if (x.rank() < 2 || groups < 1) ctx.invalid("needs rank 2 or more and a positive num_groups");
  const ir::Shape& s = x.shape();
  const Dim rest = ir::floor_div(s[1], groups) * ir::num_elements(ir::Shape(s.begin() + 2, s.end()));
  const Expr grouped = reshape(wide, {s[0], groups, rest});
  const Expr normal = layer_normalized(grouped, 2, ctx.float_attr("epsilon", 1e-5)).value;
  const Expr scale = widened(in(ctx, 1)), bias = widened(in(ctx, 2));
  if (scale.dim(0) == Dim(groups) && !(s[1] == Dim(groups)))
    out(ctx, 0, cast(reshape(normal * along(scale, 1, 3) + along(bias, 1, 3), s), x.dtype()));
  else
    out(ctx, 0, cast(reshape(normal, s) * per_channel(scale, x) + per_channel(bias, x), x.dtype()));
}

void layer_normalization(NodeContext& ctx) {
  const Expr x = in(ctx, 0), wide = widened(x);
  const int64_t axis = ctx.axis(x.id(), ctx.int_attr("axis", -1));
  const Normalized n = layer_normalized(wide, axis, ctx.float_attr("epsilon", 1e-5));
  Expr y = n.value * cast(in(ctx, 1), wide.dtype());
  if (ctx.has_input(2)) y = y + cast(in(ctx, 2), wide.dtype());
  out(ctx, 0, cast(y, x.dtype()));
  out(ctx, 1, n.mean);
  out(ctx, 2, n.inverse_deviation);
}

void rms_normalization(NodeContext& ctx) {
  const Expr x = in(ctx, 0), scale = in(ctx, 1);
  Expr wide = widened(x);
  if (ctx.int_attr("stash_type", 1) == 11) wide = cast(x, DType::kF64);
  const std::vector<int64_t> axes = axes_from(ctx.axis(x.id(), ctx.int_attr("axis", -1)), x.rank());
  const Expr inverse = inverse_rms(wide, axes, ctx.float_attr("epsilon", 1e-5));
  out(ctx, 0, cast(wide * inverse * cast(scale, wide.dtype()), scale.dtype()));
}

void mean_variance_normalization(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  std::vector<int64_t> axes = ctx.ints_attr("axes", {0, 2, 3});
  for (int64_t& axis : axes) axis = ctx.axis(x.id(), axis);
  std::sort(axes.begin(), axes.end());
  const Moments m = moments(widened(x), axes);
  out(ctx, 0, cast(m.centred / (emit(Op::sqrt, m.variance) + 1e-9), x.dtype()));
}

void lp_normalization(NodeContext& ctx) {
  const Expr x = in(ctx, 0), wide = widened(x);
  const std::vector<int64_t> axis{ctx.axis(x.id(), ctx.int_attr("axis", -1))};
  const int64_t p = ctx.int_attr("p", 2);
  if (p != 1 && p != 2) ctx.invalid("p must be 1 or 2");
  const Expr norm =
      p == 1 ? reduce(emit(Op::abs, wide), "sum", axis) : emit(Op::sqrt, reduce(wide * wide, "sum", axis));
  out(ctx, 0, cast(wide / where(equal(norm, 0.0), 1.0, norm), x.dtype()));
}

// Squares summed over a window of channels: a pool over [N, 1, C, rest].
void local_response_normalization(NodeContext& ctx) {
  const Expr x = in(ctx, 0), wide = widened(x);
  const int64_t size = ctx.int_attr("size");
  if (x.rank() < 3 || size < 1) ctx.invalid("needs rank 3 or more and a positive size");
  const ir::Shape& s = x.shape();
  const Dim rest = ir::num_elements(ir::Shape(s.begin() + 2, s.end()));
  const int64_t before = (size - 1) / 2, after = size - 1 - before;
  const Expr window = emit(Op::pool, reshape(wide * wide, {s[0], 1, s[1], rest}),
                           {{"kind", std::string("sum")},
                            {"kernel", std::vector<int64_t>{size, 1}},
                            {"strides", std::vector<int64_t>{1, 1}},
                            {"dilations", std::vector<int64_t>{1, 1}},
                            {"pads", std::vector<int64_t>{before, 0, after, 0}},
                            {"auto_pad", std::string("notset")}});
  const double alpha = ctx.float_attr("alpha", 1e-4) / static_cast<double>(size);
  const Expr base = ctx.float_attr("bias", 1.0) + alpha * reshape(window, s);
  out(ctx, 0, cast(wide / power(base, ctx.float_attr("beta", 0.75)), x.dtype()));
}

}  // namespace

std::vector<OperatorImport> normalization_imports() {
  return {
      {"", "BatchNormalization", 7, batch_normalization},
      {"", "InstanceNormalization", 6, instance_normalization},
      {"", "GroupNormalization", 18, group_normalization},
      {"", "LayerNormalization", 1, layer_normalization},  // since 17; exporters wrote it earlier, too
      {"", "RMSNormalization", 23, rms_normalization},
      {"", "SimplifiedLayerNormalization", 1, rms_normalization},  // the name before opset 23
      {"", "MeanVarianceNormalization", 9, mean_variance_normalization},
      {"", "LpNormalization", 1, lp_normalization},
      {"", "LRN", 1, local_response_normalization},
  };
}

}  // namespace thrice::frontend::onnx
