// Would catch: wrong broadcasting strides, NaN rules of min/max/relu, sign rules of mod, wrap-around,
// clamping casts.
#include <cmath>
#include <limits>

#include "unit/ir_evaluate/arrays.h"

namespace thrice::ir::testing {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(),
                 kInf = std::numeric_limits<double>::infinity();

TEST(Elementwise, BroadcastsFromBothSides) {
  const Array y = run(Op::sub, {counting({2, 1, 3}), floats({2, 1}, {10, 20})});
  expect_near(y, {2, 2, 3}, {-10, -9, -8, -20, -19, -18, -7, -6, -5, -17, -16, -15});
  EXPECT_EQ(run(Op::add, {counting({0, 3}), counting({1, 1})}).shape, (Ints{0, 3}));
  EXPECT_THROW(run(Op::add, {counting({2}), counting({3})}), Error);
}

TEST(Elementwise, NanRules) {
  EXPECT_TRUE(std::isnan(run(Op::min, {floats({}, {kNan}), floats({}, {1})}).f[0]));
  EXPECT_TRUE(std::isnan(run(Op::max, {floats({}, {1}), floats({}, {kNan})}).f[0]));
  EXPECT_TRUE(std::isnan(run(Op::relu, {floats({}, {kNan})}).f[0]));
  EXPECT_EQ(run(Op::less, {floats({2}, {kNan, 1}), floats({}, {2})}).i, (Ints{0, 1}));
  EXPECT_EQ(run(Op::is_inf, {floats({3}, {kInf, -kInf, kNan})}, {{"negative", int64_t{0}}}).i,
            (Ints{1, 0, 0}));
  EXPECT_EQ(run(Op::is_nan, {floats({2}, {kNan, 0})}).i, (Ints{1, 0}));
}

TEST(Elementwise, ModFollowsDivisorAndFmodDividend) {
  const ArrayPtr a = vec({-4, 7, 5, 4, -7, 8}), b = vec({2, -3, 8, -2, 3, 0});
  EXPECT_EQ(run(Op::mod, {a, b}).i, (Ints{0, -2, 5, 0, 2, 0}));
  EXPECT_EQ(run(Op::fmod, {a, b}).i, (Ints{0, 1, 5, 0, -1, 0}));
  expect_near(run(Op::mod, {floats({2}, {-4.3, 7.2}), floats({2}, {2.1, -3.4})}), {2}, {2.0, -3.0}, 1e-9);
  expect_near(run(Op::fmod, {floats({2}, {-4.3, 7.2}), floats({2}, {2.1, -3.4})}), {2}, {-0.1, 0.4}, 1e-9);
}

TEST(Elementwise, IntegersWrapAndDivideByZeroToZero) {
  EXPECT_EQ(run(Op::add, {ints({1}, {120}, DType::kI8), ints({1}, {10}, DType::kI8)}).i, (Ints{-126}));
  EXPECT_EQ(run(Op::div, {vec({-7, 7, std::numeric_limits<int64_t>::min()}), vec({2, 0, -1})}).i,
            (Ints{-3, 0, std::numeric_limits<int64_t>::min()}));
  // The largest u64 is stored as -1: order and division must see it as large.
  EXPECT_EQ(run(Op::max, {ints({1}, {-1}, DType::kU64), ints({1}, {5}, DType::kU64)}).i, (Ints{-1}));
  EXPECT_EQ(run(Op::div, {ints({1}, {-1}, DType::kU64), ints({1}, {2}, DType::kU64)}).i,
            (Ints{std::numeric_limits<int64_t>::max()}));
  EXPECT_EQ(run(Op::shift_right, {ints({2}, {-128, 4}, DType::kI8), ints({2}, {1, 9}, DType::kI8)}).i,
            (Ints{64, 0}));
  EXPECT_EQ(run(Op::pow, {vec({3, -2, 2}), vec({4, 3, -1})}).i, (Ints{81, -8, 0}));
  EXPECT_EQ(run(Op::pow, {vec({4}), floats({1}, {0.5})}).i, (Ints{2}));
}

TEST(Elementwise, RoundTiesToEvenAndWhere) {
  expect_near(run(Op::round, {floats({5}, {0.5, 1.5, 2.5, -0.5, -1.5})}), {5}, {0, 2, 2, 0, -2});
  const Array y = run(Op::where, {ints({2, 1}, {1, 0}, DType::kBool), floats({2}, {1, 2}), floats({}, {9})});
  expect_near(y, {2, 2}, {1, 2, 9, 9});
  EXPECT_EQ(run(Op::where, {ints({1}, {0}, DType::kBool), words({1}, {"a"}), words({1}, {"b"})}).s[0], "b");
}

TEST(Elementwise, EveryUnaryAgreesWithTheLibrary) {
  const double x = 0.37;
  const std::vector<std::pair<Op, double>> cases = {{Op::exp, std::exp(x)},
                                                    {Op::log, std::log(x)},
                                                    {Op::sqrt, std::sqrt(x)},
                                                    {Op::rsqrt, 1 / std::sqrt(x)},
                                                    {Op::erf, std::erf(x)},
                                                    {Op::tanh, std::tanh(x)},
                                                    {Op::atan, std::atan(x)},
                                                    {Op::asinh, std::asinh(x)},
                                                    {Op::atanh, std::atanh(x)},
                                                    {Op::acos, std::acos(x)},
                                                    {Op::expm1, std::expm1(x)},
                                                    {Op::log1p, std::log1p(x)},
                                                    {Op::tan, std::tan(x)},
                                                    {Op::cosh, std::cosh(x)},
                                                    {Op::sinh, std::sinh(x)},
                                                    {Op::reciprocal, 1 / x},
                                                    {Op::sign, 1},
                                                    {Op::neg, -x},
                                                    {Op::abs, x},
                                                    {Op::floor, 0},
                                                    {Op::ceil, 1},
                                                    {Op::sin, std::sin(x)},
                                                    {Op::cos, std::cos(x)},
                                                    {Op::asin, std::asin(x)},
                                                    {Op::sigmoid, 1 / (1 + std::exp(-x))}};
  for (const auto& [op, want] : cases)
    EXPECT_NEAR(run(op, {floats({}, {x})}).f[0], want, 1e-15) << op_name(op);
}

Attributes to(DType dtype) { return {{"to", static_cast<int64_t>(dtype)}}; }

TEST(Cast, ClampsTruncatesWrapsAndRounds) {
  EXPECT_EQ(run(Op::cast, {floats({6}, {-1.9, 3.9, 1e30, -1e30, kNan, 200})}, to(DType::kI8)).i,
            (Ints{-1, 3, 127, -128, 0, 127}));
  EXPECT_EQ(run(Op::cast, {floats({2}, {-5, 1e30})}, to(DType::kU64)).i, (Ints{0, -1}));
  EXPECT_EQ(run(Op::cast, {floats({3}, {0.0, -0.5, kNan})}, to(DType::kBool)).i, (Ints{0, 1, 1}));
  EXPECT_EQ(run(Op::cast, {vec({300, -1})}, to(DType::kU8)).i, (Ints{44, 255}));
  EXPECT_EQ(run(Op::cast, {floats({1}, {1.0 + 0x1p-13})}, to(DType::kF16)).f[0], 1.0);
  // A value that is still unrounded stays so where the type widens.
  EXPECT_EQ(run(Op::cast, {floats({1}, {1.0 / 3}, DType::kF16)}, to(DType::kF32)).f[0], 1.0 / 3);
  EXPECT_EQ(run(Op::cast, {ints({1}, {16777217})}, to(DType::kF32)).f[0], 16777216.0);
  EXPECT_EQ(run(Op::cast, {words({2}, {"3.5", "-INF"})}, to(DType::kF32)).f,
            (std::vector<double>{3.5, -kInf}));
  EXPECT_EQ(run(Op::cast, {floats({3}, {0.25, 3, 1e-7})}, to(DType::kString)).s,
            (std::vector<std::string>{"0.25", "3.0", "1e-07"}));
}

}  // namespace
}  // namespace thrice::ir::testing
