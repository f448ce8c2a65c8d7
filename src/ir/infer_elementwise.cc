// Types of element-wise operators.
#include "ir/infer_rules.h"

namespace thrice::ir {
namespace {

enum class Domain { kAny, kNumeric, kFloat, kInteger, kBool };

Domain domain_of(Op op) {
  switch (op) {
    case Op::identity:
    case Op::cast:
    case Op::equal:
    case Op::where:
      return Domain::kAny;
    case Op::logical_not:
    case Op::logical_and:
    case Op::logical_or:
    case Op::logical_xor:
      return Domain::kBool;
    case Op::bitwise_not:
    case Op::bitwise_and:
    case Op::bitwise_or:
    case Op::bitwise_xor:
    case Op::shift_left:
    case Op::shift_right:
      return Domain::kInteger;
    case Op::neg:
    case Op::abs:
    case Op::sign:
    case Op::relu:
      return Domain::kNumeric;
    default:
      return op_class(op) == OpClass::kBinary ? Domain::kNumeric : Domain::kFloat;
  }
}

bool in_domain(Domain domain, DType dtype) {
  switch (domain) {
    case Domain::kAny:
      return true;
    case Domain::kNumeric:
      return is_float(dtype) || is_integer(dtype);
    case Domain::kFloat:
      return is_float(dtype);
    case Domain::kInteger:
      return is_integer(dtype);
    case Domain::kBool:
      return dtype == DType::kBool;
  }
  return false;
}

DType result_dtype(const InferContext& c) {
  switch (c.node.op) {
    case Op::cast: {
      const int64_t to = c.node.int_attr("to");
      if (to < 0 || to >= kNumDTypes) c.fail(fmt::format("type number {} does not exist", to));
      return static_cast<DType>(to);
    }
    case Op::is_nan:
    case Op::is_inf:
    case Op::equal:
    case Op::less:
    case Op::less_equal:
    case Op::greater:
    case Op::greater_equal:
      return DType::kBool;
    case Op::where:
      return c.dtype(1);
    default:
      return c.dtype(0);
  }
}

}  // namespace

std::vector<Fact> infer_elementwise(const InferContext& c) {
  const Op op = c.node.op;
  const size_t arity = op_class(op) == OpClass::kUnary ? 1 : op_class(op) == OpClass::kBinary ? 2 : 3;
  if (c.operands.size() != arity)
    c.fail(fmt::format("has {} operands, expected {}", c.operands.size(), arity));
  if (!in_domain(domain_of(op), c.dtype(0)))
    c.fail(fmt::format("is not defined on {}", dtype_name(c.dtype(0))));
  Shape shape = c.shape(0);
  if (op == Op::where) {
    c.require(c.dtype(0) == DType::kBool, "the condition is not bool");
    c.require_same_dtype(1, 2);
  } else if (arity == 2 && op == Op::pow) {
    c.require(in_domain(Domain::kNumeric, c.dtype(1)), "the exponent is not a number");
  } else if (arity == 2) {
    c.require_same_dtype(0, 1);
  }
  for (size_t i = 1; i < arity; ++i) shape = broadcast_shapes(c, shape, c.shape(i));
  return {Fact{{result_dtype(c), std::move(shape)}, nullptr, std::nullopt}};
}

}  // namespace thrice::ir
