// Would catch: float64 answers, inputs or comparisons that depend on how many threads share a loop; a loop
// within a loop that waits for itself; a part that is left out or done twice.
#include <atomic>
#include <cmath>
#include <cstring>

#include "base/rng.h"
#include "ir/compare.h"
#include "ir/element_bound.h"
#include "ir/evaluate_threads.h"
#include "ir/inputs.h"
#include "ir/normals.h"
#include "unit/ir_evaluate/arrays.h"

namespace thrice::ir::testing {
namespace {

class Threads : public ::testing::Test {
 protected:
  void TearDown() override { set_loop_threads(0); }
  // The same bytes with 1, 2, 3, 7 and 16 threads.
  template <class F>
  void expect_same_bits(const std::string& what, F answer) {
    set_loop_threads(1);
    const std::vector<double> alone = answer();
    for (const int count : {2, 3, 7, 16}) {
      set_loop_threads(count);
      const std::vector<double> shared = answer();
      ASSERT_EQ(shared.size(), alone.size()) << what;
      EXPECT_EQ(std::memcmp(shared.data(), alone.data(), alone.size() * sizeof(double)), 0)
          << what << " with " << count << " threads";
    }
  }
};

TEST_F(Threads, EveryPartOnce) {
  set_loop_threads(8);
  for (const int64_t n : {1, 2, 7, 64, 1000}) {
    std::vector<std::atomic<int>> seen(static_cast<size_t>(n));
    run_parts(n, [&](int64_t p) { ++seen[static_cast<size_t>(p)]; });
    for (const auto& s : seen) EXPECT_EQ(s, 1);
    std::vector<std::atomic<int>> items(static_cast<size_t>(n));
    parallel_for(n, 1000000, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++items[static_cast<size_t>(i)];
    });
    for (const auto& s : items) EXPECT_EQ(s, 1);
  }
}

TEST_F(Threads, LoopsWithinLoopsEnd) {
  set_loop_threads(6);
  std::atomic<int64_t> sum{0};
  for (int repeat = 0; repeat < 50; ++repeat)
    run_parts(9, [&](int64_t outer) {
      run_parts(
          5, [&](int64_t inner) { run_parts(3, [&](int64_t i) { sum += outer * 100 + inner * 10 + i; }); });
    });
  int64_t expected = 0;
  for (int64_t o = 0; o < 9; ++o)
    for (int64_t n = 0; n < 5; ++n)
      for (int64_t i = 0; i < 3; ++i) expected += o * 100 + n * 10 + i;
  EXPECT_EQ(sum, 50 * expected);
}

TEST_F(Threads, OperatorsGiveTheSameBits) {
  const ArrayPtr image = varied({3, 24, 45, 47}, 1), kernel = varied({33, 12, 3, 3}, 2),
                 bias = varied({33}, 3);
  expect_same_bits("conv", [&] {
    return run(Op::conv, {image, varied({32, 12, 3, 3}, 2), varied({32}, 4)},
               {{"group", int64_t{2}}, {"strides", Ints{2, 1}}, {"pads", Ints{1, 0, 2, 1}}})
        .f;
  });
  expect_same_bits("matmul", [&] {
    return run(Op::matmul, {varied({7, 131, 260}, 5), varied({260, 193}, 6)}).f;
  });
  expect_same_bits("batched matmul", [&] {
    return run(Op::matmul, {varied({12, 97, 64}, 7), varied({12, 64, 97}, 8)}).f;
  });
  const ArrayPtr rows = varied({12, 197, 199}, 9);
  expect_same_bits("sum of rows", [&] {
    return run(Op::reduce, {rows},
               {{"axes", Ints{2}}, {"kind", std::string("sum")}, {"keepdims", int64_t{1}}})
        .f;
  });
  expect_same_bits("sum of columns", [&] {
    return run(Op::reduce, {rows},
               {{"axes", Ints{0}}, {"kind", std::string("sum")}, {"keepdims", int64_t{0}}})
        .f;
  });
  expect_same_bits("exp", [&] { return run(Op::exp, {rows}).f; });
  expect_same_bits("add, broadcast", [&] { return run(Op::add, {rows, varied({197, 1}, 10)}).f; });
  expect_same_bits("transpose", [&] { return run(Op::transpose, {rows}, {{"perm", Ints{2, 0, 1}}}).f; });
  expect_same_bits("pad", [&] {
    return run(Op::pad, {image, vec({0, 1, 2, 3, 0, 0, 1, 2})}, {{"mode", std::string("edge")}}).f;
  });
  expect_same_bits("gather", [&] {
    return run(Op::gather, {rows, vec({3, 190, 7, 7, 0})}, {{"axis", int64_t{1}}}).f;
  });
  expect_same_bits("cast", [&] {
    return run(Op::cast, {rows}, {{"to", static_cast<int64_t>(DType::kBF16)}}).f;
  });
}

TEST_F(Threads, InputsComparisonsAndBoundsGiveTheSameBits) {
  for (const InputKind kind :
       {InputKind::kSmallIntegers, InputKind::kNormal, InputKind::kUniform, InputKind::kHeavyTail,
        InputKind::kWideRange, InputKind::kOutliers, InputKind::kEdgeValues, InputKind::kPositive})
    for (const DType dtype : {DType::kF32, DType::kBF16})
      expect_same_bits(input_kind_name(kind),
                       [&] { return to_array(make_input(dtype, {300007}, kind, 5))->f; });

  Graph g;
  const auto value = [&](Shape shape) { return g.add_value({DType::kF32, std::move(shape)}); };
  const ValueId a = value({Dim(300), Dim(220)}), b = value({Dim(220), Dim(310)}),
                c = value({Dim(300), Dim(310)}), d = value({Dim(300), Dim(310)});
  g.inputs = {a, b};
  g.outputs = {d};
  g.add_node({Op::matmul, {a, b}, {c}, {}, -1, {}});
  g.add_node({Op::tanh, {c}, {d}, {}, -1, {}});
  const std::vector<ArrayPtr> inputs{varied({300, 220}, 1), varied({220, 310}, 2)};
  expect_same_bits("bounds", [&] { return *element_bounds(g, inputs)[0]; });
  // What was evaluated before is what the bounds would evaluate.
  std::vector<ArrayPtr> known;
  const auto fresh = *element_bounds(g, inputs, &known)[0];
  ASSERT_TRUE(known[static_cast<size_t>(c)] && known[static_cast<size_t>(d)]);
  EXPECT_EQ(*element_bounds(g, inputs, &known)[0], fresh);

  const Tensor result = make_input(DType::kF32, {500001}, InputKind::kNormal, 1);
  const ArrayPtr reference = to_array(make_input(DType::kF32, {500001}, InputKind::kNormal, 2));
  expect_same_bits("comparison", [&] {
    const Comparison r = compare(result, *reference, 1e-5);
    return std::vector<double>{r.error, static_cast<double>(r.worst_index), r.worst_value,
                               static_cast<double>(r.compared)};
  });
}

// A bound of |A||B| is the result itself where nothing is negative: the same numbers as by a product of
// magnitudes.
TEST_F(Threads, BoundsOfPositiveOperandsAreThoseOfMagnitudes) {
  Graph g;
  const ValueId a = g.add_value({DType::kF32, {Dim(20), Dim(30)}}),
                b = g.add_value({DType::kF32, {Dim(30), Dim(10)}}),
                c = g.add_value({DType::kF32, {Dim(20), Dim(10)}});
  g.inputs = {a, b};
  g.outputs = {c};
  g.add_node({Op::matmul, {a, b}, {c}, {}, -1, {}});
  auto x = std::make_shared<Array>(*varied({20, 30}, 1)), y = std::make_shared<Array>(*varied({30, 10}, 2));
  const auto mixed = *element_bounds(g, {x, y})[0];
  for (double& v : x->f) v = std::fabs(v);
  for (double& v : y->f) v = std::fabs(v);
  const auto positive = *element_bounds(g, {x, y})[0];
  for (size_t i = 0; i < mixed.size(); ++i) EXPECT_DOUBLE_EQ(positive[i], mixed[i]);
}

TEST_F(Threads, NormalsAreThoseOfTheFormula) {
  constexpr int64_t kCount = 20000;
  std::vector<double> u(kCount), v(kCount), got(kCount);
  Rng random(3), again(3);
  for (int64_t i = 0; i < kCount; ++i)
    u[static_cast<size_t>(i)] = random.uniform(), v[static_cast<size_t>(i)] = random.uniform();
  u[0] = 0, u[1] = 1 - 0x1p-53, v[1] = 0;  // the ends of the range: radius 0, and the largest
  normals(kCount, u.data(), v.data(), got.data());
  for (size_t i = 2; i < got.size(); ++i) {
    const double radius = std::sqrt(-2 * std::log(1 - u[i]));
    ASSERT_NEAR(got[i], radius * std::cos(6.283185307179586 * v[i]), 2e-15 * radius + 1e-300) << i;
  }
  EXPECT_EQ(got[0], 0);
  EXPECT_NEAR(got[1], std::sqrt(2 * 53 * std::log(2.0)), 1e-14);
}

}  // namespace
}  // namespace thrice::ir::testing
