// Catches: rows that forget to rescale when a larger score comes, keys beyond the end that count, masks read
// at the wrong place, rows without any score, views of q, k and v led to the wrong address, a number applied
// twice or never. The tactic mma runs on a card; elsewhere its text is kept for the step cuda_texts.
#include "family/attention/attention.h"

#include "cross/heavy/schedules.h"

namespace thrice::testing {
namespace {

using ir::Dim;
using ir::InputKind;
using ir::Op;
using ir::ValueId;

ValueId softmax(Builder& b, ValueId x, int64_t rank) {
  const ir::Attributes largest{{"kind", std::string("max")}, {"axes", std::vector<int64_t>{rank - 1}}};
  const ir::Attributes sum{{"kind", std::string("sum")}, {"axes", std::vector<int64_t>{rank - 1}}};
  const ValueId e = b.op(Op::exp, {b.op(Op::sub, {x, b.op(Op::reduce, {x}, largest)})});
  return b.op(Op::div, {e, b.op(Op::reduce, {e}, sum)});
}

// [heads, rows, depth] queries against [heads, keys, depth]; the key operand is given as a transpose.
struct Heads {
  Dim heads, rows, keys;
  int64_t depth, width;
};
ValueId scores_of(Builder& b, const Heads& h, DType dtype = DType::kF32) {
  const ValueId q = b.input(dtype, {h.heads, h.rows, Dim(h.depth)}),
                k = b.input(dtype, {h.heads, h.keys, Dim(h.depth)});
  return b.op(Op::matmul, {q, b.op(Op::transpose, {k}, {{"perm", std::vector<int64_t>{0, 2, 1}}})});
}

TEST(Attention, OverWholeAndBrokenTiles) {
  for (const Heads& h :
       {Heads{Dim(2), Dim(16), Dim(64), 64, 64}, Heads{Dim(3), Dim(37), Dim(197), 64, 64},
        Heads{Dim(1), Dim(1), Dim(1), 8, 32}, Heads{Dim(2), Dim(50), Dim(33), 20, 12},
        Heads{Dim(1), Dim(70), Dim(130), 13, 7}, Heads{Dim(1), Dim(64), Dim(300), 128, 128}}) {
    Builder b;
    const ValueId weights = softmax(b, scores_of(b, h), 3);
    b.output(b.op(Op::matmul, {weights, b.f32({h.heads, h.keys, Dim(h.width)})}));
    check_normal(b, family::attention_family(), {{}}, 6);
  }
}

TEST(Attention, AtEveryLength) {
  const Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  Builder b;
  const ValueId weights = softmax(b, scores_of(b, {Dim(2), m, n, 16, 16}), 3);
  b.output(b.op(Op::matmul, {weights, b.f32({Dim(2), n, Dim(16)})}));
  check_normal(b, family::attention_family(),
               {{{"s0", 5}, {"s1", 5}},
                {{"s0", 1}, {"s1", 200}},
                {{"s0", 100}, {"s1", 1}},
                {{"s0", 3}, {"s1", 0}},
                {{"s0", 0}, {"s1", 4}}},
               3);
}

TEST(Attention, WithMaskBiasAndRowsWithoutScores) {
  for (const bool replaces : {false, true}) {
    Builder b;
    const Heads h{Dim(2), Dim(20), Dim(70), 32, 32};
    // Keys from the row's number on are hidden by -Inf; row 0 has none left.
    const ValueId row = b.op(Op::iota, {b.ints({20, 70})}, {{"axis", int64_t{0}}}),
                  key = b.op(Op::iota, {b.ints({20, 70})}, {{"axis", int64_t{1}}});
    const ValueId seen = replaces ? b.op(Op::less, {key, row}) : b.op(Op::less_equal, {key, row});
    const ValueId mask = b.op(Op::where, {seen, b.f32({Dim(20), Dim(70)}), b.scalar(-INFINITY)});
    ValueId weights = softmax(b, b.op(Op::add, {b.op(Op::mul, {scores_of(b, h), b.scalar(0.3)}), mask}), 3);
    if (replaces) weights = b.op(Op::where, {b.op(Op::is_nan, {weights}), b.scalar(0), weights});
    b.output(b.op(Op::matmul, {weights, b.f32({Dim(2), Dim(70), Dim(32)})}));
    check_normal(b, family::attention_family(), {{}}, 6);
  }
}

// As exporters write it: q, k and v picked out of one product, heads split and moved, both scaled.
TEST(Attention, ReadsThroughViewsAndWritesThroughThem) {
  Builder b;
  const ValueId all = b.f32({Dim(1), Dim(50), Dim(3 * 64)});
  const auto heads = [&](int64_t which) {
    const ValueId split = b.op(Op::reshape, {all, b.ints({50, 3, 4, 16})});
    const ValueId moved = b.op(Op::transpose, {split}, {{"perm", std::vector<int64_t>{1, 2, 0, 3}}});
    return b.op(Op::gather, {moved, b.constant(ir::Tensor::scalar(DType::kI64, double(which)))},
                {{"axis", int64_t{0}}});
  };
  const ValueId q = b.op(Op::mul, {heads(0), b.scalar(0.5)});
  const ValueId k = b.op(
      Op::mul, {b.op(Op::transpose, {heads(1)}, {{"perm", std::vector<int64_t>{0, 2, 1}}}), b.scalar(0.7)});
  const ValueId y = b.op(Op::matmul, {softmax(b, b.op(Op::matmul, {q, k}), 3), heads(2)});
  const ValueId moved = b.op(Op::transpose, {y}, {{"perm", std::vector<int64_t>{1, 0, 2}}});
  b.output(b.op(Op::reshape, {moved, b.ints({1, 50, 64})}));
  const ir::Workload w = b.workload();
  const auto& f = family::attention_family();
  ASSERT_FALSE(f.match(w).has_value()) << *f.match(w);
  // Views with a contiguous depth are copied four at a time, and the numbers wait for the scores.
  const auto card = FamilyRunner::gpu_spec("sm_90a");
  const std::string text = f.emit(w, f.default_schedule(w, ir::facts_at(w.graph, {}), card), card).text;
  EXPECT_NE(text.find("th_copy16(to, (p0 + "), std::string::npos);
  check_normal(b, f, {{}}, 6);
}

TEST(Attention, ReadsSlicesOfOneProduct) {
  Builder b;
  const ValueId all = b.f32({Dim(40), Dim(96)});
  const auto heads = [&](int64_t begin, std::vector<int64_t> perm) {
    const ValueId part = b.op(Op::slice, {all, b.ints({begin}), b.ints({begin + 32}), b.ints({1})},
                              {{"axes", std::vector<int64_t>{1}}});
    return b.op(Op::transpose, {b.op(Op::reshape, {part, b.ints({40, 2, 16})})}, {{"perm", perm}});
  };
  const ValueId scores = b.op(Op::matmul, {heads(0, {1, 0, 2}), heads(32, {1, 2, 0})});
  b.output(b.op(Op::matmul, {softmax(b, scores, 3), heads(64, {1, 0, 2})}));
  const ir::Workload w = b.workload();
  const auto& f = family::attention_family();
  ASSERT_FALSE(f.match(w).has_value()) << *f.match(w);
  const auto card = FamilyRunner::gpu_spec("sm_90a");
  const std::string text = f.emit(w, f.default_schedule(w, ir::facts_at(w.graph, {}), card), card).text;
  EXPECT_EQ(text.find("*to = x;"), std::string::npos);  // all three by copies of four
  check_normal(b, f, {{}}, 4);
}

TEST(Attention, SharesKeysAmongHeads) {
  Builder b;
  const ValueId q = b.f32({Dim(2), Dim(4), Dim(9), Dim(16)}), k = b.f32({Dim(2), Dim(1), Dim(40), Dim(16)});
  const auto spread = [&](ValueId x) { return b.op(Op::expand, {x, b.ints({2, 4, 40, 16})}); };
  const ValueId kt = b.op(Op::transpose, {spread(k)}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  b.output(b.op(Op::matmul, {softmax(b, b.op(Op::matmul, {q, kt}), 4),
                             spread(b.f32({Dim(2), Dim(1), Dim(40), Dim(16)}))}));
  check_normal(b, family::attention_family(), {{}}, 4);
}

TEST(Attention, HalfPrecision) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    Builder b;
    const ValueId scores = scores_of(b, {Dim(2), Dim(30), Dim(50), 32, 32}, dtype);
    const ValueId wide = b.op(Op::cast, {scores}, {{"to", static_cast<int64_t>(DType::kF32)}});
    const ValueId weights = b.op(Op::cast, {softmax(b, wide, 3)}, {{"to", static_cast<int64_t>(dtype)}});
    b.output(b.op(Op::matmul, {weights, b.input(dtype, {Dim(2), Dim(50), Dim(32)})}));
    check_normal(b, family::attention_family(), {{}}, 3);
  }
}

TEST(Attention, IsNotWhatOnlyLooksLikeIt) {
  const auto& f = family::attention_family();
  const Heads h{Dim(2), Dim(8), Dim(8), 16, 16};
  {  // a softmax over the queries
    Builder b;
    const ValueId s = scores_of(b, h);
    const auto over = [&](const char* kind, ValueId x) {
      return b.op(Op::reduce, {x}, {{"kind", std::string(kind)}, {"axes", std::vector<int64_t>{1}}});
    };
    const ValueId e = b.op(Op::exp, {b.op(Op::sub, {s, over("max", s)})});
    b.output(b.op(Op::matmul, {b.op(Op::div, {e, over("sum", e)}), b.f32({Dim(2), Dim(8), Dim(16)})}));
    EXPECT_TRUE(f.match(b.workload()).has_value());
  }
  {  // somebody else reads the weights
    Builder b;
    const ValueId weights = softmax(b, scores_of(b, h), 3);
    b.output(b.op(Op::matmul, {weights, b.f32({Dim(2), Dim(8), Dim(16)})}));
    b.output(weights);
    EXPECT_TRUE(f.match(b.workload()).has_value());
  }
  {  // scores read at other places than their own
    Builder b;
    const ValueId s = scores_of(b, h);
    const ValueId turned = b.op(Op::transpose, {s}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
    b.output(b.op(Op::matmul, {softmax(b, b.op(Op::add, {s, turned}), 3), b.f32({Dim(2), Dim(8), Dim(16)})}));
    EXPECT_TRUE(f.match(b.workload()).has_value());
  }
}

}  // namespace
}  // namespace thrice::testing
