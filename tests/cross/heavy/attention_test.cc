// Catches: rows that forget to rescale when a larger score comes, keys beyond the end that count, masks read
// at the wrong place, rows without any score, views of q, k and v led to the wrong address, a number applied
// twice or never. The tactics mma and wgmma run on a card; elsewhere their texts are kept for the step
// cuda_texts.
#include "family/attention/attention.h"

#include "cross/heavy/schedules.h"
#include "family/attention/attention_wgmma.h"

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

// Packed sequences: a row sees the keys of its own; none, where the window is empty. Windows need not rise.
TEST(Attention, OfPackedSequences) {
  const auto& f = family::attention_family();
  for (const auto& [depth, rows] : {std::pair<int64_t, int64_t>{16, 90}, {32, 200}, {7, 33}, {8, 1}}) {
    Builder b;
    const Dim n = rows;
    const ValueId scores = scores_of(b, {Dim(2), n, n, depth, depth});
    const ValueId begin = b.input(DType::kI64, {Dim(1), n, Dim(1)}),
                  end = b.input(DType::kI64, {Dim(1), n, Dim(1)});
    const ValueId key = b.op(Op::iota, {b.ints({1, 1, rows})}, {{"axis", int64_t{2}}});
    const ValueId shown =
        b.op(Op::logical_and, {b.op(Op::greater_equal, {key, begin}), b.op(Op::less, {key, end})});
    const ValueId weights = softmax(b, b.op(Op::where, {shown, scores, b.scalar(-INFINITY)}), 3);
    b.output(b.op(Op::matmul, {weights, b.f32({Dim(2), n, Dim(depth)})}));
    const ir::Workload w = b.workload();
    ASSERT_FALSE(f.match(w).has_value()) << *f.match(w);
    const std::string text =
        f.emit(w, {"attention", "row", {{"threads", 64}}}, FamilyRunner::gpu_spec("sm_90a")).text;
    EXPECT_NE(text.find("block = first_key; "), std::string::npos) << "keys of others are visited";
    check_normal(b, f, {{}}, 3);
  }
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

// Heads of whole panels: the tactic wgmma on sm_90a. Whole and broken tiles of queries and keys, more tiles
// than blocks, a later mask as a bias and as a choice, with and without a shift, a bias of its own, values by
// view.
struct Wide {
  int64_t heads, rows, keys, depth, width;
};
ValueId wide_attention(Builder& b, const Wide& h, DType dtype, const std::function<ValueId(ValueId)>& between,
                       bool replaces = false) {
  const ValueId scores = scores_of(b, {Dim(h.heads), Dim(h.rows), Dim(h.keys), h.depth, h.width}, dtype);
  const ValueId wide = b.op(Op::cast, {between(scores)}, {{"to", static_cast<int64_t>(DType::kF32)}});
  ValueId shares = softmax(b, wide, 3);
  if (replaces) shares = b.op(Op::where, {b.op(Op::is_nan, {shares}), b.scalar(0), shares});
  const ValueId weights = b.op(Op::cast, {shares}, {{"to", static_cast<int64_t>(dtype)}});
  return b.op(Op::matmul, {weights, b.input(dtype, {Dim(h.heads), Dim(h.keys), Dim(h.width)})});
}

TEST(Attention, WideHeadsOfHalfPrecision) {
  const Wide whole{1, 64, 128, 64, 64}, broken{2, 37, 150, 64, 64}, wide{1, 70, 130, 128, 128};
  for (const auto& [h, dtype] :
       {std::pair{whole, DType::kF16}, {broken, DType::kBF16}, {wide, DType::kBF16}}) {
    Builder b;
    const auto scale = [&, dtype = dtype](ValueId s) { return b.op(Op::mul, {s, b.scalar(0.25, dtype)}); };
    b.output(wide_attention(b, h, dtype, scale));
    check_normal(b, family::attention_family(), {{}}, 2);
  }
}

// One query and one head: coordinates are all zero.
TEST(Attention, OfOneQuery) {
  Builder b;
  const ValueId scaled = b.op(Op::mul, {scores_of(b, {Dim(1), Dim(1), Dim(2), 64, 32}), b.scalar(0.25)});
  b.output(b.op(Op::matmul, {softmax(b, scaled, 3), b.f32({Dim(1), Dim(2), Dim(32)})}));
  check_normal(b, family::attention_family());
}

TEST(Attention, WideHeadsSeeNoLaterKeys) {
  const DType dtype = DType::kBF16;
  for (const int64_t shift : {0, 60, -3})
    for (const Wide& h : {Wide{1, 200, 200, 64, 64}, Wide{1, 150, 290, 128, 128}}) {
      Builder b;
      const auto hide = [&](ValueId s) {
        const ValueId key = b.op(Op::iota, {b.ints({1, h.keys})}, {{"axis", int64_t{1}}}),
                      row = b.op(Op::iota, {b.ints({h.rows, 1})}, {{"axis", int64_t{0}}}),
                      last = b.op(Op::add, {row, b.scalar(static_cast<double>(shift), DType::kI64)});
        const ValueId seen = b.op(Op::less_equal, {key, shift == 0 ? row : last});
        const ValueId hidden = b.scalar(-INFINITY, dtype);
        if (shift == 60) return b.op(Op::where, {seen, s, hidden});
        return b.op(Op::add, {s, b.op(Op::where, {seen, b.scalar(0, dtype), hidden})});
      };
      b.output(wide_attention(b, h, dtype, hide, shift < 0));
      check_normal(b, family::attention_family(), {{}}, 2);
      const ir::Workload w = b.workload();
      const auto card = FamilyRunner::gpu_spec("sm_90a");
      const auto& f = family::attention_family();
      const auto facts = ir::bind(w.graph, ir::facts_at(w.graph, {}));
      const auto schedule = family::default_attention_wgmma(w, family::find_attention(w), facts, card);
      EXPECT_FALSE(f.illegal(w, schedule, card).has_value());
      EXPECT_NE(f.emit(w, schedule, card).text.find("seen_whole"), std::string::npos);  // tiles are left out
      keep_cuda_text("attention/wgmma by rule", f.emit(w, schedule, card).text);
    }
}

TEST(Attention, RefusesWhatWgmmaCannotDo) {
  const auto& f = family::attention_family();
  const auto reason = [&](const Heads& h, DType dtype, std::vector<std::pair<std::string, int64_t>> changes,
                          const char* architecture = "sm_90a") {
    Builder b;
    const ValueId weights = softmax(b, scores_of(b, h, dtype), 3);
    b.output(b.op(Op::matmul, {weights, b.input(dtype, {h.heads, h.keys, Dim(h.width)})}));
    artifact::Schedule s{"attention",
                         "wgmma",
                         {{"tile_m", 128}, {"tile_n", 128}, {"stages", 2}, {"turns", 1}, {"blocks", 132}}};
    for (const auto& [name, value] : changes)
      for (auto& held : s.values)
        if (held.first == name) held.second = value;
    return f.illegal(b.workload(), s, FamilyRunner::gpu_spec(architecture)).value_or("");
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  const Heads wide{Dim(2), Dim(100), Dim(100), 128, 128};
  EXPECT_EQ(reason(wide, DType::kBF16, {}), "");
  EXPECT_TRUE(has(reason(wide, DType::kBF16, {}, "sm_80"), "sm_90a"));
  EXPECT_TRUE(has(reason(wide, DType::kF32, {}), "f16 and bf16"));
  EXPECT_TRUE(has(reason({Dim(2), Dim(9), Dim(9), 96, 64}, DType::kF16, {}), "panels"));
  EXPECT_TRUE(has(reason({Dim(2), Dim(9), Dim::symbol("n"), 64, 64}, DType::kF16, {}), "keys"));
  EXPECT_TRUE(has(reason(wide, DType::kF16, {{"tile_n", 256}}), "registers"));
  EXPECT_TRUE(has(reason(wide, DType::kF16, {{"tile_m", 64}}), "turns"));
  EXPECT_TRUE(has(reason(wide, DType::kF16, {{"stages", 6}}), "shared memory"));
}

// A block stays for several tiles of queries, forwards and backwards.
TEST(Attention, WideHeadsInMoreTilesThanBlocks) {
  for (const bool causal : {false, true}) {
    Builder b;
    const ValueId row = b.op(Op::iota, {b.ints({130, 65})}, {{"axis", int64_t{0}}}),
                  key = b.op(Op::iota, {b.ints({130, 65})}, {{"axis", int64_t{1}}});
    b.output(wide_attention(b, {150, 130, 65, 64, 64}, DType::kBF16, [&](ValueId s) {
      if (!causal) return s;
      return b.op(Op::where, {b.op(Op::less_equal, {key, row}), s, b.scalar(-INFINITY, DType::kBF16)});
    }));
    check_normal(b, family::attention_family(), {{}}, 1);
  }
}

TEST(Attention, WideHeadsWithBiasViewsAndRowsWithoutScores) {
  const DType dtype = DType::kF16;
  Builder b;
  const Wide h{2, 100, 90, 64, 64};
  const ValueId row = b.op(Op::iota, {b.ints({100, 90})}, {{"axis", int64_t{0}}}),
                key = b.op(Op::iota, {b.ints({100, 90})}, {{"axis", int64_t{1}}});
  const ValueId bias = b.input(dtype, {Dim(100), Dim(90)});
  const ValueId y = wide_attention(b, h, dtype, [&](ValueId s) {
    return b.op(Op::where,
                {b.op(Op::less_equal, {key, row}), b.op(Op::add, {s, bias}), b.scalar(-INFINITY, dtype)});
  });
  b.output(b.op(Op::transpose, {y}, {{"perm", std::vector<int64_t>{1, 0, 2}}}));
  check_normal(b, family::attention_family(), {{}}, 2);
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
