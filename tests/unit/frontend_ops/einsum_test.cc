// Catches: labels of a contraction in the wrong order, an ellipsis that does not broadcast, a repeated label
// that is not the diagonal. Every equation is also summed directly.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "unit/frontend_ops/one_node.h"

namespace thrice::test {
namespace {

// Direct sum over all labels; terms and result without an ellipsis.
std::vector<double> direct(const std::vector<std::string>& terms, const std::string& result,
                           const std::vector<ir::Tensor>& tensors) {
  std::map<char, int64_t> extents;
  for (size_t t = 0; t < terms.size(); ++t)
    for (size_t i = 0; i < terms[t].size(); ++i) {
      int64_t& extent = extents[terms[t][i]];
      extent = std::max(extent, tensors[t].shape()[i]);
    }
  std::string order = result;
  for (const auto& [label, extent] : extents)
    if (order.find(label) == std::string::npos) order += label;
  int64_t points = 1, cells = 1;
  for (char label : order) points *= extents[label];
  for (char label : result) cells *= extents[label];
  std::vector<double> sums(static_cast<size_t>(cells));
  for (int64_t point = 0; point < points; ++point) {
    std::map<char, int64_t> index;
    int64_t rest = point;
    for (size_t i = order.size(); i > 0; --i) {
      index[order[i - 1]] = rest % extents[order[i - 1]];
      rest /= extents[order[i - 1]];
    }
    double product = 1;
    for (size_t t = 0; t < terms.size(); ++t) {
      int64_t flat = 0;
      for (size_t i = 0; i < terms[t].size(); ++i) {
        const int64_t extent = tensors[t].shape()[i];
        flat = flat * extent + (extent == 1 ? 0 : index[terms[t][i]]);
      }
      product *= tensors[t].as_double(flat);
    }
    sums[static_cast<size_t>(point / (points / cells))] += product;
  }
  return sums;
}

struct Example {
  std::string equation;
  std::vector<std::string> terms;  // spelt out
  std::string result;
  std::vector<std::vector<int64_t>> shapes;
};

TEST(Einsum, EqualsTheDirectSum) {
  const std::vector<Example> examples = {
      {"ij,jk->ik", {"ij", "jk"}, "ik", {{2, 3}, {3, 4}}},
      {"ij,jk->ki", {"ij", "jk"}, "ki", {{2, 3}, {3, 4}}},
      {"bhqd,bhkd->bhqk", {"bhqd", "bhkd"}, "bhqk", {{2, 3, 4, 5}, {2, 3, 6, 5}}},
      {"bqhd,bkhd->bhqk", {"bqhd", "bkhd"}, "bhqk", {{2, 4, 3, 5}, {2, 6, 3, 5}}},
      {"i,j->ij", {"i", "j"}, "ij", {{2}, {3}}},
      {"i,i", {"i", "i"}, "", {{4}, {4}}},
      {"ii->i", {"ii"}, "i", {{3, 3}}},
      {"ii", {"ii"}, "", {{3, 3}}},
      {"...ii ->...i", {"abii"}, "abi", {{2, 2, 3, 3}}},
      {"ijk->kj", {"ijk"}, "kj", {{2, 3, 4}}},
      {"...ij,...jk->...ik", {"aij", "bajk"}, "baik", {{2, 3, 4}, {5, 2, 4, 2}}},
      {"...ij,...jk->...ik", {"aij", "ajk"}, "aik", {{1, 3, 4}, {5, 4, 2}}},
      {"ij,jk,kl->il", {"ij", "jk", "kl"}, "il", {{2, 3}, {3, 4}, {4, 2}}},
      {"ab,ab,ab->b", {"ab", "ab", "ab"}, "b", {{2, 3}, {2, 3}, {2, 3}}},
      {"ba,cd", {"ba", "cd"}, "abcd", {{2, 3}, {2, 2}}},
  };
  for (const Example& example : examples) {
    OneNode node{"Einsum"};
    node.attributes = {{"equation", example.equation}};
    for (size_t i = 0; i < example.shapes.size(); ++i)
      node.operands.push_back(random_f64(example.shapes[i], i + 7));
    const auto expected = direct(example.terms, example.result, node.operands), y = node.values();
    ASSERT_EQ(y.size(), expected.size()) << example.equation;
    for (size_t i = 0; i < y.size(); ++i)
      EXPECT_NEAR(y[i], expected[i], 1e-12) << example.equation << " " << i;
  }
}

}  // namespace
}  // namespace thrice::test
