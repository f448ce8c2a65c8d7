#include "family/scalar.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <cmath>
#include <limits>

namespace thrice::family {

using ir::Op;

namespace {

bool computes_in_float(DType t) { return t == DType::kF32 || t == DType::kF16 || t == DType::kBF16; }

std::string unsigned_type(DType t) { return dtype_bits(t) == 64 ? "th_u64" : "th_u32"; }

[[noreturn]] void refuse(const ir::Node& node, DType dtype) {
  throw Error(Code::kUnsupported,
              fmt::format("no kernel text for operator {} on {}", ir::op_name(node.op), dtype_name(dtype)));
}

std::string call(const std::string& name, DType t, const std::string& arguments) {
  return fmt::format("th_{}_{}({})", name, compute_suffix(t), arguments);
}

// a op b on integers of any width, wrapping, without signed overflow.
std::string wrapping(DType t, const std::string& a, const char* op, const std::string& b) {
  const std::string u = unsigned_type(t);
  return fmt::format("({})(({}){} {} ({}){})", compute_type(t), u, a, op, u, b);
}

std::string arithmetic(DType t, const std::string& a, const char* op, const std::string& b) {
  return is_float(t) ? fmt::format("({} {} {})", a, op, b) : wrapping(t, a, op, b);
}

int64_t lowest_int(DType t) {
  if (is_unsigned_integer(t) || t == DType::kBool) return 0;
  return dtype_bits(t) == 64 ? std::numeric_limits<int64_t>::min() : -(int64_t{1} << (dtype_bits(t) - 1));
}

int64_t highest_int(DType t) {  // u64: the pattern of all ones
  if (t == DType::kBool) return 1;
  if (is_unsigned_integer(t)) return dtype_bits(t) == 64 ? -1 : (int64_t{1} << dtype_bits(t)) - 1;
  return dtype_bits(t) == 64 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << (dtype_bits(t) - 1)) - 1;
}

std::string power(const ir::Node& node, DType base, DType exponent, const std::string& a,
                  const std::string& b) {
  if (is_float(base)) {
    // A small whole exponent that is a literal is products, exact to a rounding and far cheaper.
    for (const DType t : {DType::kF32, DType::kF64, DType::kI32, DType::kI64}) {
      const auto is = [&](int64_t e) {
        return b == (is_float(t) ? float_literal(t, static_cast<double>(e)) : int_literal(t, e));
      };
      if (is(1)) return a;
      if (is(2)) return fmt::format("({0} * {0})", a);
      if (is(3)) return fmt::format("({0} * {0} * {0})", a);
    }
    const bool wide = base == DType::kF64;
    const std::string e = fmt::format("({}){}", wide ? "double" : "float", b);
    return call("pow", base, a + ", " + e);
  }
  if (!is_integer(base)) refuse(node, base);
  if (!is_float(exponent)) return call("ipow", base, fmt::format("{}, (th_i64){}", a, b));
  const std::string f = exponent == DType::kF64 ? "f64" : "f32";
  const std::string real = exponent == DType::kF64 ? "double" : "float";
  // A whole exponent is an exact integer power; others go through the float function and truncate.
  return fmt::format(
      "(th_floor_{0}({1}) == {1} ? th_ipow_{2}({3}, th_i64_of_{0}({1})) : "
      "th_{2}_of_{0}(th_pow_{0}(({4}){3}, {1})))",
      f, b, compute_suffix(base), a, real);
}

std::string unary(const ir::Node& node, DType t, const std::string& x) {
  switch (node.op) {
    case Op::identity:
      return x;
    case Op::neg:
      return is_float(t) ? fmt::format("(-{})", x) : wrapping(t, "0", "-", x);
    case Op::logical_not:
      return fmt::format("(!{})", x);
    case Op::bitwise_not:
      return fmt::format("({})(~{})", compute_type(t), x);
    case Op::is_nan:
      return fmt::format("({0} != {0})", x);
    case Op::is_inf: {
      const std::string inf = t == DType::kF64 ? "TH_INF_F64" : "TH_INF_F32";
      const bool up = node.int_attr("positive", 1) != 0, down = node.int_attr("negative", 1) != 0;
      return fmt::format("({} || {})", up ? fmt::format("{} == {}", x, inf) : "0",
                         down ? fmt::format("{} == -{}", x, inf) : "0");
    }
    case Op::relu:
      if (is_float(t)) return call("relu", t, x);
      return call("max", t, x + ", " + fmt::format("({})0", compute_type(t)));
    case Op::abs:
    case Op::sign:
      return call(std::string(ir::op_name(node.op)), t, x);
    case Op::floor:
    case Op::ceil:
    case Op::round:
      if (!is_float(t)) return x;
      break;
    default:
      break;
  }
  if (!is_float(t)) refuse(node, t);
  return call(std::string(ir::op_name(node.op)), t, x);
}

std::string binary(const ir::Node& node, DType t, DType t1, const std::string& a, const std::string& b) {
  const bool logical = t == DType::kBool;
  switch (node.op) {
    case Op::add:
      return arithmetic(t, a, "+", b);
    case Op::sub:
      return arithmetic(t, a, "-", b);
    case Op::mul:
      return arithmetic(t, a, "*", b);
    case Op::div:
      return is_float(t) ? fmt::format("({} / {})", a, b) : call("div", t, a + ", " + b);
    case Op::mod:
    case Op::fmod:
      return call(std::string(ir::op_name(node.op)), t, a + ", " + b);
    case Op::min:
    case Op::max:
      if (logical) return fmt::format("({} {} {})", a, node.op == Op::min ? "&" : "|", b);
      return call(std::string(ir::op_name(node.op)), t, a + ", " + b);
    case Op::pow:
      return power(node, t, t1, a, b);
    case Op::logical_and:
      return fmt::format("({} & {})", a, b);
    case Op::logical_or:
      return fmt::format("({} | {})", a, b);
    case Op::logical_xor:
      return fmt::format("({} ^ {})", a, b);
    case Op::bitwise_and:
    case Op::bitwise_or:
    case Op::bitwise_xor: {
      const char* op = node.op == Op::bitwise_and ? "&" : node.op == Op::bitwise_or ? "|" : "^";
      return fmt::format("({})({} {} {})", compute_type(t), a, op, b);
    }
    case Op::shift_left:
      return call("shl", t, a + ", " + b);
    case Op::shift_right:
      return call("shr", t, a + ", " + b);
    case Op::equal:
      return fmt::format("({} == {})", a, b);
    case Op::less:
      return fmt::format("({} < {})", a, b);
    case Op::less_equal:
      return fmt::format("({} <= {})", a, b);
    case Op::greater:
      return fmt::format("({} > {})", a, b);
    case Op::greater_equal:
      return fmt::format("({} >= {})", a, b);
    default:
      refuse(node, t);
  }
}

}  // namespace

