// Would catch: a wrong block edge in the packed product, wrong batch broadcast, wrong pads, strides,
// dilations or groups of convolutions (against loops written straight from the definition), lost integer
// wrap-around.
#include <cmath>

#include "unit/ir_evaluate/arrays.h"

namespace thrice::ir::testing {
namespace {

TEST(Matmul, BlockEdgesAgainstThePlainLoop) {
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{
           {1, 1, 1}, {7, 9, 300}, {100, 530, 5}, {13, 8, 257}, {2, 40, 33}, {40, 3, 33}}) {
    for (int64_t t = 0; t < 4; ++t) {
      const bool ta = t & 1, tb = t & 2;
      const ArrayPtr a = varied(ta ? Ints{k, m} : Ints{m, k}, 1), b = varied(tb ? Ints{n, k} : Ints{k, n}, 2);
      const Array c = run(Op::matmul, {a, b}, {{"trans_a", int64_t{ta}}, {"trans_b", int64_t{tb}}});
      ASSERT_EQ(c.shape, (Ints{m, n}));
      double worst = 0;
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (int64_t p = 0; p < k; ++p)
            sum += a->f[static_cast<size_t>(ta ? p * m + i : i * k + p)] *
                   b->f[static_cast<size_t>(tb ? j * k + p : p * n + j)];
          worst = std::max(worst, std::fabs(sum - c.f[static_cast<size_t>(i * n + j)]));
        }
      EXPECT_LE(worst, 1e-11) << m << " " << n << " " << k << " " << t;
    }
  }
}

TEST(Matmul, BatchesBroadcastAndEmptyInnerGivesZeros) {
  const Array c = run(Op::matmul, {counting({2, 1, 1, 2}), counting({3, 2, 1})});
  expect_near(c, {2, 3, 1, 1}, {1, 3, 5, 3, 13, 23});
  const Array shared = run(Op::matmul, {counting({2, 2, 2}), counting({2, 1})});
  expect_near(shared, {2, 2, 1}, {1, 3, 5, 7});
  expect_near(run(Op::matmul, {floats({2, 0}, {}), floats({0, 1}, {})}), {2, 1}, {0, 0});
  EXPECT_THROW(run(Op::matmul, {counting({2, 3}), counting({2, 3})}), Error);
  EXPECT_EQ(
      run(Op::matmul, {ints({1, 2}, {1 << 20, 3}, DType::kI32), ints({2, 1}, {1 << 12, 5}, DType::kI32)}).i,
      (Ints{15}));
}

// Two spatial axes, straight from the definition.
std::vector<double> plain_conv(const Array& x, const Array& w, const Array& bias, Ints stride, Ints dilation,
                               Ints pads, int64_t group, Ints out) {
  std::vector<double> y;
  const int64_t cg = w.shape[1], og = w.shape[0] / group;
  for (int64_t n = 0; n < x.shape[0]; ++n)
    for (int64_t o = 0; o < w.shape[0]; ++o)
      for (int64_t i = 0; i < out[0]; ++i)
        for (int64_t j = 0; j < out[1]; ++j) {
          double sum = bias.f[static_cast<size_t>(o)];
          for (int64_t c = 0; c < cg; ++c)
            for (int64_t a = 0; a < w.shape[2]; ++a)
              for (int64_t b = 0; b < w.shape[3]; ++b) {
                const int64_t h = i * stride[0] - pads[0] + a * dilation[0],
                              v = j * stride[1] - pads[1] + b * dilation[1];
                if (h < 0 || h >= x.shape[2] || v < 0 || v >= x.shape[3]) continue;
                const int64_t channel = o / og * cg + c;
                sum +=
                    w.f[static_cast<size_t>(((o * cg + c) * w.shape[2] + a) * w.shape[3] + b)] *
                    x.f[static_cast<size_t>(((n * x.shape[1] + channel) * x.shape[2] + h) * x.shape[3] + v)];
              }
          y.push_back(sum);
        }
  return y;
}

