// Would catch: a decay after the update instead of before it, a wrong place of beta or of the scale, states
// that do not pass from one part of a sequence to the next, sequences that see each other's tokens.
#include <cmath>

#include "ir/inputs.h"
#include "unit/ir_evaluate/arrays.h"

namespace thrice::ir::testing {
namespace {

const Attributes kRule{{"kind", std::string("delta_rule")}};

ArrayPtr normal(std::vector<int64_t> shape, uint64_t seed) {
  return to_array(make_input(DType::kF64, shape, InputKind::kNormal, seed));
}
ArrayPtr rows(const ArrayPtr& x, int64_t begin, int64_t end) {
  auto out = std::make_shared<Array>(*x);
  const int64_t row = x->size() / x->shape[1];
  out->shape[1] = end - begin;
  out->f.assign(x->f.begin() + begin * row, x->f.begin() + end * row);
  return out;
}

TEST(DeltaRule, OneTokenByHand) {
  // Depth 2, width 1: k = (3, 4) / 5, q = (1, 0), v = 10, S = (1, 2).
  const auto one = [](std::vector<int64_t> shape, std::vector<double> v) {
    auto a = std::make_shared<Array>();
    a->dtype = DType::kF64;
    a->shape = std::move(shape);
    a->f = std::move(v);
    return a;
  };
  const auto y = run_all(
      Op::scan_sum,
      {one({1, 1, 1, 2}, {2, 0}), one({1, 1, 1, 2}, {3, 4}), one({1, 1, 1, 1}, {10}),
       one({1, 1, 1, 1}, {0.5}), one({1, 1, 1}, {0}), one({1}, {std::log(2.0)}), one({1, 1}, {-0.5}),
       one({1, 1, 2, 1}, {1, 2})},
      {{"kind", std::string("delta_rule")}, {"epsilon", 0.0}, {"lower_bound", -2.0}, {"scale", 0.5}}, 2);
  const double a = std::exp(-1.0);  // sigmoid(0) is a half
  const double u = 0.5 * (10 - (0.6 * a + 0.8 * 2 * a));
  expect_near(*y[1], {1, 1, 2, 1}, {a + 0.6 * u, 2 * a + 0.8 * u}, 1e-12);
  expect_near(*y[0], {1, 1, 1, 1}, {0.5 * (a + 0.6 * u)}, 1e-12);
}

TEST(DeltaRule, PartsEqualTheWhole) {
  const int64_t t = 9, h = 2, k = 3, w = 4;
  std::vector<ArrayPtr> all = {normal({1, t, h, k}, 1), normal({1, t, h, k}, 2), normal({1, t, h, w}, 3),
                               normal({1, t, h, k}, 4), normal({1, t, h}, 5),    normal({h}, 6),
                               normal({h, k}, 7),       normal({1, h, k, w}, 8)};
  const auto whole = run_all(Op::scan_sum, all, kRule, 2);
  const auto part = [&](int64_t begin, int64_t end, const ArrayPtr& state) {
    std::vector<ArrayPtr> some = all;
    for (size_t i = 0; i < 5; ++i) some[i] = rows(all[i], begin, end);
    some[7] = state;
    return run_all(Op::scan_sum, some, kRule, 2);
  };
  const auto first = part(0, 4, all[7]), second = part(4, t, first[1]);
  expect_near(*second[1], whole[1]->shape, whole[1]->f, 1e-12);
  expect_near(*second[0], second[0]->shape, rows(whole[0], 4, t)->f, 1e-12);
  // The same two parts packed: each starts from a state of its own; one without tokens hands its state on.
  auto states = std::make_shared<Array>(*all[7]);
  states->shape[0] = 3;
  states->f.insert(states->f.end(), first[1]->f.begin(), first[1]->f.end());
  states->f.insert(states->f.end(), all[7]->f.begin(), all[7]->f.end());
  std::vector<ArrayPtr> packed = all;
  packed[7] = states;
  packed.push_back(vec({0, 4, 9, 9}));
  const auto both = run_all(Op::scan_sum, packed, kRule, 2);
  expect_near(*both[0], whole[0]->shape, whole[0]->f, 1e-12);
  std::vector<double> last = first[1]->f;
  last.insert(last.end(), whole[1]->f.begin(), whole[1]->f.end());
  last.insert(last.end(), all[7]->f.begin(), all[7]->f.end());
  expect_near(*both[1], {3, h, k, w}, last, 1e-12);
}

}  // namespace
}  // namespace thrice::ir::testing
