// Catches: operands of thrice::GatedDeltaRule in another order, and a recurrence that is not that of ONNX's
// LinearAttention with the rule gated_delta, which is written out step by step.
#include <gtest/gtest.h>

#include <cmath>

#include "unit/frontend_ops/one_node.h"

namespace thrice::test {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST(GatedDeltaRule, EqualsLinearAttention) {
  const int64_t batch = 2, steps = 5, heads = 3, depth = 4, width = 2;
  const double lower_bound = -3;
  OneNode rule{"GatedDeltaRule"};
  rule.domain = "thrice";
  rule.opset = 1;
  rule.results = 2;
  rule.attributes = {{"lower_bound", lower_bound}, {"epsilon", 0.0}, {"scale", 0.5}};
  rule.operands = {random_f64({batch, steps, heads, depth}, 1),
                   random_f64({batch, steps, heads, depth}, 2),
                   random_f64({batch, steps, heads, width}, 3),
                   random_f64({batch, steps, heads, depth}, 4),
                   random_f64({batch, steps, heads}, 5),
                   random_f64({heads}, 6),
                   random_f64({heads, depth}, 7),
                   random_f64({batch, heads, depth, width}, 8)};
  OneNode attention{"LinearAttention"};
  attention.opset = 27;
  attention.results = 2;
  attention.attributes = {{"q_num_heads", heads}, {"kv_num_heads", heads}, {"scale", 0.5}};
  std::vector<double> unit[2], decay, beta;
  for (size_t i = 0; i < 2; ++i)
    for (int64_t row = 0; row < batch * steps * heads; ++row) {
      double squares = 0;
      for (int64_t d = 0; d < depth; ++d) squares += std::pow(rule.operands[i].as_double(row * depth + d), 2);
      for (int64_t d = 0; d < depth; ++d)
        unit[i].push_back(rule.operands[i].as_double(row * depth + d) / std::sqrt(squares));
    }
  for (int64_t row = 0; row < batch * steps * heads; ++row) {
    const int64_t head = row % heads;
    beta.push_back(sigmoid(rule.operands[4].as_double(row)));
    for (int64_t d = 0; d < depth; ++d) {
      const double gate =
          rule.operands[3].as_double(row * depth + d) + rule.operands[6].as_double(head * depth + d);
      decay.push_back(lower_bound * sigmoid(std::exp(rule.operands[5].as_double(head)) * gate));
    }
  }
  attention.operands = {f64s({batch, steps, heads * depth}, unit[0]),
                        f64s({batch, steps, heads * depth}, unit[1]),
                        rule.operands[2].reshaped({batch, steps, heads * width}),
                        rule.operands[7],
                        f64s({batch, steps, heads * depth}, decay),
                        f64s({batch, steps, heads}, beta)};
  for (size_t result = 0; result < 2; ++result) {
    const auto a = rule.values(result), b = attention.values(result);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12) << result << " " << i;
  }
}

}  // namespace
}  // namespace thrice::test
