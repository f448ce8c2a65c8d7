// Would catch: wrong tie order, scan direction, scatter order and reduction, host operators and string
// functions.
#include <cmath>

#include "unit/ir_evaluate/arrays.h"

namespace thrice::ir::testing {
namespace {

TEST(Scan, ExclusiveReverseProduct) {
  const ArrayPtr x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto scan = [&](int64_t axis, int64_t exclusive, int64_t reverse, const char* kind) {
    return run(Op::scan_sum, {x},
               {{"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}, {"kind", std::string(kind)}})
        .f;
  };
  using F = std::vector<double>;
  EXPECT_EQ(scan(1, 0, 0, "sum"), (F{1, 3, 6, 4, 9, 15}));
  EXPECT_EQ(scan(1, 1, 1, "sum"), (F{5, 3, 0, 11, 6, 0}));
  EXPECT_EQ(scan(0, 1, 0, "sum"), (F{0, 0, 0, 1, 2, 3}));
  EXPECT_EQ(scan(1, 0, 0, "prod"), (F{1, 2, 6, 4, 20, 120}));
}

TEST(TopK, TiesTakeTheLowerIndex) {
  const ArrayPtr x = floats({1, 5}, {2, 7, 7, 1, 7});
  const auto y = run_all(Op::top_k, {x, vec({3})}, {{"axis", int64_t{1}}, {"largest", int64_t{1}}}, 2);
  EXPECT_EQ(y[0]->f, (std::vector<double>{7, 7, 7}));
  EXPECT_EQ(y[1]->i, (Ints{1, 2, 4}));
  EXPECT_EQ(run_all(Op::top_k, {x, vec({2})}, {{"axis", int64_t{1}}, {"largest", int64_t{0}}}, 2)[1]->i,
            (Ints{3, 0}));
  EXPECT_THROW(run(Op::top_k, {x, vec({6})}, {{"axis", int64_t{1}}}), Error);
}

TEST(Scatter, LastWinsAndReductions) {
  const ArrayPtr x = floats({1, 4}, {1, 2, 3, 4});
  const auto scatter = [&](const char* reduction) {
    return run(Op::scatter_elements, {x, ints({1, 3}, {1, -3, 0}), floats({1, 3}, {10, 20, 30})},
               {{"axis", int64_t{1}}, {"reduction", std::string(reduction)}})
        .f;
  };
  using F = std::vector<double>;
  EXPECT_EQ(scatter("none"), (F{30, 20, 3, 4}));
  EXPECT_EQ(scatter("add"), (F{31, 32, 3, 4}));
  EXPECT_EQ(scatter("mul"), (F{30, 400, 3, 4}));
  EXPECT_EQ(scatter("max"), (F{30, 20, 3, 4}));
  EXPECT_EQ(scatter("min"), (F{1, 2, 3, 4}));
  const Array nd = run(Op::scatter_nd, {counting({2, 2}), ints({1, 1}, {1}), floats({1, 2}, {8, 9})});
  expect_near(nd, {2, 2}, {0, 1, 8, 9});
  EXPECT_THROW(run(Op::scatter_nd, {counting({2, 2}), ints({1, 1}, {2}), floats({1, 2}, {8, 9})}), Error);
}

TEST(Host, ShapeNonzeroCompress) {
  EXPECT_EQ(run(Op::shape, {counting({2, 3, 4})}, {{"start", int64_t{-2}}}).i, (Ints{3, 4}));
  const Array n = run(Op::nonzero, {ints({2, 2}, {1, 0, 1, 1})});
  EXPECT_EQ(n.shape, (Ints{2, 3}));
  EXPECT_EQ(n.i, (Ints{0, 1, 1, 0, 0, 1}));
  expect_near(run(Op::compress, {counting({2, 3}), ints({2}, {0, 1}, DType::kBool)}, {{"axis", int64_t{1}}}),
              {2, 1}, {1, 4});
  expect_near(run(Op::compress, {counting({2, 2}), ints({3}, {1, 0, 1}, DType::kBool)}), {2}, {0, 2});
}

TEST(Host, UniqueWithAndWithoutAxis) {
  const auto y = run_all(Op::unique, {floats({6}, {2, 1, 1, 3, 4, 3})}, {{"sorted", int64_t{0}}}, 4);
  EXPECT_EQ(y[0]->f, (std::vector<double>{2, 1, 3, 4}));
  EXPECT_EQ(y[1]->i, (Ints{0, 1, 3, 4}));
  EXPECT_EQ(y[2]->i, (Ints{0, 1, 1, 2, 3, 2}));
  EXPECT_EQ(y[3]->i, (Ints{1, 2, 2, 1}));
  const auto rows = run_all(Op::unique, {floats({3, 2}, {1, 0, 1, 0, 0, 5})}, {{"axis", int64_t{0}}}, 4);
  expect_near(*rows[0], {2, 2}, {0, 5, 1, 0});
  EXPECT_EQ(rows[2]->i, (Ints{1, 1, 0}));
}

TEST(Host, NonMaxSuppressionAndDet) {
  const ArrayPtr boxes = floats({1, 3, 4}, {0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 10, 1, 11}),
                 scores = floats({1, 1, 3}, {0.9, 0.75, 0.6});
  const Array kept =
      run(Op::non_max_suppression, {boxes, scores, vec({3}), floats({1}, {0.5}), floats({1}, {0})});
  EXPECT_EQ(kept.shape, (Ints{2, 3}));
  EXPECT_EQ(kept.i, (Ints{0, 0, 0, 0, 0, 2}));
  expect_near(run(Op::det, {floats({2, 2, 2}, {1, 2, 3, 4, 0, 1, 1, 0})}), {2}, {-2, -1});
}

TEST(Random, StatisticsAndSeeds) {
  Attributes a = {{"kind", std::string("normal")}, {"seed", int64_t{7}}, {"mean", 3.0}, {"scale", 2.0}};
  const Array x = run(Op::random, {vec({100, 100})}, a);
  double mean = 0, square = 0;
  for (double v : x.f) mean += v / 1e4, square += (v - 3) * (v - 3) / 1e4;
  EXPECT_NEAR(mean, 3, 0.1);
  EXPECT_NEAR(square, 4, 0.2);
  EXPECT_EQ(run(Op::random, {vec({100, 100})}, a).f, x.f);
  a["seed"] = int64_t{8};
  EXPECT_NE(run(Op::random, {vec({100, 100})}, a).f, x.f);
  const Array coin = run(Op::random, {floats({10000}, std::vector<double>(10000, 0.25))},
                         {{"kind", std::string("bernoulli")}});
  double heads = 0;
  for (double v : coin.f) heads += v;
  EXPECT_NEAR(heads, 2500, 150);
  const Array drawn = run(Op::random, {floats({1, 3}, {-50, 0, -50})},
                          {{"kind", std::string("multinomial")}, {"sample_size", int64_t{9}}});
  EXPECT_EQ(drawn.i, Ints(9, 1));
}

Attributes named(const char* name, Attributes more = {}) {
  more["name"] = std::string(name);
  return more;
}

TEST(Strings, Functions) {
  using S = std::vector<std::string>;
  EXPECT_EQ(run(Op::host_function, {words({2}, {"a", "b"}), words({1}, {"!"})}, named("StringConcat")).s,
            (S{"a!", "b!"}));
  const auto parts = run_all(Op::host_function, {words({2}, {" hello  world", ""})}, named("StringSplit"), 2);
  EXPECT_EQ(parts[0]->s, (S{"hello", "world", "", ""}));
  EXPECT_EQ(parts[1]->i, (Ints{2, 0}));
  EXPECT_EQ(run(Op::host_function, {words({1}, {"a,b,c"})},
                named("StringSplit", {{"delimiter", std::string(",")}, {"maxsplit", int64_t{1}}}))
                .s,
            (S{"a", "b,c"}));
  EXPECT_EQ(run(Op::host_function, {words({2}, {"ab12", "x"})},
                named("RegexFullMatch", {{"pattern", std::string("[a-z]+\\d+")}}))
                .i,
            (Ints{1, 0}));
  EXPECT_EQ(run(Op::host_function, {words({3}, {"Monday", "tuesday", "wed"}), words({1}, {"MONDAY"})},
                named("StringNormalizer", {{"case_change_action", std::string("UPPER")}}))
                .s,
            (S{"TUESDAY", "WED"}));
  EXPECT_EQ(run(Op::host_function, {words({2}, {"b", "z"}), words({2}, {"a", "b"}), vec({5, 6}), vec({-1})},
                named("LabelEncoder"))
                .i,
            (Ints{6, -1}));
  EXPECT_THROW(run(Op::host_function, {words({1}, {"a"})}, named("NoSuch")), Error);
}

TEST(Strings, TfIdfCountsSkipGrams) {
  const Array y = run(Op::host_function,
                      {ints({12}, {1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8}, DType::kI32),
                       ints({10}, {2, 3, 5, 4, 5, 6, 7, 8, 6, 7}, DType::kI32)},
                      named("TfIdfVectorizer", {{"mode", std::string("TF")},
                                                {"min_gram_length", int64_t{2}},
                                                {"max_gram_length", int64_t{2}},
                                                {"max_skip_count", int64_t{5}},
                                                {"ngram_counts", Ints{0, 4}},
                                                {"ngram_indexes", Ints{0, 1, 2, 3, 4, 5, 6}}}));
  EXPECT_EQ(y.f, (std::vector<double>{0, 0, 0, 0, 1, 3, 1}));
}

}  // namespace
}  // namespace thrice::ir::testing
