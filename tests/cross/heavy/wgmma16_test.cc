// Catches: tensor maps that describe an operand wrongly (order of axes, strides, boxes), descriptors of lines
// that run along rows, a ring that is given back too early, tiles left out or stored twice by blocks that
// stay, edges, epilogues. The kernels run on a card of sm_90a; elsewhere they are described.
#include "cross/heavy/schedules.h"

namespace thrice::testing {
namespace {

using ir::Dim;
using ir::InputKind;
using ir::Op;

artifact::Schedule schedule(int64_t tile_m, int64_t tile_n, int64_t stages, int64_t cluster, int64_t blocks,
                            int64_t split = 1) {
  return {"matmul",
          "wgmma16",
          {{"tile_m", tile_m},
           {"tile_n", tile_n},
           {"stages", stages},
           {"cluster", cluster},
           {"split", split},
           {"blocks", blocks}}};
}

ir::Workload product(DType dtype, ir::Shape a, ir::Shape b, bool trans_a, bool trans_b, bool with_epilogue) {
  Builder builder;
  ir::Attributes attrs;
  if (trans_a) attrs["trans_a"] = int64_t{1};
  if (trans_b) attrs["trans_b"] = int64_t{1};
  const Dim cols = b[b.size() - (trans_b ? 2 : 1)];
  const auto x = builder.input(dtype, std::move(a)), y = builder.input(dtype, std::move(b));
  auto result = builder.op(Op::matmul, {x, y}, attrs);
  if (with_epilogue)
    result = builder.op(Op::tanh, {builder.op(Op::add, {result, builder.input(dtype, {cols})})});
  builder.output(result);
  return builder.workload();
}

bool is_hopper() {
  auto& runner = FamilyRunner::instance();
  return runner.available() && runner.spec().architecture == "sm_90a";
}

TEST(Wgmma16, SaysWhereItCanRun) {
  const auto& f = family::matmul_family();
  const auto says = [&](const ir::Workload& w, const artifact::Schedule& s, const char* architecture) {
    return f.illegal(w, s, FamilyRunner::gpu_spec(architecture)).value_or("");
  };
  const auto w = product(DType::kBF16, {Dim(256), Dim(128)}, {Dim(128), Dim(256)}, false, false, false);
  EXPECT_EQ(says(w, schedule(128, 256, 4, 2, 132), "sm_90a"), "");
  EXPECT_NE(says(w, schedule(128, 256, 4, 2, 132), "sm_80"), "");
  EXPECT_NE(says(w, schedule(128, 256, 5, 1, 132), "sm_90a"), "");  // shared memory
  EXPECT_NE(says(w, schedule(128, 192, 3, 2, 132), "sm_90a"), "");  // 96 columns are no whole boxes
  EXPECT_NE(says(w, schedule(96, 128, 3, 1, 132), "sm_90a"), "");
}

TEST(Wgmma16, MapsDescribeTheOperands) {
  const auto w =
      product(DType::kF16, {Dim(3), Dim(70), Dim(200)}, {Dim(3), Dim(200), Dim(136)}, false, false, false);
  const auto plan = family::matmul_family().launch(w, schedule(128, 128, 3, 2, 6), ir::facts_at(w.graph, {}));
  ASSERT_EQ(plan.launches.size(), 1u);
  const auto& launch = plan.launches[0];
  EXPECT_EQ(launch.grid[0],
            6);  // three batches, one pair of row tiles, two of columns: twelve blocks, six stay
  ASSERT_EQ(launch.maps.size(), 3u);
  EXPECT_EQ(launch.maps[0].buffer, 0);
  EXPECT_EQ(launch.maps[0].extents, (std::array<int64_t, 3>{200, 70, 3}));
  EXPECT_EQ(launch.maps[0].strides, (std::array<int64_t, 2>{400, 28000}));
  EXPECT_EQ(launch.maps[0].box, (std::array<int64_t, 3>{64, 128, 1}));
  EXPECT_EQ(launch.maps[1].buffer, 1);
  EXPECT_EQ(launch.maps[1].extents, (std::array<int64_t, 3>{136, 200, 3}));
  EXPECT_EQ(launch.maps[1].box, (std::array<int64_t, 3>{64, 64, 1}));
  EXPECT_EQ(launch.maps[2].buffer, 2);
  EXPECT_EQ(launch.maps[2].extents, (std::array<int64_t, 3>{136, 70, 3}));
  for (const bool trans_a : {false, true})
    for (const int64_t cluster : {1, 2}) {
      const auto kept =
          product(DType::kBF16, trans_a ? ir::Shape{Dim(200), Dim(136)} : ir::Shape{Dim(136), Dim(200)},
                  trans_a ? ir::Shape{Dim(520), Dim(200)} : ir::Shape{Dim(200), Dim(520)}, trans_a, trans_a,
                  cluster == 2);
      const auto s = schedule(128, 256, 4, cluster, 132);
      keep_cuda_text(s.str(), family::matmul_family().emit(kept, s, FamilyRunner::gpu_spec("sm_90a")).text);
    }
}

TEST(Wgmma16, EveryTileTransposeAndEdge) {
  if (!is_hopper()) GTEST_SKIP() << "needs a card of sm_90a";
  for (const DType dtype : {DType::kBF16, DType::kF16})
    for (const bool trans_a : {false, true})
      for (const bool trans_b : {false, true}) {
        const auto turned = [](bool turn, int64_t x, int64_t y) {
          return turn ? ir::Shape{Dim(y), Dim(x)} : ir::Shape{Dim(x), Dim(y)};
        };
        for (const bool with_epilogue : {false, true}) {
          const auto w = product(dtype, turned(trans_a, 328, 168), turned(trans_b, 168, 584), trans_a,
                                 trans_b, with_epilogue);
          for (const int64_t tile_m : {64, 128})
            for (const int64_t tile_n : {64, 128, 192, 256})
              for (const int64_t cluster : {1, 2}) {
                const auto s = schedule(tile_m, tile_n, 3, cluster, 4);
                if (family::matmul_family().illegal(w, s, FamilyRunner::instance().spec())) continue;
                FamilyRunner::instance().check(w, family::matmul_family(), s,
                                               ir::make_inputs(w.graph, {}, InputKind::kNormal, 3));
              }
        }
      }
}

TEST(Wgmma16, BatchesShortAndLongDepths) {
  if (!is_hopper()) GTEST_SKIP() << "needs a card of sm_90a";
  for (const int64_t depth : {8, 64, 72, 8192}) {
    const auto w = product(DType::kBF16, {Dim(5), Dim(100), Dim(depth)}, {Dim(5), Dim(depth), Dim(80)}, false,
                           false, true);
    for (const int64_t blocks : {0, 2, 132})
      FamilyRunner::instance().check(w, family::matmul_family(), schedule(64, 128, 4, 2, blocks),
                                     ir::make_inputs(w.graph, {}, InputKind::kUniform, 5));
  }
}

TEST(Wgmma16, OddLinesAreCopied) {
  const auto w =
      product(DType::kBF16, {Dim(3), Dim(70), Dim(201)}, {Dim(3), Dim(201), Dim(135)}, false, false, false);
  const auto plan = family::matmul_family().launch(w, schedule(64, 64, 3, 1, 6), ir::facts_at(w.graph, {}));
  ASSERT_EQ(plan.launches.size(), 3u);
  EXPECT_EQ(plan.temporary_bytes, (std::vector<int64_t>{2 * 3 * 70 * 256, 2 * 3 * 201 * 192}));
  EXPECT_EQ(plan.launches[2].maps[0].strides, (std::array<int64_t, 2>{512, 512 * 70}));
  EXPECT_EQ(plan.launches[2].maps[1].extents, (std::array<int64_t, 3>{135, 201, 3}));
  if (!is_hopper()) GTEST_SKIP() << "needs a card of sm_90a";
  for (const bool trans_a : {false, true})
    for (const bool trans_b : {false, true}) {
      const auto odd = product(
          DType::kBF16, trans_a ? ir::Shape{Dim(77), Dim(205)} : ir::Shape{Dim(205), Dim(77)},
          trans_b ? ir::Shape{Dim(99), Dim(77)} : ir::Shape{Dim(77), Dim(99)}, trans_a, trans_b, false);
      FamilyRunner::instance().check(odd, family::matmul_family(), schedule(128, 128, 4, 2, 132),
                                     ir::make_inputs(odd.graph, {}, InputKind::kNormal, 9));
    }
}

TEST(Wgmma16, WeightsAreCopiedOnce) {
  Builder builder;
  builder.output(builder.op(Op::matmul, {builder.input(DType::kBF16, {Dim(128), Dim(72)}),
                                         builder.constant(ir::Tensor(DType::kBF16, {72, 99}))}));
  const auto w = builder.workload();
  const auto plan = family::matmul_family().launch(w, schedule(64, 64, 4, 1, 0), ir::facts_at(w.graph, {}));
  ASSERT_EQ(plan.launches.size(), 2u);  // A lies well, B does not
  EXPECT_TRUE(plan.launches[0].once);
  EXPECT_FALSE(plan.launches[1].once);
  EXPECT_EQ(plan.temporary_kept, (std::vector<bool>{true}));
}

TEST(Wgmma16, BlocksShareTheDepth) {
  const auto kept = product(DType::kF16, {Dim(40), Dim(1000)}, {Dim(1000), Dim(96)}, false, false, true);
  const auto s = schedule(64, 64, 4, 1, 0, 4);
  keep_cuda_text(s.str(), family::matmul_family().emit(kept, s, FamilyRunner::gpu_spec("sm_90a")).text);
  EXPECT_EQ(family::matmul_family().launch(kept, s, ir::facts_at(kept.graph, {})).launches[0].grid[0], 8);
  EXPECT_NE(
      family::matmul_family().illegal(kept, schedule(64, 64, 4, 1, 132, 4), FamilyRunner::gpu_spec("sm_90a")),
      std::nullopt);
  if (!is_hopper()) GTEST_SKIP() << "needs a card of sm_90a";
  for (const int64_t depth : {64, 200, 1000, 4096})  // of one step three blocks have none
    for (const bool with_epilogue : {false, true}) {
      const auto w = product(DType::kBF16, {Dim(2), Dim(140), Dim(depth)}, {Dim(2), Dim(depth), Dim(200)},
                             false, false, with_epilogue);
      for (const int64_t split : {2, 4, 8})
        for (const int64_t tile_m : {64, 128})
          FamilyRunner::instance().check(w, family::matmul_family(), schedule(tile_m, 128, 4, 1, 0, split),
                                         ir::make_inputs(w.graph, {}, InputKind::kNormal, 5));
    }
}

TEST(Wgmma16, RowsKnownAtRunTime) {
  if (!is_hopper()) GTEST_SKIP() << "needs a card of sm_90a";
  const auto w =
      product(DType::kF16, {Dim(2), Dim::symbol("m"), Dim(64)}, {Dim(65), Dim(64)}, false, true, true);
  for (const int64_t m : {1, 64, 129})
    FamilyRunner::instance().check(w, family::matmul_family(), schedule(64, 128, 4, 1, 132),
                                   ir::make_inputs(w.graph, {{"s0", m}}, InputKind::kNormal, 9));
}

}  // namespace
}  // namespace thrice::testing
