// Would catch: a NaN that passes, an error hidden by one norm, limits other than numerics.md's, a bound not
// applied.
#include "ir/compare.h"

#include <cmath>
#include <limits>

#include "unit/ir_evaluate/arrays.h"

namespace thrice::ir::testing {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(),
                 kInf = std::numeric_limits<double>::infinity();

Tensor tensor(std::vector<double> values, DType dtype = DType::kF32) {
  return Tensor::of(dtype, {static_cast<int64_t>(values.size())}, values);
}
Comparison against(std::vector<double> y, std::vector<double> r, double limit = 1e-5,
                   const std::vector<double>* bound = nullptr, DType dtype = DType::kF32) {
  const auto n = static_cast<int64_t>(r.size());
  return compare(tensor(std::move(y), dtype), *floats({n}, std::move(r), dtype), limit, bound);
}

TEST(Compare, BothNormsCount) {
  EXPECT_TRUE(against({1, 2, 3}, {1, 2, 3}).ok);
  const Comparison c = against({1, 2, 3.5}, {1, 2, 3}, 0.1);
  EXPECT_FALSE(c.ok);
  EXPECT_NEAR(c.error, 0.5 / 3, 1e-12);
  EXPECT_EQ(c.worst_index, 2);
  // Many small deviations: the 2-norm is the larger of both.
  EXPECT_GT(against({1.1, 1.1, 1.1, 1}, {1, 1, 1, -1}, 0.01).error, 0.9);
}

TEST(Compare, ClassesOfNonFinite) {
  EXPECT_TRUE(against({kNan, kInf, 1}, {kNan, kInf, 1}).ok);
  EXPECT_FALSE(against({kNan, 1}, {1, 1}).ok);
  EXPECT_FALSE(against({1, 1}, {kNan, 1}).ok);
  EXPECT_FALSE(against({kInf, 1}, {-kInf, 1}).ok);
  EXPECT_FALSE(against({3e38, 1}, {kNan, 1}).ok);
  // The reference overflows the output's dtype: infinity is right.
  EXPECT_TRUE(against({kInf, 1}, {1e39, 1}).ok);
  EXPECT_FALSE(against({3e38, 1}, {1e39, 1}).ok);
  EXPECT_FALSE(against({kNan}, {kNan}).ok) << "nothing was compared";
  EXPECT_TRUE(against({}, {}).ok);
}

TEST(Compare, AllZeroReferenceNeedsZeros) {
  EXPECT_TRUE(against({0, -0.0}, {0, 0}).ok);
  const Comparison c = against({0, 1e-30}, {0, 0});
  EXPECT_FALSE(c.ok);
  EXPECT_EQ(c.error, kInf);
}

TEST(Compare, ElementBoundCatchesWhatNormsHide) {
  const std::vector<double> bound = {1, 1e-6};
  EXPECT_TRUE(against({1000, 1e-3}, {1000, 0}, 1e-5).ok);
  const Comparison c = against({1000, 1e-3}, {1000, 0}, 1e-5, &bound);
  EXPECT_FALSE(c.ok);
  EXPECT_EQ(c.worst_index, 1);
  const std::vector<double> unknown = {kNan, 1};
  EXPECT_FALSE(against({1000, 0}, {1000, 0}, 1e-5, &unknown).ok);
}

TEST(Compare, IntegersStringsAndMismatches) {
  EXPECT_TRUE(compare(Tensor::ints({1, 2}), *vec({1, 2}), 0).ok);
  const Comparison c = compare(Tensor::ints({1, 3}), *vec({1, 2}), 1);
  EXPECT_FALSE(c.ok);
  EXPECT_EQ(c.worst_index, 1);
  EXPECT_TRUE(compare(Tensor::strings({1}, {"a"}), *words({1}, {"a"}), 0).ok);
  EXPECT_FALSE(compare(Tensor::strings({1}, {"a"}), *words({1}, {"b"}), 0).ok);
  EXPECT_FALSE(compare(Tensor::ints({1, 2}), *ints({2, 1}, {1, 2}), 0).ok);
  EXPECT_FALSE(compare(tensor({1}), *floats({1}, {1}, DType::kF64), 1).ok);
}

TEST(Compare, LimitsOfNumerics) {
  EXPECT_EQ(error_limit(DType::kF32, -1), 1e-5);
  EXPECT_EQ(error_limit(DType::kF32, 1e-8), 2e-6);
  EXPECT_EQ(error_limit(DType::kF32, 3e-6), 6e-6);
  EXPECT_EQ(error_limit(DType::kF32, 1e-4), 2e-4);
  EXPECT_EQ(error_limit(DType::kF16, 0.01), 0.015);
  EXPECT_GE(error_limit(DType::kBF16, 0), 0x1p-8) << "a correctly rounded result must pass";
}

TEST(Compare, OnnxRule) {
  EXPECT_TRUE(compare_onnx(tensor({kNan, 1.0005}), tensor({kNan, 1}), 1e-3, 1e-7).ok);
  EXPECT_FALSE(compare_onnx(tensor({1.002}), tensor({1}), 1e-3, 1e-7).ok);
  EXPECT_FALSE(compare_onnx(tensor({kNan}), tensor({1}), 1e-3, 1e-7).ok);
  EXPECT_TRUE(compare_onnx(tensor({1e-8}), tensor({0}), 1e-3, 1e-7).ok);
  EXPECT_FALSE(compare_onnx(Tensor::ints({1}), Tensor::ints({2}), 1e-3, 1e-7).ok);
}

}  // namespace
}  // namespace thrice::ir::testing
