// Catches: the written-out loop and the scan disagreeing, sequence lengths ignored in the reverse direction,
// linear_before_reset ignored.
#include <gtest/gtest.h>

#include <cmath>

#include "unit/frontend_ops/one_node.h"

namespace thrice::test {
namespace {

OneNode recurrent(const std::string& op_type, int64_t gates, const std::string& direction, bool as_scan) {
  const int64_t steps = 5, batch = 3, size = 2, hidden = 4, directions = direction == "bidirectional" ? 2 : 1;
  OneNode node{op_type};
  node.attributes = {{"hidden_size", hidden}, {"direction", direction}};
  node.operands = {random_f64({steps, batch, size}, 1),
                   random_f64({directions, gates * hidden, size}, 2),
                   random_f64({directions, gates * hidden, hidden}, 3),
                   random_f64({directions, 2 * gates * hidden}, 4),
                   ir::Tensor::of(DType::kI32, {batch}, std::vector<int64_t>{5, 2, 4}),
                   random_f64({directions, batch, hidden}, 5)};
  node.results = op_type == "LSTM" ? 3 : 2;
  if (as_scan) node.symbols[0] = {"steps", "", ""};
  return node;
}

class Loops : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(Loops, ScanEqualsWrittenOut) {
  const auto& [op_type, direction] = GetParam();
  const int64_t gates = op_type == "LSTM" ? 4 : op_type == "GRU" ? 3 : 1;
  const OneNode written = recurrent(op_type, gates, direction, false);
  const OneNode scanned = recurrent(op_type, gates, direction, true);
  bool has_scan = false;
  for (const ir::Node& node : scanned.import().nodes) has_scan = has_scan || node.op == ir::Op::scan;
  EXPECT_TRUE(has_scan);
  for (size_t result = 0; result < written.results; ++result) {
    const auto a = written.values(result), b = scanned.values(result);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12) << result << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Loops,
                         testing::Combine(testing::Values("RNN", "GRU", "LSTM"),
                                          testing::Values("forward", "reverse", "bidirectional")));

// An entry of length 2 must give what the same entry gives alone as a sequence of two steps, and zeros behind
// it.
TEST(Recurrent, LengthsCutTheSequence) {
  for (const char* direction : {"forward", "reverse"}) {
    const OneNode all = recurrent("GRU", 3, direction, false);
    OneNode alone = all;
    std::vector<double> x, h;
    for (int64_t t = 0; t < 2; ++t)
      for (int64_t i = 0; i < 2; ++i) x.push_back(all.operands[0].as_double((t * 3 + 1) * 2 + i));
    for (int64_t i = 0; i < 4; ++i) h.push_back(all.operands[5].as_double(4 + i));
    alone.operands[0] = f64s({2, 1, 2}, x);
    alone.operands[5] = f64s({1, 1, 4}, h);
    alone.absent = {4};
    const auto y_all = all.values(0), y_alone = alone.values(0), h_all = all.values(1),
               h_alone = alone.values(1);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(h_all[4 + i], h_alone[i], 1e-12) << direction;
      EXPECT_NEAR(y_all[4 + i], y_alone[i], 1e-12) << direction;
      EXPECT_EQ(y_all[2 * 12 + 4 + i], 0) << direction;
    }
  }
}

// One step by hand: n = tanh(Wx + Wb + r * (Rh + Rb)).
TEST(Recurrent, LinearBeforeReset) {
  OneNode node{"GRU"};
  node.attributes = {{"hidden_size", int64_t{1}}, {"linear_before_reset", int64_t{1}}};
  node.operands = {f64s({1, 1, 1}, {0.5}),
                   f64s({1, 3, 1}, {0.1, 0.2, 0.3}),
                   f64s({1, 3, 1}, {0.4, -0.5, 0.6}),
                   f64s({1, 6}, {0.01, 0.02, 0.03, 0.04, 0.05, 0.06}),
                   ir::Tensor(),
                   f64s({1, 1, 1}, {0.7})};
  node.absent = {4};
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const double z = sigmoid(0.05 + 0.01 + 0.28 + 0.04), r = sigmoid(0.1 + 0.02 - 0.35 + 0.05);
  const double n = std::tanh(0.15 + 0.03 + r * (0.42 + 0.06));
  EXPECT_NEAR(node.values()[0], (1 - z) * n + z * 0.7, 1e-12);
}

}  // namespace
}  // namespace thrice::test