bool is_emittable(DType t) {
  return computes_in_float(t) || t == DType::kF64 || t == DType::kBool ||
         (is_integer(t) && dtype_bits(t) >= 8);
}

std::string compute_suffix(DType t) { return computes_in_float(t) ? "f32" : std::string(dtype_name(t)); }

std::string compute_type(DType t) {
  if (computes_in_float(t)) return "float";
  if (t == DType::kF64) return "double";
  if (t == DType::kBool) return "int";
  return "th_" + std::string(dtype_name(t));
}

std::string storage_type(DType t) {
  if (t == DType::kF16 || t == DType::kBF16) return "th_u16";
  if (t == DType::kBool) return "th_u8";
  return compute_type(t);
}

std::string float_literal(DType t, double value) {
  const char* suffix = t == DType::kF64 ? "F64" : "F32";
  if (std::isnan(value)) return fmt::format("TH_NAN_{}", suffix);
  if (std::isinf(value)) return fmt::format("({}TH_INF_{})", value < 0 ? "-" : "", suffix);
  const std::string text = fmt::format("{:a}{}", std::fabs(value), t == DType::kF64 ? "" : "f");
  return std::signbit(value) ? "(-" + text + ")" : text;
}

std::string int_literal(DType t, int64_t value) {
  if (t == DType::kBool) return value != 0 ? "1" : "0";
  const std::string type = compute_type(t);
  if (t == DType::kU64) return fmt::format("{}UL", static_cast<uint64_t>(value));
  if (t == DType::kU32) return fmt::format("{}u", static_cast<uint32_t>(value));
  if (t == DType::kI64 && value == std::numeric_limits<int64_t>::min())
    return fmt::format("(({})(-9223372036854775807L - 1L))", type);
  if (t == DType::kI32 && value == std::numeric_limits<int32_t>::min()) return "(-2147483647 - 1)";
  if (t == DType::kI64) return fmt::format("(({}){}L)", type, value);
  return t == DType::kI32 ? (value < 0 ? fmt::format("({})", value) : fmt::format("{}", value))
                          : fmt::format("(({}){})", type, value);
}

