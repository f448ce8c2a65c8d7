// Operators that are one element-wise IR operator, or a fold of one.
#include "frontend/onnx/ops/expr.h"
#include "frontend/onnx/ops/groups.h"

namespace thrice::frontend::onnx {
namespace {

template <Op op>
void unary(NodeContext& ctx) {
  out(ctx, 0, emit(op, in(ctx, 0)));
}

template <Op op>
void binary(NodeContext& ctx) {
  out(ctx, 0, emit(op, in(ctx, 0), in(ctx, 1)));
}

void identity(NodeContext& ctx) { unary<Op::identity>(ctx); }

void is_inf(NodeContext& ctx) {
  out(ctx, 0,
      emit(Op::is_inf, in(ctx, 0),
           {{"positive", ctx.int_attr("detect_positive", 1)},
            {"negative", ctx.int_attr("detect_negative", 1)}}));
}

void mod(NodeContext& ctx) {
  const bool c_sign = ctx.int_attr("fmod", 0) != 0;
  out(ctx, 0, emit(c_sign ? Op::fmod : Op::mod, in(ctx, 0), in(ctx, 1)));
}

// x ** y in x's dtype. f16 ** f32 is rounded once at the end.
void pow(NodeContext& ctx) { binary<Op::pow>(ctx); }

void bit_shift(NodeContext& ctx) {
  const std::string direction = ctx.string_attr("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") ctx.invalid("direction must be LEFT or RIGHT");
  const Expr x = in(ctx, 0), amount = in(ctx, 1);
  if (direction == "LEFT") return out(ctx, 0, emit(Op::shift_left, x, amount));
  if (is_unsigned_integer(x.dtype())) return out(ctx, 0, emit(Op::shift_right, x, amount));
  // Right shifts of negative numbers fill with ones: the complement is shifted.
  const Expr negative = less(x, 0.0);
  const Expr shifted = emit(Op::shift_right, where(negative, emit(Op::bitwise_not, x), x), amount);
  out(ctx, 0, where(negative, emit(Op::bitwise_not, shifted), shifted));
}

template <Op op>
void fold(NodeContext& ctx) {
  if (ctx.num_inputs() == 0) ctx.invalid("no operands");
  Expr result = in(ctx, 0);
  if (ctx.num_inputs() == 1) result = emit(Op::identity, result);
  for (size_t i = 1; i < ctx.num_inputs(); ++i) result = emit(op, result, in(ctx, i));
  out(ctx, 0, result);
}

void mean(NodeContext& ctx) {
  if (ctx.num_inputs() == 0) ctx.invalid("no operands");
  Expr total = widened(in(ctx, 0));
  for (size_t i = 1; i < ctx.num_inputs(); ++i) total = total + widened(in(ctx, i));
  out(ctx, 0, cast(total / static_cast<double>(ctx.num_inputs()), in(ctx, 0).dtype()));
}

void where_(NodeContext& ctx) { out(ctx, 0, where(in(ctx, 0), in(ctx, 1), in(ctx, 2))); }

// Bounds may be absent. low > high gives high everywhere.
void clip(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  Expr y = x;
  if (ctx.opset() < 11) {
    if (ctx.has_attr("min")) y = maximum(y, ctx.float_attr("min", 0));
    if (ctx.has_attr("max")) y = minimum(y, ctx.float_attr("max", 0));
  } else {
    if (ctx.has_input(1)) y = maximum(y, reshape(in(ctx, 1), {}));
    if (ctx.has_input(2)) y = minimum(y, reshape(in(ctx, 2), {}));
  }
  out(ctx, 0, y.id() == x.id() ? emit(Op::identity, x) : y);
}

}  // namespace

std::vector<OperatorImport> elementwise_imports() {
  return {
      {"", "Abs", 1, unary<Op::abs>},
      {"", "Neg", 1, unary<Op::neg>},
      {"", "Sign", 9, unary<Op::sign>},
      {"", "Floor", 1, unary<Op::floor>},
      {"", "Ceil", 1, unary<Op::ceil>},
      {"", "Round", 11, unary<Op::round>},
      {"", "Sqrt", 1, unary<Op::sqrt>},
      {"", "Reciprocal", 1, unary<Op::reciprocal>},
      {"", "Exp", 1, unary<Op::exp>},
      {"", "Log", 1, unary<Op::log>},
      {"", "Sin", 7, unary<Op::sin>},
      {"", "Cos", 7, unary<Op::cos>},
      {"", "Tan", 7, unary<Op::tan>},
      {"", "Asin", 7, unary<Op::asin>},
      {"", "Acos", 7, unary<Op::acos>},
      {"", "Atan", 7, unary<Op::atan>},
      {"", "Sinh", 9, unary<Op::sinh>},
      {"", "Cosh", 9, unary<Op::cosh>},
      {"", "Tanh", 1, unary<Op::tanh>},
      {"", "Asinh", 9, unary<Op::asinh>},
      {"", "Acosh", 9, unary<Op::acosh>},
      {"", "Atanh", 9, unary<Op::atanh>},
      {"", "Erf", 9, unary<Op::erf>},
      {"", "Sigmoid", 1, unary<Op::sigmoid>},
      {"", "Relu", 1, unary<Op::relu>},
      {"", "Not", 1, unary<Op::logical_not>},
      {"", "BitwiseNot", 18, unary<Op::bitwise_not>},
      {"", "IsNaN", 9, unary<Op::is_nan>},
      {"", "IsInf", 10, is_inf},
      {"", "Identity", 1, identity},
      {"", "Add", 7, binary<Op::add>},
      {"", "Sub", 7, binary<Op::sub>},
      {"", "Mul", 7, binary<Op::mul>},
      {"", "Div", 7, binary<Op::div>},
      {"", "Pow", 7, pow},
      {"", "Mod", 10, mod},
      {"", "And", 7, binary<Op::logical_and>},
      {"", "Or", 7, binary<Op::logical_or>},
      {"", "Xor", 7, binary<Op::logical_xor>},
      {"", "BitwiseAnd", 18, binary<Op::bitwise_and>},
      {"", "BitwiseOr", 18, binary<Op::bitwise_or>},
      {"", "BitwiseXor", 18, binary<Op::bitwise_xor>},
      {"", "BitShift", 11, bit_shift},
      {"", "Equal", 7, binary<Op::equal>},
      {"", "Less", 7, binary<Op::less>},
      {"", "LessOrEqual", 12, binary<Op::less_equal>},
      {"", "Greater", 7, binary<Op::greater>},
      {"", "GreaterOrEqual", 12, binary<Op::greater_equal>},
      {"", "Min", 6, fold<Op::min>},
      {"", "Max", 6, fold<Op::max>},
      {"", "Sum", 6, fold<Op::add>},
      {"", "Mean", 6, mean},
      {"", "Where", 9, where_},
      {"", "Clip", 6, clip},
  };
}

}  // namespace thrice::frontend::onnx
