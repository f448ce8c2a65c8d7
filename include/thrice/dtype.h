// Element types of tensors.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace thrice {

// Storage of one element. Sub-byte types are held one element a byte on the host (value in the low bits,
// sign-extended for i4/i2).
enum class DType : uint8_t {
  kF32,
  kF64,
  kF16,
  kBF16,
  kI8,
  kI16,
  kI32,
  kI64,
  kU8,
  kU16,
  kU32,
  kU64,
  kBool,    // one byte, 0 or 1
  kString,  // host only
  kF8E4M3FN,
  kF8E4M3FNUZ,
  kF8E5M2,
  kF8E5M2FNUZ,
  kF8E8M0,
  kF4E2M1,
  kI4,
  kU4,
  kI2,
  kU2,  // interpreter and casts only, for now
};
constexpr int kNumDTypes = 24;

// Short name used in text forms and kernel symbols: "f32", "i64", "bool".
std::string_view dtype_name(DType dtype);
// Inverse of dtype_name. Errors: throws kInvalidArgument naming the text.
DType parse_dtype(std::string_view name);
// Bytes of one element in host and device buffers (sub-byte types: 1; strings: 0).
size_t dtype_bytes(DType dtype);
bool is_float(DType dtype);    // f32 f64 f16 bf16 and the f8/f4 types
bool is_integer(DType dtype);  // signed and unsigned, without bool
bool is_signed_integer(DType dtype);
bool is_unsigned_integer(DType dtype);
int dtype_bits(DType dtype);  // 32 for f32, 4 for i4, 8 for bool

// Rounds a double to the nearest value of a float type (ties to even), returned as double; f64 returns it
// unchanged. Beyond the range: the largest value with `saturate`; else Inf, or NaN where the type has no Inf
// (as ONNX Cast), or the largest value where it has neither (f4e2m1). f8e8m0: negative gives NaN, 0 the
// smallest.
double round_to(DType dtype, double value, bool saturate = false);
// Wraps a 64-bit integer to the width and sign of an integer type (bool: value != 0).
int64_t wrap_to(DType dtype, int64_t value);

// 16-bit encodings, bit-exact, ties to even.
uint16_t f16_from_double(double value);
double f16_to_double(uint16_t bits);
uint16_t bf16_from_double(double value);
double bf16_to_double(uint16_t bits);
// 8- and 4-bit float encodings (one byte an element).
uint8_t small_float_from_double(DType dtype, double value, bool saturate);
double small_float_to_double(DType dtype, uint8_t bits);

}  // namespace thrice
