// Catches: fragments of 16 bits read with rows and depth mixed up, copies of 16 or 8 bytes where neighbours
// are not aligned, sums that lose bits over a long depth, parts of the depth that are lost or counted twice,
// scratch that does not fit them. The kernels run on a card; elsewhere their texts are kept for the step
// cuda_texts.
#include <array>

#include "cross/heavy/schedules.h"

namespace thrice::testing {
namespace {

using ir::Dim;
using ir::InputKind;
using ir::Op;

struct Choice {
  int64_t tile_m, tile_n, tile_k, warps_m, warps_n, stages, split, shares;
  artifact::Schedule schedule() const {
    return {"matmul",
            "mma",
            {{"tile_m", tile_m},
             {"tile_n", tile_n},
             {"tile_k", tile_k},
             {"warps_m", warps_m},
             {"warps_n", warps_n},
             {"stages", stages},
             {"split", split},
             {"shares", shares}}};
  }
};

struct Product {
  DType dtype = DType::kF32;
  Dim m, n, k;
  bool trans_a = false, trans_b = false, prologue = false;

  ir::Workload workload() const {
    Builder b;
    ir::Attributes attrs;
    if (trans_a) attrs["trans_a"] = int64_t{1};
    if (trans_b) attrs["trans_b"] = int64_t{1};
    ir::ValueId x = b.input(dtype, trans_a ? ir::Shape{k, m} : ir::Shape{m, k});
    if (prologue) x = b.op(Op::neg, {x});
    const ir::ValueId y = b.input(dtype, trans_b ? ir::Shape{n, k} : ir::Shape{k, n});
    b.output(b.op(Op::add, {b.op(Op::matmul, {x, y}, attrs), b.input(dtype, {n})}));
    return b.workload();
  }
};

// Runs it where there is a card, else keeps its text.
void check(const Product& product, const Choice& choice, const ir::Bindings& bindings, InputKind kind,
           double limit) {
  const ir::Workload w = product.workload();
  const auto& f = family::matmul_family();
  auto& runner = FamilyRunner::instance();
  const artifact::Schedule s = choice.schedule();
  if (runner.available() && runner.spec().api == target::Api::kCuda) {
    runner.check(w, f, s, ir::make_inputs(w.graph, bindings, kind, 5), limit);
    return;
  }
  const auto card = FamilyRunner::gpu_spec("sm_90a");
  ASSERT_EQ(f.illegal(w, s, card).value_or(""), "") << s.str();
  keep_cuda_text(s.str(), f.emit(w, s, card).text);
}

TEST(Mma, SixteenBitsInEveryLayoutAndAlignment) {
  const Choice choices[] = {
      {64, 64, 32, 2, 2, 3, 1, 1}, {16, 128, 64, 1, 4, 2, 1, 1}, {128, 64, 16, 4, 1, 4, 2, 1}};
  int turn = 0;
  for (const DType dtype : {DType::kF16, DType::kBF16})
    for (const bool trans_a : {false, true})
      for (const bool trans_b : {false, true})
        // Sixteen bytes at once, eight, and through registers; edges of tiles in all three.
        for (const auto& [m, n, k] : {std::array<int64_t, 3>{72, 136, 200}, {68, 100, 84}, {37, 65, 51}}) {
          const Product product{dtype, Dim(m), Dim(n), Dim(k), trans_a, trans_b};
          check(product, choices[turn++ % 3], {}, InputKind::kNormal,
                dtype == DType::kF16 ? 0x1p-11 : 0x1p-8);
          if (::testing::Test::HasFailure()) return;
        }
}

TEST(Mma, SixteenBitsBehindAPrologueAndAtAnyLength) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    const Product prologue{dtype, Dim(40), Dim(72), Dim(96), false, false, true};
    check(prologue, {32, 64, 32, 1, 2, 3, 1, 1}, {}, InputKind::kSmallIntegers,
          dtype == DType::kF16 ? 0 : 0x1p-8);
    const Product any{dtype, Dim::symbol("m"), Dim(64), Dim::symbol("k")};
    for (const int64_t k : {1, 64, 1000})
      check(any, {64, 64, 64, 2, 2, 2, 1, 2}, {{"s0", 33}, {"s1", k}}, InputKind::kNormal,
            dtype == DType::kF16 ? 0x1p-11 : 0x1p-8);
  }
}

