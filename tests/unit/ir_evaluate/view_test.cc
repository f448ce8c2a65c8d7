// Would catch: wrong index maps of views, pads and gathers; wrong reduction axes, identities and NaN rules.
#include <cmath>
#include <limits>

#include "unit/ir_evaluate/arrays.h"

namespace thrice::ir::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(View, ReshapeMeaningOfZeroAndMinusOne) {
  EXPECT_EQ(run(Op::reshape, {counting({2, 6}), vec({0, -1, 3})}).shape, (Ints{2, 2, 3}));
  EXPECT_EQ(run(Op::reshape, {counting({0, 6}), vec({3, 0})}, {{"allowzero", int64_t{1}}}).shape,
            (Ints{3, 0}));
  EXPECT_THROW(run(Op::reshape, {counting({2, 6}), vec({5, -1})}), Error);
}

TEST(View, TransposeSliceExpandTileConcatIota) {
  expect_near(run(Op::transpose, {counting({2, 3})}, {{"perm", Ints{1, 0}}}), {3, 2}, {0, 3, 1, 4, 2, 5});
  expect_near(run(Op::transpose, {counting({2, 1, 2, 2})}, {{"perm", Ints{2, 1, 3, 0}}}), {2, 1, 2, 2},
              {0, 4, 1, 5, 2, 6, 3, 7});
  expect_near(run(Op::slice, {counting({2, 5}), vec({-2}), vec({-100}), vec({-2})}, {{"axes", Ints{1}}}),
              {2, 2}, {3, 1, 8, 6});
  expect_near(run(Op::slice, {counting({4}), vec({1}), vec({std::numeric_limits<int64_t>::max()}), vec({2})},
                  {{"axes", Ints{0}}}),
              {2}, {1, 3});
  expect_near(run(Op::expand, {counting({2, 1}), vec({2, 1, 3})}), {2, 2, 3},
              {0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1});
  expect_near(run(Op::tile, {counting({1, 2}), vec({2, 2})}), {2, 4}, {0, 1, 0, 1, 0, 1, 0, 1});
  expect_near(run(Op::concat, {counting({2, 1}), counting({2, 2})}, {{"axis", int64_t{1}}}), {2, 3},
              {0, 0, 1, 1, 2, 3});
  EXPECT_EQ(run(Op::iota, {vec({2, 3})}, {{"axis", int64_t{1}}}).i, (Ints{0, 1, 2, 0, 1, 2}));
}

TEST(View, PadModesAndCropping) {
  const ArrayPtr x = counting({3});
  const auto pad = [&](const char* mode, Ints pads) {
    return run(Op::pad, {x, vec(std::move(pads)), floats({}, {9})}, {{"mode", std::string(mode)}}).f;
  };
  using F = std::vector<double>;
  EXPECT_EQ(pad("constant", {1, 2}), (F{9, 0, 1, 2, 9, 9}));
  EXPECT_EQ(pad("edge", {1, 2}), (F{0, 0, 1, 2, 2, 2}));
  EXPECT_EQ(pad("reflect", {2, 2}), (F{2, 1, 0, 1, 2, 1, 0}));
  EXPECT_EQ(pad("wrap", {2, 2}), (F{1, 2, 0, 1, 2, 0, 1}));
  EXPECT_EQ(pad("constant", {-1, 1}), (F{1, 2, 9}));
  const Array y = run(Op::pad, {counting({2, 2}), vec({1, 0})}, {{"axes", Ints{1}}});
  expect_near(y, {2, 3}, {0, 0, 1, 0, 2, 3});
}

TEST(Gather, NegativeAndClampedIndices) {
  expect_near(run(Op::gather, {counting({2, 3}), ints({2}, {-1, 7})}, {{"axis", int64_t{1}}}), {2, 2},
              {2, 2, 5, 5});
  EXPECT_EQ(run(Op::gather, {counting({2, 3}), ints({}, {1})}, {{"axis", int64_t{0}}}).shape, (Ints{3}));
  expect_near(
      run(Op::gather_elements, {counting({2, 3}), ints({2, 2}, {2, 0, -3, 1})}, {{"axis", int64_t{1}}}),
      {2, 2}, {2, 0, 3, 4});
  expect_near(run(Op::gather_nd, {counting({2, 2, 2}), ints({2, 1}, {1, 0})}, {{"batch_dims", int64_t{1}}}),
              {2, 2}, {2, 3, 4, 5});
  expect_near(run(Op::gather_nd, {counting({2, 2}), ints({2, 2}, {0, 1, 1, 0})}), {2}, {1, 2});
}

Attributes reduction(const char* kind, Ints axes, int64_t keep = 0) {
  return {{"kind", std::string(kind)}, {"axes", axes}, {"keepdims", keep}};
}

TEST(Reduce, AxesInTheMiddleAndKeptDims) {
  expect_near(run(Op::reduce, {counting({2, 2, 2})}, reduction("sum", {1})), {2, 2}, {2, 4, 10, 12});
  expect_near(run(Op::reduce, {counting({2, 2, 2})}, reduction("mean", {0, 2}, 1)), {1, 2, 1}, {2.5, 4.5});
  expect_near(run(Op::reduce, {counting({2, 3})}, reduction("prod", {1})), {2}, {0, 60});
  EXPECT_EQ(run(Op::reduce, {vec({7, -2})}, reduction("mean", {0})).i, (Ints{2}));
  EXPECT_EQ(run(Op::reduce, {ints({2}, {100, 100}, DType::kI8)}, reduction("sum", {0})).i, (Ints{-56}));
}

TEST(Reduce, OverNothingAndNan) {
  EXPECT_EQ(run(Op::reduce, {counting({0})}, reduction("max", {0})).f[0], -kInf);
  EXPECT_EQ(run(Op::reduce, {counting({0})}, reduction("sum", {0})).f[0], 0);
  EXPECT_EQ(run(Op::reduce, {counting({0})}, reduction("prod", {0})).f[0], 1);
  EXPECT_TRUE(std::isnan(run(Op::reduce, {counting({0})}, reduction("mean", {0})).f[0]));
  EXPECT_EQ(run(Op::reduce, {ints({0}, {}, DType::kU8)}, reduction("min", {0})).i[0], 255);
  EXPECT_EQ(run(Op::reduce, {ints({0}, {}, DType::kI32)}, reduction("max", {0})).i[0], -2147483648);
  EXPECT_EQ(run(Op::reduce, {ints({0}, {}, DType::kBool)}, reduction("all", {0})).i[0], 1);
  EXPECT_TRUE(std::isnan(run(Op::reduce, {floats({3}, {1, std::nan(""), 2})}, reduction("max", {0})).f[0]));
}

TEST(ArgReduce, TiesAndNan) {
  const ArrayPtr x = floats({1, 4}, {1, 3, 3, 0});
  const auto arg = [&](const ArrayPtr& v, const char* kind, int64_t last) {
    return run(Op::arg_reduce, {v},
               {{"kind", std::string(kind)},
                {"axis", int64_t{1}},
                {"keepdims", int64_t{0}},
                {"select_last", last}})
        .i[0];
  };
  EXPECT_EQ(arg(x, "max", 0), 1);
  EXPECT_EQ(arg(x, "max", 1), 2);
  EXPECT_EQ(arg(x, "min", 0), 3);
  EXPECT_EQ(arg(floats({1, 3}, {1, std::nan(""), 5}), "max", 0), 1);
}

}  // namespace
}  // namespace thrice::ir::testing
