// Catches: Inf - Inf turning into NaN, overflow of a shortcut formula, statistics that cancel, 16-bit sums.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "unit/frontend_ops/one_node.h"

namespace thrice::test {
namespace {
constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(Stability, LogSumExpOfInfinities) {
  OneNode node{"ReduceLogSumExp"};
  node.attributes = {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}};
  node.operands = {floats({4, 2}, {-kInf, -kInf, 1000, 1000, kInf, 0, -kInf, 3})};
  const auto y = node.values();
  EXPECT_EQ(y[0], -kInf);
  EXPECT_NEAR(y[1], 1000 + std::log(2.0), 1e-3);
  EXPECT_EQ(y[2], kInf);
  EXPECT_NEAR(y[3], 3, 1e-6);
}

TEST(Stability, SoftplusAndEluOfLargeValues) {
  OneNode node{"Softplus"};
  node.operands = {floats({4}, {1000, -1000, kInf, -kInf})};
  EXPECT_EQ(node.values(), (std::vector<double>{1000, 0, kInf, 0}));
  node.op_type = "Elu";
  EXPECT_EQ(node.values(), (std::vector<double>{1000, -1, kInf, -1}));
}

TEST(Stability, ActivationsKeepNaN) {
  for (const char* op_type :
       {"Softplus", "Elu", "Selu", "Celu", "LeakyRelu", "HardSigmoid", "HardSwish", "Softsign"}) {
    OneNode node{op_type};
    node.operands = {floats({1}, {std::nan("")})};
    EXPECT_TRUE(std::isnan(node.values()[0])) << op_type;
  }
}

// The variance must be taken of centred values: a product of the operand with itself would cancel in float32.
TEST(Stability, LayerNormalizationSquaresCentredValuesOnly) {
  OneNode node{"LayerNormalization"};
  node.operands = {floats({1, 4}, {1, 2, 3, 4}), floats({4}, {1, 1, 1, 1})};
  const ir::Graph graph = node.import();
  for (const ir::Node& each : graph.nodes)
    if (each.op == ir::Op::mul && each.inputs[0] == each.inputs[1]) {
      EXPECT_NE(each.inputs[0], graph.inputs[0]);
    }
}

TEST(Stability, SixteenBitSumsAreWide) {
  for (const char* op_type : {"ReduceMean", "ReduceL2", "Softmax", "GlobalAveragePool"}) {
    OneNode node{op_type};
    node.operands = {ir::Tensor(DType::kF16, {2, 2, 4})};
    const ir::Graph graph = node.import();
    for (const ir::Node& each : graph.nodes)
      if (each.op == ir::Op::reduce && each.string_attr("kind", "") != "max") {
        EXPECT_EQ(graph.value(each.inputs[0]).type.dtype, DType::kF32) << op_type;
      }
    EXPECT_EQ(graph.value(graph.outputs[0]).type.dtype, DType::kF16) << op_type;
  }
}

// A row whose keys are all masked gives zeros, other rows are not touched.
TEST(Stability, FullyMaskedAttentionRow) {
  OneNode node{"Attention", 23};
  node.operands = {random_f64({1, 1, 2, 4}, 1), random_f64({1, 1, 3, 4}, 2), random_f64({1, 1, 3, 4}, 3),
                   ir::Tensor::of(DType::kBool, {2, 3}, std::vector<int64_t>{0, 0, 0, 0, 1, 0})};
  const auto y = node.values();
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(y[i], 0);
    EXPECT_NEAR(y[4 + i], node.operands[2].as_double(4 + static_cast<int64_t>(i)), 1e-12);
  }
}

TEST(Stability, ClipWithCrossedBoundsGivesTheUpper) {
  OneNode node{"Clip", 13};
  node.operands = {floats({3}, {-5, 0, 5}), floats({}, {2}), floats({}, {1})};
  EXPECT_EQ(node.values(), (std::vector<double>{1, 1, 1}));
}

}  // namespace
}  // namespace thrice::test
