// Would catch: inputs that differ between machines or calls, indices outside their axis, kinds that are not
// what they say, bounds that a correct float32 result breaks or that a wrong one passes.
#include "ir/inputs.h"

#include <cmath>
#include <cstring>

#include "base/rng.h"
#include "ir/compare.h"
#include "ir/element_bound.h"
#include "unit/ir_evaluate/arrays.h"

namespace thrice::ir::testing {
namespace {

bool same(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

TEST(Inputs, SeedsDecideEverything) {
  const Tensor a = make_input(DType::kF32, {50}, InputKind::kNormal, 1);
  EXPECT_TRUE(same(a, make_input(DType::kF32, {50}, InputKind::kNormal, 1)));
  EXPECT_FALSE(same(a, make_input(DType::kF32, {50}, InputKind::kNormal, 2)));
  EXPECT_FALSE(same(a, make_input(DType::kF32, {50}, InputKind::kUniform, 1)));
}

// Large inputs are drawn in parts by several threads: a part that began at another place of the sequence
// would make answers depend on the machine.
TEST(Inputs, LargeOnesBeginWithTheNumbersOfSmallOnes) {
  for (const InputKind kind :
       {InputKind::kSmallIntegers, InputKind::kNormal, InputKind::kUniform, InputKind::kHeavyTail,
        InputKind::kWideRange, InputKind::kOutliers, InputKind::kEdgeValues, InputKind::kPositive}) {
    const Tensor small = make_input(DType::kF32, {4000}, kind, 7),
                 large = make_input(DType::kF32, {400000}, kind, 7);
    // The same sequence, drawn by one thread: too few elements for two.
    EXPECT_EQ(std::memcmp(small.data(), large.data(), small.bytes()), 0) << input_kind_name(kind);
    Rng random(7 * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(kind));
    if (kind != InputKind::kNormal) continue;
    for (int64_t i = 0; i < large.size(); ++i)
      ASSERT_EQ(large.as_double(i), static_cast<double>(static_cast<float>(random.normal()))) << i;
  }
}

TEST(Inputs, KindsAreWhatTheySay) {
  const auto extremes = [](DType dtype, InputKind kind) {
    const Tensor x = make_input(dtype, {20000}, kind, 3);
    double low = 1e300, high = -1e300;
    int odd = 0;
    for (int64_t i = 0; i < x.size(); ++i) {
      const double v = x.as_double(i);
      low = std::min(low, v), high = std::max(high, v);
      odd += !std::isfinite(v);
    }
    return std::array<double, 3>{low, high, static_cast<double>(odd)};
  };
  auto e = extremes(DType::kF32, InputKind::kSmallIntegers);
  EXPECT_EQ(e, (std::array<double, 3>{-4, 4, 0}));
  e = extremes(DType::kF32, InputKind::kUniform);
  EXPECT_TRUE(e[0] >= 0 && e[1] <= 1 && e[1] > 0.99);
  e = extremes(DType::kF32, InputKind::kPositive);
  EXPECT_TRUE(e[0] >= 1 && e[1] < 2);
  e = extremes(DType::kF32, InputKind::kWideRange);
  EXPECT_TRUE(e[1] > 1000 && e[1] <= 4096);
  EXPECT_GT(extremes(DType::kF32, InputKind::kOutliers)[1], 1e5);
  EXPECT_GT(extremes(DType::kF32, InputKind::kHeavyTail)[1], 8);
  EXPECT_GT(extremes(DType::kF32, InputKind::kEdgeValues)[2], 100);
  EXPECT_EQ(extremes(DType::kF16, InputKind::kOutliers)[2], 0) << "finite kinds stay finite in f16";
}

ValueId input(Graph& g, DType dtype, Shape shape) {
  const ValueId v = g.add_value({dtype, std::move(shape)});
  g.inputs.push_back(v);
  return v;
}
ValueId emit(Graph& g, Op op, std::vector<ValueId> inputs, Type type, Attributes attrs = {}) {
  Node node;
  node.op = op;
  node.inputs = std::move(inputs);
  node.attrs = std::move(attrs);
  node.outputs = {g.add_value(std::move(type))};
  const ValueId out = node.outputs[0];
  g.add_node(std::move(node));
  return out;
}

TEST(Inputs, IndicesStayInsideTheirAxis) {
  Graph g;
  const Dim n = Dim::symbol("n");
  const ValueId table = input(g, DType::kF32, {3, 8}), ids = input(g, DType::kI64, {n}),
                mask = input(g, DType::kI64, {n});
  const ValueId wide =
      emit(g, Op::cast, {ids}, {DType::kI32, {n}}, {{"to", static_cast<int64_t>(DType::kI32)}});
  const ValueId taken = emit(g, Op::gather, {table, wide}, {DType::kF32, {n, 8}}, {{"axis", int64_t{0}}});
  const ValueId weight =
      emit(g, Op::cast, {mask}, {DType::kF32, {n}}, {{"to", static_cast<int64_t>(DType::kF32)}});
  g.outputs = {taken, weight};
  const auto x = make_inputs(g, {{"n", 500}}, InputKind::kNormal, 1);
  ASSERT_EQ(x[1].shape(), (Ints{500}));
  bool reached = false;
  for (int64_t i = 0; i < 500; ++i) {
    EXPECT_TRUE(x[1].as_int(i) >= 0 && x[1].as_int(i) < 3);
    reached = reached || x[1].as_int(i) == 2;
    EXPECT_TRUE(x[2].as_int(i) == 0 || x[2].as_int(i) == 1);
  }
  EXPECT_TRUE(reached);
  EXPECT_THROW(make_inputs(g, {}, InputKind::kNormal, 1), Error);
}

TEST(Inputs, ShapeOperandsComeFromKnownAndRootsAreNotNegative) {
  Graph g;
  const ValueId x = input(g, DType::kF32, {Dim::symbol("n"), 4}), shape = input(g, DType::kI64, {2});
  g.value(shape).known = std::vector<Dim>{4, Dim::symbol("n")};
  const ValueId r = emit(g, Op::reshape, {x, shape}, {DType::kF32, {4, Dim::symbol("n")}});
  g.outputs = {emit(g, Op::sqrt, {r}, {DType::kF32, {4, Dim::symbol("n")}})};
  const auto t = make_inputs(g, {{"n", 6}}, InputKind::kNormal, 1);
  EXPECT_EQ(t[1].as_int(0), 4);
  EXPECT_EQ(t[1].as_int(1), 6);
  for (int64_t i = 0; i < t[0].size(); ++i) EXPECT_GE(t[0].as_double(i), 0);
}

TEST(ElementBound, SoftmaxOfAProductHoldsForFloat32AndNotForTf32) {
  const int64_t m = 8, k = 64, n = 32;
  Graph g;
  const ValueId a = input(g, DType::kF32, {m, k}), b = input(g, DType::kF32, {k, n});
  const Attributes last = {{"kind", std::string("max")}, {"axes", Ints{1}}, {"keepdims", int64_t{1}}};
  Attributes sum = last;
  sum["kind"] = std::string("sum");
  const ValueId s = emit(g, Op::matmul, {a, b}, {DType::kF32, {m, n}});
  const ValueId top = emit(g, Op::reduce, {s}, {DType::kF32, {m, 1}}, last);
  const ValueId e =
      emit(g, Op::exp, {emit(g, Op::sub, {s, top}, {DType::kF32, {m, n}})}, {DType::kF32, {m, n}});
  g.outputs = {
      emit(g, Op::div, {e, emit(g, Op::reduce, {e}, {DType::kF32, {m, 1}}, sum)}, {DType::kF32, {m, n}}), s};
  const Tensor x = make_input(DType::kF32, {m, k}, InputKind::kNormal, 4),
               y = make_input(DType::kF32, {k, n}, InputKind::kNormal, 5);
  const std::vector<ArrayPtr> inputs = {to_array(x), to_array(y)};
  const auto bounds = element_bounds(g, inputs);
  ASSERT_TRUE(bounds[0] && bounds[1]);
  const auto reference = evaluate_graph(g, inputs);
  // The product's bound is the definition's.
  double size = 0;
  for (int64_t p = 0; p < k; ++p) size += std::fabs(x.as_double(p) * y.as_double(p * n));
  EXPECT_NEAR((*bounds[1])[0], 1e-5 * size, 1e-12 * size + 1e-30);
  Tensor plain(DType::kF32, {m, n}), coarse(DType::kF32, {m, n});
  plain.mutable_data(), coarse.mutable_data();
  const auto tf32 = [](double v) {
    return std::ldexp(std::nearbyint(std::ldexp(v, 10 - std::ilogb(v))), std::ilogb(v) - 10);
  };
  for (int64_t i = 0; i < m; ++i)
    for (Tensor* out : {&plain, &coarse}) {
      std::vector<float> row(static_cast<size_t>(n));
      float high = -1e30f, total = 0;
      for (int64_t j = 0; j < n; ++j) {
        float acc = 0;
        for (int64_t p = 0; p < k; ++p) {
          const double u = x.as_double(i * k + p), v = y.as_double(p * n + j);
          acc += out == &plain ? static_cast<float>(u) * static_cast<float>(v)
                               : static_cast<float>(tf32(u) * tf32(v));
        }
        row[static_cast<size_t>(j)] = acc;
        high = std::max(high, acc);
      }
      for (float& v : row) total += v = std::exp(v - high);
      for (int64_t j = 0; j < n; ++j) out->set(i * n + j, row[static_cast<size_t>(j)] / total);
    }
  EXPECT_TRUE(compare(plain, *reference[0], 1e-5, &*bounds[0]).ok)
      << compare(plain, *reference[0], 1e-5, &*bounds[0]).reason;
  EXPECT_FALSE(compare(coarse, *reference[0], 1.0, &*bounds[0]).ok);
}

TEST(ElementBound, ExtentsOfAnInexactValueAreExact) {
  Graph g;
  const ValueId a = input(g, DType::kF32, {4, 4});
  const ValueId p = emit(g, Op::matmul, {a, a}, {DType::kF32, {4, 4}});
  const ValueId shape = emit(g, Op::shape, {p}, {DType::kI64, {2}});
  g.outputs = {emit(g, Op::reshape, {p, shape}, {DType::kF32, {4, 4}})};
  EXPECT_TRUE(element_bounds(g, {varied({4, 4}, 1)})[0]);
}

TEST(ElementBound, SaysNothingWhereItCannot) {
  Graph g;
  const ValueId a = input(g, DType::kF32, {4, 4});
  const ValueId p = emit(g, Op::matmul, {a, a}, {DType::kF32, {4, 4}});
  const ValueId best = emit(g, Op::arg_reduce, {p}, {DType::kI64, {4}},
                            {{"kind", std::string("max")}, {"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
  const ValueId chosen = emit(g, Op::gather, {a, best}, {DType::kF32, {4, 4}}, {{"axis", int64_t{0}}});
  const ValueId rounded = emit(g, Op::round, {p}, {DType::kF32, {4, 4}});
  const ValueId turned = emit(g, Op::transpose, {a}, {DType::kF32, {4, 4}}, {{"perm", Ints{1, 0}}});
  g.outputs = {best, chosen, rounded, turned};
  const auto bounds = element_bounds(g, {varied({4, 4}, 1)});
  EXPECT_FALSE(bounds[0] || bounds[1] || bounds[2]);
  ASSERT_TRUE(bounds[3]);
  for (double v : *bounds[3]) EXPECT_EQ(v, 0) << "a copy has no error";
}

}  // namespace
}  // namespace thrice::ir::testing