std::string literal(const ir::Tensor& tensor, int64_t element) {
  const DType t = tensor.dtype();
  return is_float(t) ? float_literal(t, tensor.as_double(element)) : int_literal(t, tensor.as_int(element));
}

std::string cast_expression(const std::string& x, DType from, DType to) {
  if (from == to) return x;
  if (to == DType::kBool) return fmt::format("({} != 0)", x);
  if (is_float(to)) {
    if (to == DType::kF64) return fmt::format("(double){}", x);
    const std::string single = computes_in_float(from) ? x : fmt::format("(float){}", x);
    if (to == DType::kF16) return fmt::format("th_round_f16({})", single);
    if (to == DType::kBF16) return fmt::format("th_round_bf16({})", single);
    return single;
  }
  if (is_float(from)) return fmt::format("th_{}_of_{}({})", dtype_name(to), compute_suffix(from), x);
  return fmt::format("({}){}", compute_type(to), x);
}

std::string scalar_expression(const ir::Node& node, const std::vector<DType>& types,
                              const std::vector<std::string>& operands, DType result) {
  if (node.op == Op::cast) return cast_expression(operands[0], types[0], result);
  if (node.op == Op::where) return fmt::format("({} ? {} : {})", operands[0], operands[1], operands[2]);
  if (operands.size() == 1) return unary(node, types[0], operands[0]);
  if (operands.size() == 2) return binary(node, types[0], types[1], operands[0], operands[1]);
  refuse(node, result);
}

std::string combine(const std::string& kind, DType t, const std::string& a, const std::string& b) {
  if (kind == "sum" || kind == "mean") return arithmetic(t, a, "+", b);
  if (kind == "prod") return arithmetic(t, a, "*", b);
  if (kind == "any") return fmt::format("({} | {})", a, b);
  if (kind == "all") return fmt::format("({} & {})", a, b);
  if (kind != "max" && kind != "min") throw Error(Code::kInternal, "unknown reduction kind " + kind);
  if (t == DType::kBool) return fmt::format("({} {} {})", a, kind == "max" ? "|" : "&", b);
  return call(kind, t, a + ", " + b);
}

std::string neutral(const std::string& kind, DType t) {
  if (kind == "sum" || kind == "mean" || kind == "any")
    return is_float(t) ? float_literal(t, 0) : int_literal(t, 0);
  if (kind == "prod" || kind == "all") return is_float(t) ? float_literal(t, 1) : int_literal(t, 1);
  const double inf = std::numeric_limits<double>::infinity();
  if (kind == "max") return is_float(t) ? float_literal(t, -inf) : int_literal(t, lowest_int(t));
  return is_float(t) ? float_literal(t, inf) : int_literal(t, highest_int(t));
}

}  // namespace thrice::family
