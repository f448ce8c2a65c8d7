// Contrib operators of the domain com.microsoft on quantized tensors.
#include "frontend/onnx/ops/activation.h"
#include "frontend/onnx/ops/groups.h"
#include "frontend/onnx/ops/product.h"
#include "frontend/onnx/ops/quantize.h"
#include "frontend/onnx/ops/softmax.h"
#include "frontend/onnx/ops/window.h"

namespace thrice::frontend::onnx {
namespace {

constexpr const char* kDomain = "com.microsoft";

// f32 value to the quantized type of operands `scale` (scale) and `scale` + 1 (zero point).
void quantized(NodeContext& ctx, const Expr& y, size_t scale) {
  const Expr divided = y / reshape(cast(in(ctx, scale), DType::kF32), {});
  const Expr zero = ctx.has_input(scale + 1) ? in(ctx, scale + 1) : number(ctx, in(ctx, 0).dtype(), 0);
  out(ctx, 0, requantized(divided, zero));
}

template <Op op>
void binary(NodeContext& ctx) {
  quantized(ctx, emit(op, dequantized(in(ctx, 0), ctx, 1), dequantized(in(ctx, 3), ctx, 4)), 6);
}

void sigmoid(NodeContext& ctx) { quantized(ctx, emit(Op::sigmoid, dequantized(in(ctx, 0), ctx, 1)), 3); }

void leaky_relu_(NodeContext& ctx) {
  quantized(ctx, leaky_relu(dequantized(in(ctx, 0), ctx, 1), ctx.float_attr("alpha", 0.01)), 3);
}

void softmax_(NodeContext& ctx) {
  const Expr x = dequantized(in(ctx, 0), ctx, 1);
  const int64_t axis = ctx.axis(x.id(), ctx.int_attr("axis", -1));
  quantized(
      ctx,
      softmax(x, ctx.int_attr("opset", 13) < 13 ? axes_from(axis, x.rank()) : std::vector<int64_t>{axis}), 3);
}

void no_channels_last(NodeContext& ctx) {
  if (ctx.int_attr("channels_last", 0) != 0) ctx.refuse("channels_last; export without layout optimizations");
}

void global_average_pool(NodeContext& ctx) {
  no_channels_last(ctx);
  const Expr x = dequantized(in(ctx, 0), ctx, 1);
  quantized(ctx, reduce(x, "mean", axes_from(2, x.rank())), 3);
}

void average_pool(NodeContext& ctx) {
  no_channels_last(ctx);
  const Expr x = dequantized(in(ctx, 0), ctx, 1);
  Attributes attrs = window_attributes(ctx, x.rank() - 2);
  attrs["kind"] = std::string("avg");
  attrs["kernel"] = ctx.ints_attr("kernel_shape");
  attrs["ceil_mode"] = ctx.int_attr("ceil_mode", 0);
  attrs["count_include_pad"] = ctx.int_attr("count_include_pad", 0);
  quantized(ctx, emit(Op::pool, x, attrs), 3);
}

// Operands: y scale, y zero point, then value, scale, zero point of each part.
void concat_(NodeContext& ctx) {
  std::vector<Expr> parts;
  for (size_t i = 2; i + 2 < ctx.num_inputs(); i += 3) parts.push_back(dequantized(in(ctx, i), ctx, i + 1));
  if (parts.empty()) ctx.invalid("no operands");
  quantized(ctx, concat(parts, ctx.int_attr("axis")), 0);
}

Expr scale_along(NodeContext& ctx, size_t input, int64_t axis, int64_t rank) {
  const Expr scale = cast(in(ctx, input), DType::kF32);
  return scale.rank() == 1 && !(scale.dim(0) == Dim(1)) ? along(scale, axis, rank) : reshape(scale, {});
}

// Operands: a, a_scale, a_zero, b, b_scale, b_zero, c (i32), y_scale, y_zero; without y_scale the result is
// f32.
void qgemm(NodeContext& ctx) {
  const bool trans_b = ctx.int_attr("transB", 0) != 0;
  const Expr a = centred_integer(in(ctx, 0), ctx, 2, 0),
             b = centred_integer(in(ctx, 3), ctx, 5, trans_b ? 0 : 1);
  Expr sum = matmul(a, b, ctx.int_attr("transA", 0) != 0, trans_b);
  if (ctx.has_input(6)) sum = sum + in(ctx, 6);
  const Expr y = cast(sum, DType::kF32) *
                 (scale_along(ctx, 1, 0, 2) * scale_along(ctx, 4, 1, 2) * ctx.float_attr("alpha", 1.0));
  if (ctx.has_input(7)) return quantized(ctx, y, 7);
  out(ctx, 0, y);
}

// Operands: a, b, a_scale, b_scale, a_zero, b_zero, bias.
void matmul_integer_to_float(NodeContext& ctx) {
  const Expr a = in(ctx, 0), b = in(ctx, 1);
  const Expr sum = numpy_matmul(centred_integer(a, ctx, 4, 0), centred_integer(b, ctx, 5, -1));
  Expr y = cast(sum, DType::kF32) *
           (scale_along(ctx, 2, 0, sum.rank()) * scale_along(ctx, 3, sum.rank() - 1, sum.rank()));
  if (ctx.has_input(6)) y = y + in(ctx, 6);
  out(ctx, 0, y);
}

// 4-bit weights, two in a byte, low nibble first: b [n, blocks, block / 2], scales [n * blocks], zero points
// packed alike (8 where absent). y = a * dequantized(b)^T.
void matmul_nbits(NodeContext& ctx) {
  const int64_t k = ctx.int_attr("K"), n = ctx.int_attr("N"), block = ctx.int_attr("block_size");
  if (ctx.int_attr("bits", 4) != 4) ctx.refuse("weights of other than 4 bits");
  if (ctx.has_input(4)) ctx.refuse("reordered weights (g_idx)");
  if (k < 1 || n < 1 || block < 2) ctx.invalid("K, N and block_size must be positive");
  const Expr a = in(ctx, 0);
  const int64_t blocks = (k + block - 1) / block;
  const auto nibbles = [&](const Expr& packed, int64_t rows, int64_t columns) {
    const Expr bytes = reshape(packed, {rows, ir::floor_div(ir::num_elements(packed.shape()), rows), 1});
    const Expr low = emit(Op::bitwise_and, bytes, number(ctx, DType::kU8, 15));
    const Expr high = emit(Op::shift_right, bytes, number(ctx, DType::kU8, 4));
    return slice(reshape(concat({low, high}, 2), {rows, bytes.dim(1) * 2}), 1, 0, columns);
  };
  const Expr b = reshape(cast(nibbles(in(ctx, 1), n, blocks * block), DType::kF32), {n, blocks, block});
  const Expr scale = reshape(widened(in(ctx, 2)), {n, blocks, 1});
  Expr weight = b;
  if (ctx.has_input(3)) {
    const Expr zero = in(ctx, 3);
    weight =
        b - (is_float(zero.dtype()) ? reshape(widened(zero), {n, blocks, 1})
                                    : reshape(cast(nibbles(zero, n, blocks), DType::kF32), {n, blocks, 1}));
  } else {
    weight = b - 8.0;
  }
  const Expr whole = slice(reshape(weight * scale, {n, blocks * block}), 1, 0, k);
  Expr y = matmul(a, cast(whole, a.dtype()), false, true);
  if (ctx.has_input(5)) y = y + in(ctx, 5);
  out(ctx, 0, y);
}

}  // namespace

std::vector<OperatorImport> contrib_quantized_imports() {
  return {
      {kDomain, "QLinearAdd", 1, binary<Op::add>},
      {kDomain, "QLinearMul", 1, binary<Op::mul>},
      {kDomain, "QLinearSigmoid", 1, sigmoid},
      {kDomain, "QLinearLeakyRelu", 1, leaky_relu_},
      {kDomain, "QLinearSoftmax", 1, softmax_},
      {kDomain, "QLinearGlobalAveragePool", 1, global_average_pool},
      {kDomain, "QLinearAveragePool", 1, average_pool},
      {kDomain, "QLinearConcat", 1, concat_},
      {kDomain, "QGemm", 1, qgemm},
      {kDomain, "MatMulIntegerToFloat", 1, matmul_integer_to_float},
      {kDomain, "MatMulNBits", 1, matmul_nbits},
  };
}

}  // namespace thrice::frontend::onnx
