// Catches: partial results of a part that nobody counts, or counts twice; parts without a key that spoil the
// others; rows that see nothing; masks read at another part's keys; heads that read another head's keys;
// loads of sixteen bytes where elements do not lie so. The tactic split, which the rule takes for few
// queries.
#include "family/attention/attention_split.h"

#include "cross/heavy/schedules.h"
#include "family/attention/attention.h"
#include "family/attention/attention_form.h"

namespace thrice::testing {
namespace {

using ir::Dim;
using ir::InputKind;
using ir::Op;
using ir::ValueId;
using Ints = std::vector<int64_t>;

ValueId softmax(Builder& b, ValueId x) {
  const ir::Attributes largest{{"kind", std::string("max")}, {"axes", Ints{3}}};
  const ir::Attributes sum{{"kind", std::string("sum")}, {"axes", Ints{3}}};
  const ValueId e = b.op(Op::exp, {b.op(Op::sub, {x, b.op(Op::reduce, {x}, largest)})});
  return b.op(Op::div, {e, b.op(Op::reduce, {e}, sum)});
}

struct Step {
  Dim batch, heads, rows, keys;
  int64_t width;
  int64_t shared = 1;  // heads that read one head of the cache
  DType dtype = DType::kF32;
};
using Between = std::function<ValueId(Builder&, ValueId)>;

// [batch, heads, rows, width] queries; caches [batch, heads / shared, keys, width], repeated as exporters do.
void write_step(Builder& b, const Step& s, const Between& between = {}, bool replaces = false) {
  const Dim stored = Dim(s.heads.value() / s.shared), width(s.width);
  const auto cache = [&] {
    const ValueId x = b.input(s.dtype, {s.batch, stored, s.keys, width});
    if (s.shared == 1) return x;
    const Ints one{s.batch.value(), stored.value(), 1, s.keys.value(), s.width};
    Ints all = one, joined{s.batch.value(), s.heads.value(), s.keys.value(), s.width};
    all[2] = s.shared;
    const ValueId spread = b.op(Op::expand, {b.op(Op::reshape, {x, b.ints(one)}), b.ints(all)});
    return b.op(Op::reshape, {spread, b.ints(joined)});
  };
  const ValueId q = b.input(s.dtype, {s.batch, s.heads, s.rows, width});
  const ValueId kt = b.op(Op::transpose, {cache()}, {{"perm", Ints{0, 1, 3, 2}}});
  ValueId scores = b.op(Op::matmul, {q, kt});
  if (s.dtype != DType::kF32) scores = b.op(Op::cast, {scores}, {{"to", static_cast<int64_t>(DType::kF32)}});
  scores = b.op(Op::mul, {scores, b.scalar(0.125)});
  if (between) scores = between(b, scores);
  ValueId weights = softmax(b, scores);
  if (replaces) weights = b.op(Op::where, {b.op(Op::is_nan, {weights}), b.scalar(0), weights});
  if (s.dtype != DType::kF32) weights = b.op(Op::cast, {weights}, {{"to", static_cast<int64_t>(s.dtype)}});
  b.output(b.op(Op::matmul, {weights, cache()}));
}

artifact::Schedule split(int64_t keys, int64_t rows, int64_t lanes, int64_t vector, int64_t threads = 64) {
  return {"attention",
          "split",
          {{"keys", keys}, {"rows", rows}, {"lanes", lanes}, {"vector", vector}, {"threads", threads}}};
}

// The default of `split` for a card, and the given schedules, on the test's device at each binding.
void check_split(Builder& b, std::vector<artifact::Schedule> schedules,
                 const std::vector<ir::Bindings>& bindings = {{}}, InputKind kind = InputKind::kNormal) {
  const auto& f = family::attention_family();
  const ir::Workload w = b.workload();
  ASSERT_FALSE(f.match(w).has_value()) << *f.match(w);
  const auto card = FamilyRunner::gpu_spec("sm_90a");
  const auto facts = ir::facts_at(w.graph, bindings[0]);
  schedules.push_back(
      family::default_attention_split(w, family::find_attention(w), ir::bind(w.graph, facts), card));
  auto& runner = FamilyRunner::instance();
  runner.keep_cuda(w, f, facts);
  keep_cuda_text("attention/split by rule", f.emit(w, schedules.back(), card).text);
  for (const auto& s : schedules) {
    ASSERT_FALSE(f.illegal(w, s, card).has_value()) << *f.illegal(w, s, card);
    uint64_t seed = 1;
    for (const auto& at : bindings) runner.check(w, f, s, ir::make_inputs(w.graph, at, kind, seed++));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(AttentionSplit, OverOddLengthsAndWidths) {
  std::vector<ir::Bindings> lengths;
  for (const int64_t keys : {1025, 1, 2, 17, 255}) lengths.push_back({{"s0", keys}});
  for (const int64_t width : {32, 64, 128, 256}) {
    Builder b;
    write_step(b, {Dim(2), Dim(3), Dim(1), Dim::symbol("n"), width});
    check_split(b, {split(64, 1, 8, 4)}, lengths);
  }
  Builder b;  // nothing lies in fours
  write_step(b, {Dim(1), Dim(2), Dim(3), Dim(130), 33});
  check_split(b, {split(50, 2, 4, 1), split(100, 4, 16, 1, 32)});
}

TEST(AttentionSplit, AtEveryNumberOfKeysAndQueries) {
  const Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  Builder b;
  write_step(b, {Dim(2), Dim(2), m, n, 64});
  const auto at = [](int64_t rows, int64_t keys) { return ir::Bindings{{"s0", rows}, {"s1", keys}}; };
  check_split(b, {split(64, 4, 8, 4), split(32, 1, 1, 1)},
              {at(1, 300), at(1, 1), at(16, 65), at(5, 0), at(0, 7), at(20, 128)});
}

TEST(AttentionSplit, MasksBiasesAndRowsThatSeeNothing) {
  for (const bool replaces : {false, true}) {
    Builder b;
    const auto between = [&](Builder& g, ValueId s) {
      const ValueId row = g.op(Op::iota, {g.ints({5, 200})}, {{"axis", int64_t{0}}}),
                    key = g.op(Op::iota, {g.ints({5, 200})}, {{"axis", int64_t{1}}});
      // Row r sees 50 r keys: none, one part, several.
      const ValueId seen = g.op(Op::less, {key, g.op(Op::mul, {row, g.scalar(50, DType::kI64)})});
      const ValueId biased = g.op(Op::add, {s, g.f32({Dim(2), Dim(1), Dim(1), Dim(200)})});
      return g.op(Op::where, {seen, biased, g.scalar(-INFINITY)});
    };
    write_step(b, {Dim(2), Dim(4), Dim(5), Dim(200), 32}, between, replaces);
    check_split(b, {split(64, 8, 8, 4), split(64, 2, 2, 1)});
  }
  Builder b;  // a mask that is an input
  const auto masked = [&](Builder& g, ValueId s) {
    return g.op(Op::where,
                {g.input(DType::kBool, {Dim(2), Dim(1), Dim(1), Dim(99)}), s, g.scalar(-INFINITY)});
  };
  write_step(b, {Dim(2), Dim(2), Dim(1), Dim(99), 64}, masked);
  check_split(b, {split(16, 1, 4, 4)});
}

TEST(AttentionSplit, WindowsOfPackedSequences) {
  Builder b;
  const auto window = [&](Builder& g, ValueId s) {
    const ValueId begin = g.input(DType::kI64, {Dim(1), Dim(1), Dim(9), Dim(1)}),
                  end = g.input(DType::kI64, {Dim(1), Dim(1), Dim(9), Dim(1)});
    const ValueId key = g.op(Op::iota, {g.ints({1, 1, 1, 40})}, {{"axis", int64_t{3}}});
    const ValueId shown =
        g.op(Op::logical_and, {g.op(Op::greater_equal, {key, begin}), g.op(Op::less, {key, end})});
    return g.op(Op::where, {shown, s, g.scalar(-INFINITY)});
  };
  write_step(b, {Dim(1), Dim(2), Dim(9), Dim(40), 32}, window);
  check_split(b, {split(16, 4, 8, 4), split(7, 2, 2, 4)});
}

// Heads that share a head of the cache lie in one block, which reads it once.
TEST(AttentionSplit, SharesTheCacheAmongHeads) {
  for (const int64_t shared : {2, 4, 8}) {
    Builder b;
    write_step(b, {Dim(2), Dim(8), Dim(3), Dim(150), 64, shared});
    const ir::Workload w = b.workload();
    const auto plan = family::attention_family().launch(w, split(64, 8, 8, 4), ir::facts_at(w.graph, {}));
    EXPECT_EQ(plan.launches[0].grid[0], 2 * 8 / shared * ((3 * shared + 7) / 8) * 3);
    check_split(b, {split(64, 8, 8, 4), split(64, 4, 4, 1)});
  }
  Builder b;  // by broadcasting
  const ValueId q = b.f32({Dim(2), Dim(4), Dim(1), Dim(32)}), k = b.f32({Dim(2), Dim(1), Dim(70), Dim(32)});
  const ValueId kt = b.op(Op::transpose, {k}, {{"perm", Ints{0, 1, 3, 2}}});
  const ValueId weights = softmax(b, b.op(Op::matmul, {q, kt}));
  b.output(b.op(Op::matmul, {weights, b.f32({Dim(2), Dim(1), Dim(70), Dim(32)})}));
  check_split(b, {split(32, 4, 8, 4)});
}

TEST(AttentionSplit, HalfPrecisionByLoadsOfEight) {
  for (const DType dtype : {DType::kF16, DType::kBF16})
    for (const int64_t shared : {1, 4}) {
      Builder b;
      write_step(b, {Dim(1), Dim(4), Dim(2), Dim(257), 128, shared, dtype});
      check_split(b, {split(64, 2, 8, 8), split(32, 4, 16, 1)});
    }
}

TEST(AttentionSplit, HoldsForOtherInputs) {
  for (const InputKind kind : {InputKind::kUniform, InputKind::kPositive, InputKind::kHeavyTail,
                               InputKind::kOutliers, InputKind::kEdgeValues}) {
    SCOPED_TRACE(ir::input_kind_name(kind));
    Builder b;
    write_step(b, {Dim(1), Dim(2), Dim(2), Dim(150), 32});
    check_split(b, {split(32, 2, 8, 4)}, {{}}, kind);
  }
}

TEST(AttentionSplit, LaunchesFollowTheExtents) {
  Builder b;
  write_step(b, {Dim(1), Dim(4), Dim(1), Dim::symbol("n"), 64});
  const ir::Workload w = b.workload();
  for (const int64_t keys : {0, 1, 64, 65, 8192}) {
    const ir::Bindings at{{"s0", keys}};
    const auto plan = family::attention_family().launch(w, split(64, 1, 8, 4), ir::facts_at(w.graph, at));
    const int64_t parts = (keys + 63) / 64;
    ASSERT_EQ(plan.launches.size(), 2u);
    EXPECT_EQ(plan.launches[0].grid[0], 4 * parts);
    EXPECT_EQ(plan.temporary_bytes, (std::vector<int64_t>{4 * parts * 64 * 4, 4 * parts * 2 * 4}));
  }
}

TEST(AttentionSplit, RuleTakesItForFewQueriesAndManyKeys) {
  const auto tactic = [](const Step& s) {
    Builder b;
    write_step(b, s);
    const ir::Workload w = b.workload();
    const auto card = FamilyRunner::gpu_spec("sm_90a");
    return family::attention_family().default_schedule(w, ir::facts_at(w.graph, {}), card).tactic;
  };
  EXPECT_EQ(tactic({Dim(1), Dim(32), Dim(1), Dim(8192), 128}), "split");
  EXPECT_EQ(tactic({Dim(1), Dim(32), Dim(1), Dim(8192), 128, 4, DType::kBF16}), "split");
  EXPECT_EQ(tactic({Dim(1), Dim(8), Dim(16), Dim(1024), 64}), "split");
  EXPECT_EQ(tactic({Dim(1), Dim(32), Dim(17), Dim(8192), 64}), "mma");   // more queries
  EXPECT_EQ(tactic({Dim(1), Dim(32), Dim(1), Dim(255), 64}), "mma");     // few keys
  EXPECT_EQ(tactic({Dim(16), Dim(32), Dim(1), Dim(1024), 128}), "mma");  // blocks enough
  EXPECT_EQ(tactic({Dim(1), Dim(12), Dim(197), Dim(197), 64}), "mma");
}

TEST(AttentionSplit, RefusesWithAReason) {
  Builder b;
  write_step(b, {Dim(1), Dim(4), Dim(2), Dim(257), 128});
  const ir::Workload w = b.workload();
  const auto has = [&](const artifact::Schedule& s, const char* part) {
    const auto reason = family::attention_family().illegal(w, s, FamilyRunner::gpu_spec("sm_90a"));
    return reason.value_or("legal").find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(split(64, 2, 8, 4), "legal"));
  EXPECT_TRUE(has(split(64, 3, 8, 4), "power of two"));
  EXPECT_TRUE(has(split(0, 2, 8, 4), "at least one key"));
  EXPECT_TRUE(has(split(64, 2, 8, 8), "loads of 4 elements"));
  EXPECT_TRUE(has(split(64, 2, 128, 4), "share the work-items"));
  EXPECT_TRUE(has(split(16, 32, 2, 4), "sums a work-item"));
  EXPECT_TRUE(has(split(512, 16, 8, 4), "bytes of shared memory"));
  EXPECT_TRUE(has(split(64, 2, 8, 4, 2048), "threads a block"));
}

}  // namespace
}  // namespace thrice::testing
