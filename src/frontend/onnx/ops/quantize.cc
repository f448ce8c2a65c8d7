// Quantization: integers with zero points, 8-bit and 4-bit floats, per tensor, per axis and blocked.
#include "frontend/onnx/ops/quantize.h"

#include "frontend/onnx/graph_builder.h"
#include "frontend/onnx/ops/groups.h"
#include "frontend/onnx/tensor_decode.h"

namespace thrice::frontend::onnx {

Expr requantized(const Expr& x, const Expr& zero) {
  const Expr offset = zero.rank() == 1 && zero.dim(0) == Dim(1) ? reshape(zero, {}) : zero;
  // A cast to a narrow integer clamps; NaN becomes the zero that every such cast gives.
  if (!is_integer(zero.dtype())) return cast(x + cast(offset, x.dtype()), zero.dtype());
  return cast(emit(Op::round, x) + cast(offset, x.dtype()), zero.dtype());
}

Expr dequantized(const Expr& x, NodeContext& ctx, size_t scale_input) {
  const Expr scale = reshape(cast(in(ctx, scale_input), DType::kF32), {});
  Expr wide = cast(x, DType::kI32);
  if (ctx.has_input(scale_input + 1)) wide = wide - reshape(cast(in(ctx, scale_input + 1), DType::kI32), {});
  return cast(wide, DType::kF32) * scale;
}

namespace {

// Scale or zero point beside x: one element, a vector along `axis`, or blocks of x along it.
Expr parameter(NodeContext& ctx, const Expr& x, const Expr& value) {
  if (value.rank() == 0) return value;
  const int64_t block = ctx.int_attr("block_size", 0);
  if (value.rank() == 1 && value.dim(0) == Dim(1) && block == 0 && x.rank() != 1) return reshape(value, {});
  if (value.rank() == 1 && value.dim(0) == Dim(1) && x.rank() == 1 && block == 0) return value;
  const int64_t axis = ctx.axis(x.id(), ctx.int_attr("axis", 1));
  if (block == 0) return value.rank() == 1 ? along(value, axis, x.rank()) : value;
  if (value.rank() != x.rank()) ctx.invalid("blocked scales need the operand's rank");
  const Expr index = iota(ctx, x.dim(axis)) / static_cast<double>(block);
  return gather(value, index, axis);
}

// An f32 value as it will be stored: the float64 evaluator rounds here, and a device does nothing. Which
// integer x / scale rounds to hangs on the last bits of the scale and of the quotient.
Expr stored(const Expr& x) {
  const bool computed = x.ctx().builder().graph().value(x.id()).producer >= 0;
  return computed && x.dtype() == DType::kF32 ? cast(cast(x, DType::kF64), DType::kF32) : x;
}

void quantize_linear(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  DType dtype = DType::kU8;
  if (ctx.has_input(2))
    dtype = in(ctx, 2).dtype();
  else if (ctx.int_attr("output_dtype", 0) != 0)
    dtype = dtype_of_onnx(static_cast<int32_t>(ctx.int_attr("output_dtype")), ctx.op_type());
  const DType wide = x.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  const Expr scaled = stored(cast(x, wide) / cast(parameter(ctx, x, stored(in(ctx, 1))), wide));
  if (is_integer(dtype)) {
    Expr y = emit(Op::round, scaled);
    if (ctx.has_input(2)) y = y + cast(parameter(ctx, x, in(ctx, 2)), wide);
    return out(ctx, 0, cast(y, dtype));
  }
  Expr y = scaled;
  if (ctx.has_input(2)) y = y + cast(parameter(ctx, x, in(ctx, 2)), wide);
  out(ctx, 0,
      emit(Op::cast, y, {{"to", static_cast<int64_t>(dtype)}, {"saturate", ctx.int_attr("saturate", 1)}}));
}

void dequantize_linear(NodeContext& ctx) {
  const Expr x = in(ctx, 0), scale = in(ctx, 1);
  DType dtype = scale.dtype();
  if (ctx.int_attr("output_dtype", 0) != 0)
    dtype = dtype_of_onnx(static_cast<int32_t>(ctx.int_attr("output_dtype")), ctx.op_type());
  const DType wide = dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  Expr value = is_integer(x.dtype()) ? cast(x, DType::kI32) : cast(x, wide);
  if (ctx.has_input(2)) value = value - cast(parameter(ctx, x, in(ctx, 2)), value.dtype());
  out(ctx, 0, cast(cast(value, wide) * cast(parameter(ctx, x, scale), wide), dtype));
}

void dynamic_quantize_linear(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  const std::vector<int64_t> all = axes_from(0, x.rank());
  const Expr high = maximum(reduce(x, "max", all, false), 0.0);
  const Expr low = minimum(reduce(x, "min", all, false), 0.0);
  const Expr span = (high - low) / 255.0;
  // All zeros: any scale serves, 0 would divide by itself.
  const Expr scale = stored(where(equal(span, 0.0), 1.0, span));
  const Expr zero = cast(emit(Op::round, stored(-low / scale)), DType::kU8);
  out(ctx, 0, cast(emit(Op::round, stored(x / scale)) + cast(zero, x.dtype()), DType::kU8));
  out(ctx, 1, scale);
  out(ctx, 2, zero);
}

}  // namespace

std::vector<OperatorImport> quantize_imports() {
  return {
      {"", "QuantizeLinear", 10, quantize_linear},
      {"", "DequantizeLinear", 10, dequantize_linear},
      {"", "DynamicQuantizeLinear", 11, dynamic_quantize_linear},
      {"com.microsoft", "QuantizeLinear", 1, quantize_linear},
      {"com.microsoft", "DequantizeLinear", 1, dequantize_linear},
  };
}

}  // namespace thrice::frontend::onnx
