// Short ways to write arrays and to run one operator.
#pragma once
#include <gtest/gtest.h>
#include <thrice/status.h>

#include "ir/evaluate.h"

namespace thrice::ir::testing {

inline ArrayPtr floats(std::vector<int64_t> shape, std::vector<double> values, DType dtype = DType::kF32) {
  return std::make_shared<Array>(Array{dtype, std::move(shape), std::move(values), {}, {}});
}
inline ArrayPtr ints(std::vector<int64_t> shape, std::vector<int64_t> values, DType dtype = DType::kI64) {
  return std::make_shared<Array>(Array{dtype, std::move(shape), {}, std::move(values), {}});
}
inline ArrayPtr vec(std::vector<int64_t> values) {
  const auto n = static_cast<int64_t>(values.size());
  return ints({n}, std::move(values));
}
inline ArrayPtr words(std::vector<int64_t> shape, std::vector<std::string> values) {
  return std::make_shared<Array>(Array{DType::kString, std::move(shape), {}, {}, std::move(values)});
}
// 0, 1, 2, ... (times step) as floats.
inline ArrayPtr counting(std::vector<int64_t> shape, double step = 1) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(step * static_cast<double>(i));
  return floats(std::move(shape), std::move(values));
}
// Small varied floats without a pattern that a wrong index could reproduce.
inline ArrayPtr varied(std::vector<int64_t> shape, uint64_t seed) {
  ArrayPtr x = counting(std::move(shape));
  auto out = std::make_shared<Array>(*x);
  for (double& v : out->f) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    v = static_cast<double>(seed >> 40) / 8388608.0 - 1.0;
  }
  return out;
}

inline std::vector<ArrayPtr> run_all(Op op, const std::vector<ArrayPtr>& operands, Attributes attrs = {},
                                     size_t outputs = 1) {
  Node node;
  node.op = op;
  node.attrs = std::move(attrs);
  for (size_t k = 0; k < outputs; ++k) node.outputs.push_back(static_cast<ValueId>(k));
  return evaluate_node(node, operands);
}
inline Array run(Op op, const std::vector<ArrayPtr>& operands, Attributes attrs = {}) {
  return *run_all(op, operands, std::move(attrs)).at(0);
}
inline void expect_near(const Array& got, const std::vector<int64_t>& shape, const std::vector<double>& want,
                        double tolerance = 1e-12) {
  ASSERT_EQ(got.shape, shape);
  ASSERT_EQ(got.f.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got.f[i], want[i], tolerance) << "element " << i;
}
using Ints = std::vector<int64_t>;

}  // namespace thrice::ir::testing
