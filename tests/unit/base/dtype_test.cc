// Catches: a float encoding that is not nearest-even at a boundary, a code that does not decode to the value
// it encodes, and integer wrapping of the wrong width.
#include <gtest/gtest.h>
#include <thrice/dtype.h>
#include <thrice/status.h>

#include <cmath>
#include <limits>

namespace thrice {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(DType, NamesRoundTrip) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(dtype_name(dtype)), dtype);
    const int classes =
        is_float(dtype) + is_integer(dtype) + (dtype == DType::kBool) + (dtype == DType::kString);
    EXPECT_EQ(classes, 1) << dtype_name(dtype);
  }
  EXPECT_THROW(parse_dtype("float32"), Error);
}

TEST(DType, EveryHalfCodeRoundTrips) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const double h = f16_to_double(static_cast<uint16_t>(bits)),
                 b = bf16_to_double(static_cast<uint16_t>(bits));
    if (std::isnan(h))
      EXPECT_TRUE(std::isnan(f16_to_double(f16_from_double(h))));
    else
      ASSERT_EQ(f16_from_double(h), bits);
    if (std::isnan(b))
      EXPECT_TRUE(std::isnan(bf16_to_double(bf16_from_double(b))));
    else
      ASSERT_EQ(bf16_from_double(b), bits);
  }
  EXPECT_EQ(f16_to_double(0x3C00), 1.0);
  EXPECT_EQ(f16_to_double(0x0001), std::ldexp(1.0, -24));
  EXPECT_EQ(f16_to_double(0x7BFF), 65504.0);
  EXPECT_EQ(bf16_to_double(0x3F80), 1.0);
}

// Between each pair of neighbouring codes: just below, at and just above the middle.
TEST(DType, SmallFloatsRoundToNearestEven) {
  for (DType dtype :
       {DType::kF8E4M3FN, DType::kF8E4M3FNUZ, DType::kF8E5M2, DType::kF8E5M2FNUZ, DType::kF4E2M1}) {
    const int positive = dtype == DType::kF4E2M1 ? 8 : 128;
    int pairs = 0;
    for (int code = 0; code + 1 < positive; ++code) {
      const double low = small_float_to_double(dtype, static_cast<uint8_t>(code));
      const double high = small_float_to_double(dtype, static_cast<uint8_t>(code + 1));
      EXPECT_EQ(small_float_from_double(dtype, low, false), code) << dtype_name(dtype);
      if (!std::isfinite(high)) break;
      ASSERT_LT(low, high) << dtype_name(dtype) << " " << code;
      const double middle = (low + high) / 2;
      EXPECT_EQ(round_to(dtype, std::nextafter(middle, 0)), low);
      EXPECT_EQ(round_to(dtype, std::nextafter(middle, kInf)), high);
      EXPECT_EQ(round_to(dtype, middle), code % 2 == 0 ? low : high) << dtype_name(dtype) << " " << code;
      EXPECT_EQ(round_to(dtype, -middle), code % 2 == 0 ? -low : -high);
      ++pairs;
    }
    EXPECT_GE(pairs, dtype == DType::kF4E2M1 ? 7 : 120);
  }
}

TEST(DType, BeyondTheLargestValue) {
  EXPECT_EQ(round_to(DType::kF16, 65519.9), 65504.0);
  EXPECT_EQ(round_to(DType::kF16, 65520.0), kInf);
  EXPECT_EQ(round_to(DType::kF16, -1e9, true), -65504.0);
  EXPECT_EQ(round_to(DType::kBF16, 3.4e38), kInf);
  EXPECT_EQ(round_to(DType::kF8E4M3FN, 464.0), 448.0);
  EXPECT_TRUE(std::isnan(round_to(DType::kF8E4M3FN, 465.0)));
  EXPECT_EQ(round_to(DType::kF8E4M3FN, kInf, true), 448.0);
  EXPECT_EQ(round_to(DType::kF8E5M2, 1e6), kInf);
  EXPECT_EQ(round_to(DType::kF8E5M2, 1e6, true), 57344.0);
  EXPECT_TRUE(std::isnan(round_to(DType::kF8E5M2FNUZ, -1e6)));
  EXPECT_EQ(round_to(DType::kF4E2M1, 100.0), 6.0);
  EXPECT_EQ(small_float_from_double(DType::kF8E4M3FNUZ, std::nan(""), false), 0x80);
  EXPECT_EQ(small_float_from_double(DType::kF8E4M3FNUZ, -0.0, false), 0x00);
  EXPECT_EQ(small_float_from_double(DType::kF8E4M3FN, -0.0, false), 0x80);
  EXPECT_EQ(small_float_to_double(DType::kF8E8M0, 127), 1.0);
  EXPECT_EQ(small_float_from_double(DType::kF8E8M0, 3.0, false), 129);
  EXPECT_EQ(round_to(DType::kF64, 0.1), 0.1);
  EXPECT_EQ(round_to(DType::kF32, 0.1), static_cast<double>(0.1f));
}

TEST(DType, Wrapping) {
  EXPECT_EQ(wrap_to(DType::kI8, 128), -128);
  EXPECT_EQ(wrap_to(DType::kU8, -1), 255);
  EXPECT_EQ(wrap_to(DType::kI4, 8), -8);
  EXPECT_EQ(wrap_to(DType::kU2, 7), 3);
  EXPECT_EQ(wrap_to(DType::kI64, INT64_MIN), INT64_MIN);
  EXPECT_EQ(wrap_to(DType::kBool, -5), 1);
  EXPECT_THROW(wrap_to(DType::kF32, 1), Error);
}

TEST(Status, EveryCodeHasAName) {
  for (int c = 0; c <= static_cast<int>(Code::kInternal); ++c)
    EXPECT_STRNE(code_name(static_cast<Code>(c)), "Unknown");
  EXPECT_EQ(Error(Code::kIo, "x").status().message, "x");
}

}  // namespace
}  // namespace thrice
