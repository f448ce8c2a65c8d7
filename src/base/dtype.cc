#include <fmt/format.h>
#include <thrice/dtype.h>
#include <thrice/status.h>

#include <array>
#include <cmath>
#include <limits>

namespace thrice {
namespace {

enum class Kind : uint8_t { kFloat, kSigned, kUnsigned, kBool, kString };
struct Row {
  DType dtype;
  std::string_view name;
  uint8_t bits, bytes;
  Kind kind;
};
constexpr std::array<Row, kNumDTypes> kRows = {{
    {DType::kF32, "f32", 32, 4, Kind::kFloat},
    {DType::kF64, "f64", 64, 8, Kind::kFloat},
    {DType::kF16, "f16", 16, 2, Kind::kFloat},
    {DType::kBF16, "bf16", 16, 2, Kind::kFloat},
    {DType::kI8, "i8", 8, 1, Kind::kSigned},
    {DType::kI16, "i16", 16, 2, Kind::kSigned},
    {DType::kI32, "i32", 32, 4, Kind::kSigned},
    {DType::kI64, "i64", 64, 8, Kind::kSigned},
    {DType::kU8, "u8", 8, 1, Kind::kUnsigned},
    {DType::kU16, "u16", 16, 2, Kind::kUnsigned},
    {DType::kU32, "u32", 32, 4, Kind::kUnsigned},
    {DType::kU64, "u64", 64, 8, Kind::kUnsigned},
    {DType::kBool, "bool", 8, 1, Kind::kBool},
    {DType::kString, "string", 0, 0, Kind::kString},
    {DType::kF8E4M3FN, "f8e4m3fn", 8, 1, Kind::kFloat},
    {DType::kF8E4M3FNUZ, "f8e4m3fnuz", 8, 1, Kind::kFloat},
    {DType::kF8E5M2, "f8e5m2", 8, 1, Kind::kFloat},
    {DType::kF8E5M2FNUZ, "f8e5m2fnuz", 8, 1, Kind::kFloat},
    {DType::kF8E8M0, "f8e8m0", 8, 1, Kind::kFloat},
    {DType::kF4E2M1, "f4e2m1", 4, 1, Kind::kFloat},
    {DType::kI4, "i4", 4, 1, Kind::kSigned},
    {DType::kU4, "u4", 4, 1, Kind::kUnsigned},
    {DType::kI2, "i2", 2, 1, Kind::kSigned},
    {DType::kU2, "u2", 2, 1, Kind::kUnsigned},
}};
const Row& row(DType dtype) { return kRows[static_cast<size_t>(dtype)]; }

// A binary float format with subnormals. `overflow` is what lies beyond the largest value.
enum class Overflow : uint8_t { kInf, kNaN, kSaturate };
struct Format {
  int mantissa_bits, min_exponent, exponent_bits;  // min_exponent: of normal numbers
  double largest;
  Overflow overflow;
  bool negative_zero;
};
Format format_of(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return {10, -14, 5, 65504.0, Overflow::kInf, true};
    case DType::kBF16:
      return {7, -126, 8, std::ldexp(255.0, 120), Overflow::kInf, true};
    case DType::kF8E4M3FN:
      return {3, -6, 4, 448.0, Overflow::kNaN, true};
    case DType::kF8E4M3FNUZ:
      return {3, -7, 4, 240.0, Overflow::kNaN, false};
    case DType::kF8E5M2:
      return {2, -14, 5, 57344.0, Overflow::kInf, true};
    case DType::kF8E5M2FNUZ:
      return {2, -15, 5, 57344.0, Overflow::kNaN, false};
    case DType::kF4E2M1:
      return {1, 0, 2, 6.0, Overflow::kSaturate, true};
    default:
      throw Error(Code::kInternal, fmt::format("{} is not a small float type", dtype_name(dtype)));
  }
}

double round_small(DType dtype, double value, bool saturate) {
  const Format f = format_of(dtype);
  if (std::isnan(value))
    return f.overflow == Overflow::kSaturate ? f.largest
                                             : value;  // f4 has no NaN; ONNX maps it to the largest
  double rounded = value;
  if (std::isfinite(value) && value != 0) {
    const double quantum = std::ldexp(1.0, std::max(std::ilogb(value), f.min_exponent) - f.mantissa_bits);
    rounded = std::nearbyint(value / quantum) * quantum;
  }
  if (!(std::fabs(rounded) <= f.largest)) {
    if (saturate || f.overflow == Overflow::kSaturate) return std::copysign(f.largest, value);
    if (f.overflow == Overflow::kNaN) return std::numeric_limits<double>::quiet_NaN();
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  }
  if (rounded == 0) return f.negative_zero ? std::copysign(0.0, value) : 0.0;
  return rounded;
}

// f8e8m0: powers of two 2^-127 .. 2^127 and NaN; no sign and no zero.
constexpr int kE8M0Bias = 127;
double round_e8m0(double value) {
  if (std::isnan(value) || value < 0) return std::numeric_limits<double>::quiet_NaN();
  if (value == 0) return std::ldexp(1.0, -kE8M0Bias);
  if (std::isinf(value)) return std::ldexp(1.0, kE8M0Bias);
  int exponent = std::ilogb(value);
  if (value >= 1.5 * std::ldexp(1.0, exponent)) ++exponent;
  return std::ldexp(1.0, std::min(std::max(exponent, -kE8M0Bias), kE8M0Bias));
}

uint32_t encode(DType dtype, double value, bool saturate) {
  const Format f = format_of(dtype);
  const uint32_t sign_bit = 1u << (f.exponent_bits + f.mantissa_bits);
  const uint32_t exponent_ones = ((1u << f.exponent_bits) - 1) << f.mantissa_bits;
  const double r = round_small(dtype, value, saturate);
  const uint32_t sign = std::signbit(r) ? sign_bit : 0;
  if (std::isnan(r)) {
    if (!f.negative_zero) return sign_bit;  // FNUZ: the code of -0 means NaN
    if (f.overflow == Overflow::kNaN) return sign | (sign_bit - 1);
    return sign | exponent_ones | (1u << (f.mantissa_bits - 1));
  }
  if (std::isinf(r)) return sign | exponent_ones;
  if (r == 0) return sign;
  const int exponent = std::max(std::ilogb(r), f.min_exponent);
  const auto units = static_cast<uint32_t>(std::fabs(r) / std::ldexp(1.0, exponent - f.mantissa_bits));
  const uint32_t one = 1u << f.mantissa_bits;
  if (units < one) return sign | units;
  return sign | (static_cast<uint32_t>(exponent - f.min_exponent + 1) << f.mantissa_bits) | (units - one);
}

double decode(DType dtype, uint32_t bits) {
  const Format f = format_of(dtype);
  const uint32_t sign_bit = 1u << (f.exponent_bits + f.mantissa_bits);
  const uint32_t mantissa = bits & ((1u << f.mantissa_bits) - 1);
  const uint32_t exponent = (bits >> f.mantissa_bits) & ((1u << f.exponent_bits) - 1);
  const double sign = (bits & sign_bit) ? -1.0 : 1.0;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (!f.negative_zero && bits == sign_bit) return nan;
  if (f.overflow == Overflow::kNaN && f.negative_zero && (bits & (sign_bit - 1)) == sign_bit - 1) return nan;
  if (f.overflow == Overflow::kInf && exponent == (1u << f.exponent_bits) - 1)
    return mantissa ? nan : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0)
    return sign * std::ldexp(static_cast<double>(mantissa), f.min_exponent - f.mantissa_bits);
  return sign * std::ldexp(static_cast<double>(mantissa + (1u << f.mantissa_bits)),
                           f.min_exponent + static_cast<int>(exponent) - 1 - f.mantissa_bits);
}

}  // namespace

