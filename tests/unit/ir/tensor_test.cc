// Catches: copies that share writes, wrong widths or rounding of element access, and counts that overflow.
#include "ir/tensor.h"

#include <gtest/gtest.h>
#include <thrice/status.h>

#include <cmath>

#include "ir/op.h"

namespace thrice::ir {
namespace {

TEST(Tensor, CopyOnWrite) {
  Tensor a = Tensor::of(DType::kF32, {3}, std::vector<double>{1, 2, 3});
  Tensor b = a;
  EXPECT_EQ(a.data(), b.data());
  b.mutable_data();
  b.set(0, 9);
  EXPECT_EQ(a.as_double(0), 1);
  EXPECT_EQ(b.as_double(0), 9);
  auto owner = std::make_shared<std::vector<float>>(std::vector<float>{5, 6});
  Tensor c(DType::kF32, {2}, std::as_bytes(std::span(*owner)), owner);
  c.mutable_data();
  c.set(0, 7);
  EXPECT_EQ((*owner)[0], 5);
  EXPECT_EQ(c.as_double(1), 6);
  Tensor d = a.reshaped({1, 3});
  EXPECT_EQ(d.data(), a.data());
  EXPECT_THROW(a.reshaped({2}), Error);
}

TEST(Tensor, EveryNumericTypeKeepsSmallIntegers) {
  for (int t = 0; t < kNumDTypes; ++t) {
    const auto dtype = static_cast<DType>(t);
    if (dtype == DType::kString || dtype == DType::kF8E8M0) continue;
    Tensor x(dtype, {2});
    x.mutable_data();
    x.set(0, 1);
    x.set_int(1, 1);
    EXPECT_EQ(x.as_double(0), 1) << dtype_name(dtype);
    EXPECT_EQ(x.as_int(1), 1) << dtype_name(dtype);
    EXPECT_EQ(x.bytes(), 2 * dtype_bytes(dtype));
  }
}

TEST(Tensor, IntegersWrapAndFloatsClamp) {
  Tensor x(DType::kI8, {1});
  x.mutable_data();
  x.set_int(0, 200);
  EXPECT_EQ(x.as_int(0), -56);
  Tensor u(DType::kU64, {1});
  u.mutable_data();
  u.set(0, 18446744073709549568.0);
  EXPECT_EQ(u.as_double(0), 18446744073709549568.0);
  Tensor f = Tensor::scalar(DType::kF64, NAN);
  EXPECT_EQ(f.as_int(0), 0);
  EXPECT_EQ(Tensor::scalar(DType::kF64, 1e30).as_int(0), INT64_MAX);
}

TEST(Tensor, Counts) {
  EXPECT_EQ(num_elements(std::vector<int64_t>{}), 1);
  EXPECT_EQ(num_elements(std::vector<int64_t>{0, INT64_MAX, INT64_MAX}), 0);
  EXPECT_THROW(num_elements(std::vector<int64_t>{INT64_MAX, 2}), Error);
  EXPECT_THROW(num_elements(std::vector<int64_t>{-1}), Error);
  EXPECT_THROW(Tensor(DType::kF32, {int64_t{1} << 50}), Error);
  const std::vector<std::byte> bytes(7);
  EXPECT_THROW(Tensor(DType::kF32, {2}, bytes, nullptr), Error);
  EXPECT_THROW(Tensor::strings({2}, {"a"}), Error);
  EXPECT_EQ(Tensor::strings({1}, {"a"}).string_values()[0], "a");
}

TEST(Op, NamesAreUniqueAndRoundTrip) {
  for (int i = 0; i <= static_cast<int>(Op::scan); ++i) {
    const auto op = static_cast<Op>(i);
    EXPECT_EQ(parse_op(op_name(op)), op);
  }
  EXPECT_EQ(op_name(Op::if_), "if");
  EXPECT_THROW(parse_op("if_"), Error);
  EXPECT_TRUE(is_elementwise(Op::where));
  EXPECT_FALSE(is_elementwise(Op::transpose));
}

}  // namespace
}  // namespace thrice::ir
