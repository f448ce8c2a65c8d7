// The operators of the intermediate form: few, typed, exactly defined (docs/ops.md). A model's operators are
// built from them by the front end.
#pragma once
#include <string_view>

namespace thrice::ir {

// Class decides how a kernel family may treat an operator.
enum class OpClass {
  kUnary,    // element-wise, one operand (kIota and kCast too)
  kBinary,   // element-wise, two operands, NumPy broadcasting
  kTernary,  // where
  kView,     // moves elements; each output element is one input element or a constant
  kReduce,
  kHeavy,    // matmul, conv, pool, ...
  kHost,     // shape arithmetic, data-dependent sizes: runs on the host
  kControl,  // if, loop, scan
};

// X-macro: name, class. Semantics, operands and attributes of each: docs/ops.md.
// clang-format off
#define THRICE_OPS(X)                                                                                    \
  X(neg, kUnary) X(abs, kUnary) X(sign, kUnary) X(floor, kUnary) X(ceil, kUnary) X(round, kUnary)        \
  X(sqrt, kUnary) X(rsqrt, kUnary) X(reciprocal, kUnary) X(exp, kUnary) X(expm1, kUnary) X(log, kUnary)  \
  X(log1p, kUnary) X(sin, kUnary) X(cos, kUnary) X(tan, kUnary) X(asin, kUnary) X(acos, kUnary)          \
  X(atan, kUnary) X(sinh, kUnary) X(cosh, kUnary) X(tanh, kUnary) X(asinh, kUnary) X(acosh, kUnary)      \
  X(atanh, kUnary) X(erf, kUnary) X(sigmoid, kUnary) X(relu, kUnary) X(logical_not, kUnary)              \
  X(bitwise_not, kUnary) X(is_nan, kUnary) X(is_inf, kUnary) X(cast, kUnary) X(identity, kUnary)         \
  X(add, kBinary) X(sub, kBinary) X(mul, kBinary) X(div, kBinary) X(mod, kBinary) X(fmod, kBinary)       \
  X(pow, kBinary) X(min, kBinary) X(max, kBinary) X(logical_and, kBinary) X(logical_or, kBinary)         \
  X(logical_xor, kBinary) X(bitwise_and, kBinary) X(bitwise_or, kBinary) X(bitwise_xor, kBinary)         \
  X(shift_left, kBinary) X(shift_right, kBinary) X(equal, kBinary) X(less, kBinary)                      \
  X(less_equal, kBinary) X(greater, kBinary) X(greater_equal, kBinary)                                   \
  X(where, kTernary)                                                                                     \
  X(iota, kView) X(reshape, kView) X(transpose, kView) X(slice, kView) X(expand, kView) X(concat, kView) \
  X(pad, kView) X(tile, kView) X(gather, kView) X(gather_elements, kView) X(gather_nd, kView)            \
  X(reduce, kReduce) X(arg_reduce, kReduce)                                                              \
  X(matmul, kHeavy) X(conv, kHeavy) X(conv_transpose, kHeavy) X(pool, kHeavy) X(resize, kHeavy)          \
  X(scan_sum, kHeavy) X(top_k, kHeavy) X(scatter_elements, kHeavy) X(scatter_nd, kHeavy)                 \
  X(grid_sample, kHeavy) X(roi_align, kHeavy)                                                            \
  X(shape, kHost) X(nonzero, kHost) X(unique, kHost) X(compress, kHost) X(non_max_suppression, kHost)    \
  X(det, kHost) X(random, kHost) X(host_function, kHost)                                                 \
  X(if_, kControl) X(loop, kControl) X(scan, kControl)
// clang-format on

enum class Op {
#define THRICE_OP_ENUM(name, cls) name,
  THRICE_OPS(THRICE_OP_ENUM)
#undef THRICE_OP_ENUM
};

std::string_view op_name(Op op);     // "scatter_nd", "if"
Op parse_op(std::string_view name);  // throws kInvalidArgument
OpClass op_class(Op op);
// Element-wise: output element i depends on element i of each (broadcast) operand only.
bool is_elementwise(Op op);

}  // namespace thrice::ir