std::string_view dtype_name(DType dtype) { return row(dtype).name; }

DType parse_dtype(std::string_view name) {
  for (const Row& r : kRows)
    if (r.name == name) return r.dtype;
  throw Error(
      Code::kInvalidArgument,
      fmt::format("'{}' is not an element type; expected a name such as f32, f16, bf16, i64, bool", name));
}

size_t dtype_bytes(DType dtype) { return row(dtype).bytes; }
int dtype_bits(DType dtype) { return row(dtype).bits; }
bool is_float(DType dtype) { return row(dtype).kind == Kind::kFloat; }
bool is_signed_integer(DType dtype) { return row(dtype).kind == Kind::kSigned; }
bool is_unsigned_integer(DType dtype) { return row(dtype).kind == Kind::kUnsigned; }
bool is_integer(DType dtype) { return is_signed_integer(dtype) || is_unsigned_integer(dtype); }

double round_to(DType dtype, double value, bool saturate) {
  switch (dtype) {
    case DType::kF64:
      return value;
    case DType::kF32:
      return static_cast<double>(static_cast<float>(value));
    case DType::kF8E8M0:
      return round_e8m0(value);
    default:
      return round_small(dtype, value, saturate);
  }
}

int64_t wrap_to(DType dtype, int64_t value) {
  if (dtype == DType::kBool) return value != 0;
  if (!is_integer(dtype))
    throw Error(Code::kInternal, fmt::format("{} is not an integer type", dtype_name(dtype)));
  const int unused = 64 - dtype_bits(dtype);
  const uint64_t shifted = static_cast<uint64_t>(value) << unused;
  if (is_signed_integer(dtype)) return static_cast<int64_t>(shifted) >> unused;
  return static_cast<int64_t>(shifted >> unused);
}

uint16_t f16_from_double(double value) { return static_cast<uint16_t>(encode(DType::kF16, value, false)); }
double f16_to_double(uint16_t bits) { return decode(DType::kF16, bits); }
uint16_t bf16_from_double(double value) { return static_cast<uint16_t>(encode(DType::kBF16, value, false)); }
double bf16_to_double(uint16_t bits) { return decode(DType::kBF16, bits); }

uint8_t small_float_from_double(DType dtype, double value, bool saturate) {
  if (dtype == DType::kF8E8M0) {
    const double r = round_e8m0(value);
    return std::isnan(r) ? uint8_t{0xFF} : static_cast<uint8_t>(std::ilogb(r) + kE8M0Bias);
  }
  return static_cast<uint8_t>(encode(dtype, value, saturate));
}

double small_float_to_double(DType dtype, uint8_t bits) {
  if (dtype == DType::kF8E8M0)
    return bits == 0xFF ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, bits - kE8M0Bias);
  return decode(dtype, bits);
}

}  // namespace thrice
