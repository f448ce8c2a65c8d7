// Element types.
#include "frontend/onnx/ops/expr.h"
#include "frontend/onnx/ops/groups.h"
#include "frontend/onnx/tensor_decode.h"

namespace thrice::frontend::onnx {
namespace {

void convert(NodeContext& ctx, DType to) {
  const Expr x = in(ctx, 0);
  if (x.dtype() == to) return out(ctx, 0, emit(Op::identity, x));
  // Beyond the range of a 4-bit or 2-bit integer the value wraps, as between integers.
  if (is_float(x.dtype()) && is_integer(to) && dtype_bits(to) < 8)
    return out(ctx, 0, cast(cast(x, DType::kI32), to));
  // f4 has no NaN: it becomes -0.
  if (is_float(x.dtype()) && to == DType::kF4E2M1)
    return out(ctx, 0, cast(where(emit(Op::is_nan, x), -0.0, x), to));
  Attributes attrs{{"to", static_cast<int64_t>(to)}, {"saturate", ctx.int_attr("saturate", 1)}};
  if (to == DType::kF8E8M0) attrs["round_mode"] = ctx.string_attr("round_mode", "up");
  out(ctx, 0, emit(Op::cast, x, attrs));
}

void cast_(NodeContext& ctx) {
  convert(ctx, dtype_of_onnx(static_cast<int32_t>(ctx.int_attr("to")), ctx.op_type()));
}

void cast_like(NodeContext& ctx) { convert(ctx, in(ctx, 1).dtype()); }

void bit_cast(NodeContext& ctx) {
  const DType to = dtype_of_onnx(static_cast<int32_t>(ctx.int_attr("to")), ctx.op_type());
  const Expr x = in(ctx, 0);
  if (x.dtype() == to) return out(ctx, 0, emit(Op::identity, x));
  if (x.dtype() == DType::kBool && to == DType::kU8) return out(ctx, 0, cast(x, to));
  if (is_integer(x.dtype()) && is_integer(to) && dtype_bits(x.dtype()) == dtype_bits(to))
    return out(ctx, 0, cast(x, to));  // wraps, so the bits stay
  ctx.refuse("bits of " + std::string(dtype_name(x.dtype())) + " read as " + std::string(dtype_name(to)));
}

}  // namespace

std::vector<OperatorImport> cast_imports() {
  return {
      {"", "Cast", 6, cast_},
      {"", "CastLike", 15, cast_like},
      {"", "BitCast", 26, bit_cast},
  };
}

}  // namespace thrice::frontend::onnx