TEST(Conv, AgainstTheDefinition) {
  struct Case {
    Ints x, w, stride, dilation, pads;
    int64_t group;
    Ints out;
  };
  const std::vector<Case> cases = {
      {{2, 3, 7, 9}, {5, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 1, {7, 9}},    // columns
      {{1, 4, 9, 8}, {6, 2, 3, 2}, {2, 3}, {2, 1}, {0, 2, 3, 1}, 2, {4, 4}},    // groups, uneven pads
      {{2, 6, 5, 5}, {6, 1, 3, 3}, {2, 1}, {1, 2}, {1, 2, 1, 2}, 6, {3, 5}},    // depthwise
      {{1, 8, 6, 30}, {7, 8, 1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}, 1, {6, 30}},  // pointwise
      {{1, 2, 3, 3}, {4, 2, 5, 5}, {1, 1}, {1, 1}, {4, 4, 4, 4}, 1, {7, 7}},  // kernel larger than the input
      {{1, 40, 30, 40}, {12, 40, 3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 1, {30, 40}},  // several chunks and
                                                                                     // threads
  };
  for (size_t k = 0; k < cases.size(); ++k) {
    const Case& c = cases[k];
    const ArrayPtr x = varied(c.x, 3 + k), w = varied(c.w, 50 + k), bias = varied({c.w[0]}, 90 + k);
    const Array y =
        run(Op::conv, {x, w, bias},
            {{"strides", c.stride}, {"dilations", c.dilation}, {"pads", c.pads}, {"group", c.group}});
    ASSERT_EQ(y.shape, (Ints{c.x[0], c.w[0], c.out[0], c.out[1]})) << k;
    const auto want = plain_conv(*x, *w, *bias, c.stride, c.dilation, c.pads, c.group, c.out);
    double worst = 0;
    for (size_t i = 0; i < want.size(); ++i) worst = std::max(worst, std::fabs(want[i] - y.f[i]));
    EXPECT_LE(worst, 1e-11) << "case " << k;
  }
}

TEST(Conv, OneAndThreeAxesAndIntegersAndAutoPad) {
  expect_near(run(Op::conv, {counting({1, 1, 4}), floats({1, 1, 2}, {1, 10})}, {{"pads", Ints{1, 0}}}),
              {1, 1, 4}, {0, 10, 21, 32});
  expect_near(run(Op::conv, {counting({1, 1, 2, 2, 2}), floats({1, 1, 2, 2, 2}, std::vector<double>(8, 1))}),
              {1, 1, 1, 1, 1}, {28});
  EXPECT_EQ(run(Op::conv, {ints({1, 1, 2}, {1 << 30, 1}, DType::kI32), ints({1, 1, 1}, {4}, DType::kI32)}).i,
            (Ints{0, 4}));
  expect_near(run(Op::conv, {counting({1, 1, 4}), floats({1, 1, 2}, {1, 1})},
                  {{"auto_pad", std::string("same_upper")}}),
              {1, 1, 4}, {1, 3, 5, 3});
  EXPECT_THROW(run(Op::conv, {counting({1, 3, 4}), counting({2, 2, 1})}), Error);
}

TEST(ConvTranspose, IsTheAdjointOfConv) {
  // <conv(x, w), y> == <x, conv_transpose(y, w)> for every geometry.
  for (int64_t group : {1, 2}) {
    const Attributes attrs = {
        {"strides", Ints{2, 1}}, {"dilations", Ints{1, 2}}, {"pads", Ints{1, 0, 0, 1}}, {"group", group}};
    const ArrayPtr x = varied({2, 4, 7, 8}, 5), w = varied({6, 4 / group, 2, 3}, 6);
    const Array y = run(Op::conv, {x, w}, attrs);
    const ArrayPtr g = varied(y.shape, 7);
    const Array back = run(Op::conv_transpose, {g, w}, attrs);
    ASSERT_EQ(back.shape, (Ints{2, 4, 7, 8}));
    double left = 0, right = 0;
    for (size_t i = 0; i < y.f.size(); ++i) left += y.f[i] * g->f[i];
    for (size_t i = 0; i < back.f.size(); ++i) right += back.f[i] * x->f[i];
    EXPECT_NEAR(left, right, 1e-9);
  }
}

TEST(ConvTranspose, OutputShapePaddingAndAutoPad) {
  const ArrayPtr x = counting({1, 1, 3}), w = floats({1, 1, 3}, {1, 1, 1});
  expect_near(run(Op::conv_transpose, {x, w}, {{"strides", Ints{2}}}), {1, 1, 7}, {0, 0, 1, 1, 3, 2, 2});
  expect_near(run(Op::conv_transpose, {x, w}, {{"strides", Ints{2}}, {"output_padding", Ints{1}}}), {1, 1, 8},
              {0, 0, 1, 1, 3, 2, 2, 0});
  expect_near(run(Op::conv_transpose, {x, w}, {{"strides", Ints{2}}, {"output_shape", Ints{6}}}), {1, 1, 6},
              {0, 1, 1, 3, 2, 2});
  expect_near(
      run(Op::conv_transpose, {x, w}, {{"strides", Ints{2}}, {"auto_pad", std::string("same_upper")}}),
      {1, 1, 6}, {0, 0, 1, 1, 3, 2});
}

}  // namespace
}  // namespace thrice::ir::testing
