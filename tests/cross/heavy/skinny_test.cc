// Catches: fragments that take other columns or steps of the depth than were loaded, pieces beyond an edge
// that are read or counted, lines of warps or blocks of a cluster that are lost or counted twice, a rule that
// takes it elsewhere. The kernels run on a card; elsewhere their texts are kept for the step cuda_texts.
#include <array>

#include "cross/heavy/schedules.h"

namespace thrice::testing {
namespace {

using ir::Dim;
using ir::InputKind;
using ir::Op;

artifact::Schedule skinny(int64_t tile_m, int64_t tile_n, int64_t warps_k, int64_t stages, int64_t split) {
  return {
      "matmul",
      "skinny",
      {{"tile_m", tile_m}, {"tile_n", tile_n}, {"warps_k", warps_k}, {"stages", stages}, {"split", split}}};
}

struct Product {
  DType dtype = DType::kF32;
  Dim m, n, k;
  bool trans_b = false, prologue = false;
  int64_t batches = 1;

  ir::Workload workload() const {
    Builder b;
    ir::Attributes attrs;
    if (trans_b) attrs["trans_b"] = int64_t{1};
    ir::Shape x_shape{m, k}, y_shape{k, n};
    if (trans_b) y_shape = {n, k};
    if (batches > 1) {
      x_shape.insert(x_shape.begin(), Dim(batches));
      y_shape.insert(y_shape.begin(), Dim(batches));
    }
    ir::ValueId x = b.input(dtype, x_shape);
    if (prologue) x = b.op(Op::neg, {x});
    b.output(b.op(Op::add, {b.op(Op::matmul, {x, b.input(dtype, y_shape)}, attrs), b.input(dtype, {n})}));
    return b.workload();
  }
};

// Runs it where there is a card, else keeps its text.
void check(const Product& product, const artifact::Schedule& s, const ir::Bindings& bindings, InputKind kind,
           double limit) {
  const ir::Workload w = product.workload();
  const auto& f = family::matmul_family();
  auto& runner = FamilyRunner::instance();
  if (runner.available() && runner.spec().api == target::Api::kCuda) {
    runner.check(w, f, s, ir::make_inputs(w.graph, bindings, kind, 5), limit);
    return;
  }
  const auto card = FamilyRunner::gpu_spec("sm_90a");
  ASSERT_EQ(f.illegal(w, s, card).value_or(""), "") << s.str();
  keep_cuda_text(s.str(), f.emit(w, s, card).text);
}

double limit_of(DType dtype) { return dtype == DType::kF32 ? 2e-6 : dtype == DType::kF16 ? 0x1p-11 : 0x1p-8; }

TEST(Skinny, EveryLayoutTypeAndEdge) {
  const artifact::Schedule choices[] = {skinny(16, 64, 4, 3, 1), skinny(32, 128, 2, 2, 2),
                                        skinny(16, 64, 1, 4, 1), skinny(32, 64, 4, 2, 4)};
  int turn = 0;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16})
    for (const bool trans_b : {false, true})
      for (const auto& [m, n, k] : {std::array<int64_t, 3>{16, 128, 512}, {1, 200, 1000}, {37, 72, 264}}) {
        check({dtype, Dim(m), Dim(n), Dim(k), trans_b}, choices[turn++ % 4], {}, InputKind::kNormal,
              limit_of(dtype));
        if (::testing::Test::HasFailure()) return;
      }
}

TEST(Skinny, ExtentsKnownAtRunTimeBatchesAndPrologue) {
  for (const bool trans_b : {false, true}) {
    check({DType::kF32, Dim::symbol("m"), Dim(96), Dim(144), trans_b}, skinny(16, 32, 4, 2, 1), {{"s0", 21}},
          InputKind::kNormal, 2e-6);
    check({DType::kF32, Dim(5), Dim(68), Dim(100), trans_b, true, 3}, skinny(16, 64, 2, 3, 2), {},
          InputKind::kNormal, 2e-6);
    check({DType::kBF16, Dim::symbol("m"), Dim(64), Dim(256), trans_b, false, 2}, skinny(32, 64, 2, 3, 1),
          {{"s0", 3}}, InputKind::kNormal, 0x1p-8);
  }
  // Depth whose pieces are not aligned is read element by element of A.
  check({DType::kF32, Dim(9), Dim(64), Dim(51)}, skinny(16, 64, 2, 2, 1), {}, InputKind::kNormal, 2e-6);
}

TEST(Skinny, LongSumsStayAccurate) {
  check({DType::kF32, Dim(16), Dim(64), Dim(8192)}, skinny(16, 64, 4, 3, 4), {}, InputKind::kUniform, 2e-6);
  check({DType::kF32, Dim(4), Dim(64), Dim(8192), true}, skinny(16, 64, 1, 2, 1), {}, InputKind::kUniform,
        2e-6);
  check({DType::kBF16, Dim(16), Dim(64), Dim(8192)}, skinny(16, 64, 1, 6, 1), {}, InputKind::kUniform,
        0x1p-8);
}

TEST(Skinny, RuleTakesItForSmallAndForWideProducts) {
  const auto chosen = [](const Product& product) {
    const ir::Workload w = product.workload();
    return family::matmul_family()
        .default_schedule(w, ir::facts_at(w.graph, {}), FamilyRunner::gpu_spec("sm_90a"))
        .str();
  };
  EXPECT_EQ(chosen({DType::kF32, Dim(128), Dim(768), Dim(768)}),
            "matmul/skinny tile_m=16 tile_n=32 warps_k=4 stages=4 split=1");
  EXPECT_EQ(chosen({DType::kF32, Dim(64), Dim(1024), Dim(1024)}),
            "matmul/skinny tile_m=16 tile_n=32 warps_k=8 stages=3 split=1");
  EXPECT_EQ(chosen({DType::kBF16, Dim(16), Dim(12288), Dim(4096)}),
            "matmul/skinny tile_m=16 tile_n=64 warps_k=4 stages=4 split=2");
  EXPECT_EQ(chosen({DType::kF32, Dim(256), Dim(1024), Dim(1024)}).find("skinny"), std::string::npos);
  EXPECT_EQ(chosen({DType::kF32, Dim(1), Dim(12288), Dim(4096)}).find("skinny"), std::string::npos);
}

TEST(Skinny, SaysWhereItCanRun) {
  const auto& f = family::matmul_family();
  const auto refusal = [&](const Product& product, const artifact::Schedule& s, const char* architecture) {
    return f.illegal(product.workload(), s, FamilyRunner::gpu_spec(architecture)).value_or("");
  };
  const Product plain{DType::kF32, Dim(16), Dim(64), Dim(512)};
  EXPECT_EQ(refusal(plain, skinny(16, 64, 4, 3, 1), "sm_80"), "");
  EXPECT_NE(refusal(plain, skinny(16, 64, 4, 3, 2), "sm_80"), "");   // clusters
  EXPECT_NE(refusal(plain, skinny(16, 48, 4, 3, 1), "sm_90a"), "");  // warps
  EXPECT_NE(refusal({DType::kF32, Dim(16), Dim(63), Dim(512)}, skinny(16, 64, 4, 3, 1), "sm_90a"), "");
  EXPECT_NE(refusal({DType::kF32, Dim(512), Dim(64), Dim(512)}, skinny(16, 64, 4, 3, 1), "sm_90a"), "");
  EXPECT_NE(
      refusal({DType::kBF16, Dim(16), Dim(64), Dim(512), false, true}, skinny(16, 64, 4, 3, 1), "sm_90a"),
      "");  // a prologue
}

}  // namespace
}  // namespace thrice::testing
