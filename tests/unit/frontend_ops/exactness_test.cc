// Catches: integer products that leave the integers, zero points on the wrong axis, ties away from zero,
// transforms with a wrong sign or scale, block folding that drops an overlap.
#include <gtest/gtest.h>

#include "unit/frontend_ops/one_node.h"

namespace thrice::test {
namespace {

ir::Tensor u8s(std::vector<int64_t> shape, const std::vector<int64_t>& values) {
  return ir::Tensor::of(DType::kU8, std::move(shape), values);
}

TEST(Exactness, MatMulIntegerWithZeroPoints) {
  OneNode node{"MatMulInteger"};
  node.operands = {u8s({2, 2}, {255, 0, 3, 4}), u8s({2, 3}, {1, 2, 3, 255, 254, 0}), u8s({2}, {5, 3}),
                   u8s({3}, {0, 1, 2})};
  // Row zero points 5 and 3, column zero points 0, 1, 2.
  EXPECT_EQ(node.values(),
            (std::vector<double>{250 * 1 - 5 * 255, 250 * 1 - 5 * 253, 250 * 1 + 5 * 2, 255, 253, -2}));
}

TEST(Exactness, QuantizeTiesAndSaturation) {
  OneNode node{"QuantizeLinear", 13};
  node.operands = {floats({6}, {-1000, -1.25, -0.75, 0.25, 0.75, 1000}), floats({}, {0.5}),
                   ir::Tensor::of(DType::kI8, {}, std::vector<int64_t>{0})};
  // -2.5 -> -2, -1.5 -> -2, 0.5 -> 0, 1.5 -> 2.
  EXPECT_EQ(node.values(), (std::vector<double>{-128, -2, -2, 0, 2, 127}));
}

TEST(Exactness, DequantizePerAxisAndBlocked) {
  OneNode node{"DequantizeLinear", 21};
  node.operands = {u8s({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7}), floats({2, 2}, {1, 10, 100, 1000}),
                   u8s({2, 2}, {0, 1, 2, 3})};
  node.attributes = {{"axis", int64_t{1}}, {"block_size", int64_t{2}}};
  EXPECT_EQ(node.values(), (std::vector<double>{0, 1, 10, 20, 200, 300, 3000, 4000}));
  node.attributes = {{"axis", int64_t{0}}};
  node.operands = {u8s({2, 2}, {0, 1, 2, 3}), floats({2}, {2, 3}), u8s({2}, {1, 2})};
  EXPECT_EQ(node.values(), (std::vector<double>{-2, 0, 0, 3}));
}

TEST(Exactness, FourierTransformAndBack) {
  for (int64_t length : {7, 8}) {
    OneNode forward{"DFT", 20};
    forward.attributes = {{"onesided", int64_t{1}}};
    forward.operands = {random_f64({2, length, 1}, 9)};
    const ir::Tensor spectrum = forward.run()[0];
    EXPECT_EQ(spectrum.shape(), (std::vector<int64_t>{2, length / 2 + 1, 2}));
    OneNode back{"DFT", 20};
    back.attributes = {{"onesided", int64_t{1}}, {"inverse", int64_t{1}}};
    back.operands = {spectrum, ir::Tensor::ints({length}).reshaped({})};
    back.constants = {1};
    const auto y = back.values();
    ASSERT_EQ(y.size(), static_cast<size_t>(2 * length));
    for (size_t i = 0; i < y.size(); ++i)
      EXPECT_NEAR(y[i], forward.operands[0].as_double(static_cast<int64_t>(i)), 1e-12) << length << " " << i;
  }
}

// Two columns of a block of two, one apart, over a line of three: the middle gets both.
TEST(Exactness, BlocksOverlap) {
  OneNode node{"Col2Im", 18};
  node.operands = {floats({1, 2, 2}, {1, 2, 10, 20}), ir::Tensor::ints({3}), ir::Tensor::ints({2})};
  node.constants = {1, 2};
  EXPECT_EQ(node.values(), (std::vector<double>{1, 12, 20}));
}

TEST(Exactness, FourBitWeights) {
  OneNode node{"MatMulNBits", 1, "com.microsoft"};
  node.attributes = {{"K", int64_t{4}}, {"N", int64_t{2}}, {"bits", int64_t{4}}, {"block_size", int64_t{4}}};
  // Low nibble first: rows 1 2 3 4 and 15 0 8 7, zero point 8.
  node.operands = {floats({1, 4}, {1, 10, 100, 1000}), u8s({2, 1, 2}, {0x21, 0x43, 0x0f, 0x78}),
                   floats({2}, {1, 2})};
  EXPECT_EQ(node.values(), (std::vector<double>{-7 - 60 - 500 - 4000, 2 * (7 - 80 + 0 - 1000)}));
}

TEST(Exactness, OneHotOfNegativeIndices) {
  OneNode node{"OneHot", 11};
  node.operands = {ir::Tensor::ints({-1, 1, 3}), ir::Tensor::ints({3}), floats({2}, {5, 7})};
  node.constants = {1};
  EXPECT_EQ(node.values(), (std::vector<double>{5, 5, 7, 5, 7, 5, 5, 5, 5}));
}

TEST(Exactness, SoftmaxBefore13TakesAllAxesBehind) {
  OneNode node{"Softmax", 11};
  node.operands = {f64s({1, 2, 2}, {0, 0, 0, 0})};
  EXPECT_EQ(node.values(), (std::vector<double>{0.25, 0.25, 0.25, 0.25}));
  node.opset = 13;
  EXPECT_EQ(node.values(), (std::vector<double>{0.5, 0.5, 0.5, 0.5}));
}

}  // namespace
}  // namespace thrice::test
