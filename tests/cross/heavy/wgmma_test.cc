// Catches: the packing kernels or the multiplying one at edges of tiles, batches, transposes, prologues and
// long or wide-ranging sums; scratch buffers that do not fit what the kernels write. The kernels run on a
// card of sm_90a; elsewhere they are described.
#include <cmath>

#include "cross/heavy/schedules.h"
#include "ir/element_bound.h"

namespace thrice::testing {
namespace {

using ir::Dim;
using ir::InputKind;
using ir::Op;

artifact::Schedule schedule(int64_t tile_m, int64_t tile_n, int64_t stages, int64_t split) {
  return {"matmul", "wgmma", {{"tile_m", tile_m}, {"tile_n", tile_n}, {"stages", stages}, {"split", split}}};
}

ir::Workload product(ir::Shape a, ir::Shape b, bool trans_a = false, bool trans_b = false) {
  Builder builder;
  ir::Attributes attrs;
  if (trans_a) attrs["trans_a"] = int64_t{1};
  if (trans_b) attrs["trans_b"] = int64_t{1};
  builder.output(builder.op(Op::matmul, {builder.f32(std::move(a)), builder.f32(std::move(b))}, attrs));
  return builder.workload();
}

bool is_hopper() {
  auto& runner = FamilyRunner::instance();
  return runner.available() && runner.spec().architecture == "sm_90a";
}

TEST(Wgmma, SaysWhereItCanRun) {
  const ir::Workload w = product({Dim(256), Dim(128)}, {Dim(128), Dim(256)});
  const auto& f = family::matmul_family();
  EXPECT_EQ(f.illegal(w, schedule(128, 128, 3, 1), FamilyRunner::gpu_spec("sm_90a")).value_or(""), "");
  EXPECT_NE(f.illegal(w, schedule(128, 128, 3, 1), FamilyRunner::gpu_spec("sm_80")).value_or(""), "");
  EXPECT_NE(f.illegal(w, schedule(128, 256, 4, 1), FamilyRunner::gpu_spec("sm_90a")).value_or(""), "");
  EXPECT_NE(f.illegal(w, schedule(96, 128, 3, 1), FamilyRunner::gpu_spec("sm_90a")).value_or(""), "");
}

TEST(Wgmma, ScratchHoldsWholeTiles) {
  const ir::Workload w = product({Dim(3), Dim(130), Dim(70)}, {Dim(3), Dim(70), Dim(100)});
  const auto facts = ir::facts_at(w.graph, {});
  const auto plan = family::matmul_family().launch(w, schedule(128, 96, 2, 1), facts);
  ASSERT_EQ(plan.launches.size(), 3u);
  // Three batches, two steps of 64; 130 rows padded to 256, 100 columns to 192 (two tiles of 96).
  EXPECT_EQ(plan.temporary_bytes,
            (std::vector<int64_t>{3 * 2 * 256 * 256, 3 * 2 * 256, 3 * 2 * 192 * 256, 3 * 2 * 192}));
  EXPECT_EQ(plan.launches[0].grid[0], 3 * 2 * 256 / 64);
  EXPECT_EQ(plan.launches[2].grid[0], 3 * 2 * 2);
  EXPECT_LE(plan.launches[2].dynamic_shared_bytes, 227 * 1024);
}

TEST(Wgmma, WeightsArePackedOnce) {
  Builder builder;
  builder.output(builder.op(
      Op::matmul, {builder.f32({Dim(100), Dim(70)}), builder.constant(ir::Tensor(DType::kF32, {70, 50}))}));
  const ir::Workload w = builder.workload();
  const auto plan = family::matmul_family().launch(w, schedule(64, 64, 2, 1), ir::facts_at(w.graph, {}));
  ASSERT_EQ(plan.launches.size(), 3u);
  EXPECT_FALSE(plan.launches[0].once);
  EXPECT_TRUE(plan.launches[1].once);
  EXPECT_FALSE(plan.launches[2].once);
  EXPECT_EQ(plan.temporary_kept, (std::vector<bool>{false, false, true, true}));
  // The same product of two inputs is another workload: it costs one packing more.
  EXPECT_NE(w.hash, product({Dim(100), Dim(70)}, {Dim(70), Dim(50)}).hash);
}

TEST(Wgmma, EveryTileTransposeAndEdge) {
  if (!is_hopper()) GTEST_SKIP() << "needs a card of sm_90a";
  for (const bool trans_a : {false, true})
    for (const bool trans_b : {false, true}) {
      const auto turned = [](bool turn, int64_t x, int64_t y) {
        return turn ? ir::Shape{Dim(y), Dim(x)} : ir::Shape{Dim(x), Dim(y)};
      };
      const ir::Workload w = product(turned(trans_a, 200, 330), turned(trans_b, 330, 270), trans_a, trans_b);
      for (const int64_t tile_m : {64, 128})
        for (const int64_t tile_n : {64, 96, 128, 192, 256})
          for (const int64_t split : {1, 2})
            FamilyRunner::instance().check(w, family::matmul_family(), schedule(tile_m, tile_n, 2, split),
                                           ir::make_inputs(w.graph, {}, InputKind::kNormal, 3));
    }
}

// What runs where a release's PTX meets another architecture: out of the planes too, since a packed weight's
// own bytes are gone by then.
TEST(Wgmma, PlainLoopsReadThePlanes) {
  if (!is_hopper()) GTEST_SKIP() << "needs a card of sm_90a";
  auto& runner = FamilyRunner::instance();
  runner.text_before = "#define TH_PORTABLE_PRODUCTS\n";
  for (const bool turned : {false, true}) {
    const ir::Workload w = product(
        {Dim(2), Dim(130), Dim(200)},
        turned ? ir::Shape{Dim(2), Dim(70), Dim(200)} : ir::Shape{Dim(2), Dim(200), Dim(70)}, false, turned);
    for (const int64_t split : {1, 2})
      runner.check(w, family::matmul_family(), schedule(128, 96, 2, split),
                   ir::make_inputs(w.graph, {}, InputKind::kNormal, 4));
  }
  runner.text_before.clear();
}

TEST(Wgmma, OnlyPackingReadsTheOperands) {
  Builder builder;
  builder.output(builder.op(
      Op::matmul, {builder.f32({Dim(100), Dim(70)}), builder.constant(ir::Tensor(DType::kF32, {70, 50}))}));
  const ir::Workload w = builder.workload();
  const auto uses = family::matmul_family().uses(w, schedule(64, 64, 2, 1));
  // a, b, y, planes and scales of a, planes and scales of b.
  ASSERT_EQ(uses.size(), 3u);
  EXPECT_EQ(uses[0].touches, (std::vector<bool>{true, false, false, true, true, false, false}));
  EXPECT_EQ(uses[1].touches, (std::vector<bool>{false, true, false, false, false, true, true}));
  EXPECT_EQ(uses[2].touches, (std::vector<bool>{false, false, true, true, true, true, true}));
  EXPECT_TRUE(uses[1].once);
}

TEST(Wgmma, LongAndWideSums) {
  if (!is_hopper()) GTEST_SKIP() << "needs a card of sm_90a";
  for (const int64_t depth : {65536, 8192}) {
    const ir::Workload w = product({Dim(64), Dim(depth)}, {Dim(depth), Dim(64)});
    for (const InputKind kind :
         {InputKind::kNormal, InputKind::kUniform, InputKind::kHeavyTail, InputKind::kWideRange})
      for (const int64_t split : {1, 8})
        FamilyRunner::instance().check(w, family::matmul_family(), schedule(64, 64, 3, split),
                                       ir::make_inputs(w.graph, {}, kind, 5));
  }
}

// An outlier of A meets small elements of B, and the other way round: every element has a bound of its own.
TEST(Wgmma, OutliersLeaveEveryElementWithinItsBound) {
  if (!is_hopper()) GTEST_SKIP() << "needs a card of sm_90a";
  const ir::Workload w = product({Dim(128), Dim(768)}, {Dim(768), Dim(256)});
  for (const uint64_t seed : {1, 2, 3, 4, 5, 6, 7, 8}) {
    const auto inputs = ir::make_inputs(w.graph, {}, InputKind::kOutliers, seed);
    std::vector<ir::ArrayPtr> arrays;
    for (const auto& t : inputs) arrays.push_back(ir::to_array(t));
    const auto bound = ir::element_bounds(w.graph, arrays)[0].value();
    const auto reference = ir::evaluate_graph(w.graph, arrays)[0];
    const ir::Tensor y =
        FamilyRunner::instance().run(w, family::matmul_family(), schedule(128, 128, 2, 1), inputs)[0];
    for (size_t i = 0; i < bound.size(); ++i)
      ASSERT_LE(std::fabs(y.as_double(static_cast<int64_t>(i)) - reference->f[i]), bound[i])
          << "element " << i << ", seed " << seed;
  }
}

TEST(Wgmma, BatchesAndUnknownExtents) {
  if (!is_hopper()) GTEST_SKIP() << "needs a card of sm_90a";
  const ir::Workload w =
      product({Dim(2), Dim::symbol("m"), Dim::symbol("k")}, {Dim(2), Dim::symbol("k"), Dim(65)});
  for (const auto& [m, k] : {std::pair<int64_t, int64_t>{1, 1}, {129, 64}, {64, 200}})
    FamilyRunner::instance().check(w, family::matmul_family(), schedule(64, 128, 2, 1),
                                   ir::make_inputs(w.graph, {{"s0", m}, {"s1", k}}, InputKind::kNormal, 9));
}

}  // namespace
}  // namespace thrice::testing