TEST(Mma, LongSumsOfSixteenBits) {
  // All positive: what tensor cores cut off has one sign.
  for (const int64_t shares : {1, 8})
    check({DType::kF16, Dim(16), Dim(64), Dim(32768), false, true}, {16, 64, 64, 1, 2, 3, 1, shares}, {},
          InputKind::kUniform, 0x1p-11);
}

TEST(Mma, SharesOfTheDepth) {
  for (const bool trans_a : {false, true})
    for (const bool trans_b : {false, true}) {
      check({DType::kF32, Dim(40), Dim(70), Dim(4000), trans_a, trans_b}, {32, 64, 32, 1, 2, 3, 2, 8}, {},
            InputKind::kSmallIntegers, 0);
      check({DType::kF32, Dim(130), Dim(130), Dim(8200), trans_a, trans_b}, {128, 128, 32, 4, 2, 3, 1, 32},
            {}, InputKind::kUniform, 2e-6);
      if (::testing::Test::HasFailure()) return;
    }
  // Shares that find nothing left of the depth add nothing.
  const Product any{DType::kF32, Dim::symbol("m"), Dim::symbol("n"), Dim::symbol("k")};
  for (const int64_t k : {0, 1, 33, 700})
    check(any, {16, 128, 32, 1, 4, 4, 2, 16}, {{"s0", 5}, {"s1", k}, {"s2", 131}}, InputKind::kSmallIntegers,
          0);
}

TEST(Mma, ScratchHoldsEveryShare) {
  const ir::Workload w = Product{DType::kF32, Dim(128), Dim(100), Dim(8192)}.workload();
  const auto plan = family::matmul_family().launch(w, Choice{128, 128, 32, 4, 2, 3, 2, 16}.schedule(),
                                                   ir::facts_at(w.graph, {}));
  ASSERT_EQ(plan.launches.size(), 2u);
  EXPECT_EQ(plan.temporary_bytes, std::vector<int64_t>{16 * 128 * 100 * 4});
  EXPECT_EQ(plan.launches[0].grid[0], 2 * 16);
}

TEST(Mma, RulesGiveLegalSchedulesThatFillTheCard) {
  for (const char* architecture : {"sm_80", "sm_90a"})
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16})
      for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 4096, 4096},
                                    {16, 12288, 4096},
                                    {32, 4096, 4096},
                                    {64, 12288, 4096},
                                    {4096, 16, 4096},
                                    {4096, 64, 4096},
                                    {128, 128, 65536},
                                    {4096, 4096, 4096},
                                    {50, 768, 768}}) {
        const ir::Workload w = Product{dtype, Dim(m), Dim(n), Dim(k)}.workload();
        const auto card = FamilyRunner::gpu_spec(architecture);
        const auto facts = ir::facts_at(w.graph, {});
        const auto s = family::matmul_family().default_schedule(w, facts, card);
        EXPECT_EQ(family::matmul_family().illegal(w, s, card).value_or(""), "") << s.str();
        if (s.tactic != "mma" || k < 4096) continue;
        const auto plan = family::matmul_family().launch(w, s, facts);
        EXPECT_GE(plan.launches[0].grid[0], 64) << s.str() << " of " << m << "x" << n << "x" << k;
      }
}

TEST(Mma, SaysWhatItCannotDo) {
  const auto refusal = [](const Product& p, const Choice& c) {
    const ir::Workload w = p.workload();
    return family::matmul_family().illegal(w, c.schedule(), FamilyRunner::gpu_spec("sm_90a")).value_or("");
  };
  const Product narrow{DType::kF16, Dim(64), Dim(64), Dim(64)}, wide{DType::kF32, Dim(64), Dim(64), Dim(512)};
  EXPECT_NE(refusal(narrow, {64, 64, 8, 2, 2, 3, 1, 1}).find("16 of the depth"), std::string::npos);
  EXPECT_NE(refusal(wide, {64, 64, 32, 2, 2, 3, 1, 8}).find("steps"), std::string::npos);
  EXPECT_EQ(refusal(wide, {64, 64, 32, 2, 2, 3, 1, 4}), "");
}

}  // namespace
}  // namespace thrice::testing
