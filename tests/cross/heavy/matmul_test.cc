// Catches: wrong edges of tiles, mixed-up transposes and batches, lost epilogues, extents baked in for one
// length.
#include "cross/heavy/schedules.h"

namespace thrice::testing {
namespace {

using ir::Dim;
using ir::Op;

const family::Family& family() { return family::matmul_family(); }

TEST(Matmul, ExactOnFixedShapes) {
  THRICE_REQUIRE_OPENCL();
  const int64_t shapes[][3] = {{1, 1, 1},    {5, 7, 3},   {17, 33, 65}, {64, 48, 40},
                               {1, 101, 37}, {37, 1, 64}, {3, 0, 5},    {4, 6, 0}};
  for (const auto& [m, n, k] : shapes) {
    Builder b;
    b.output(b.op(Op::matmul, {b.f32({m, k}), b.f32({k, n})}));
    check_exact(b, family(), {{}}, 1);
  }
}

TEST(Matmul, ManySchedulesOnOneShape) {
  THRICE_REQUIRE_OPENCL();
  Builder b;
  b.output(b.op(Op::matmul, {b.f32({41, 130}), b.f32({130, 67})}));
  check_exact(b, family(), {{}}, 8);
}

TEST(Matmul, TransposesAndBatches) {
  THRICE_REQUIRE_OPENCL();
  for (const int64_t ta : {0, 1})
    for (const int64_t tb : {0, 1}) {
      Builder b;
      const ir::Shape a = ta ? ir::Shape{2, 1, 19, 9} : ir::Shape{2, 1, 9, 19};
      const ir::Shape c = tb ? ir::Shape{3, 21, 19} : ir::Shape{3, 19, 21};
      b.output(b.op(Op::matmul, {b.f32(a), b.f32(c)}, {{"trans_a", ta}, {"trans_b", tb}}));
      check_exact(b, family(), {{}}, 1);
    }
}

TEST(Matmul, OneTextServesEveryLength) {
  THRICE_REQUIRE_OPENCL();
  Builder b;
  const Dim batch = Dim::symbol("b"), m = Dim::symbol("m"), k = Dim::symbol("k"), n = Dim::symbol("n");
  b.output(b.op(Op::matmul, {b.f32({batch, m, k}), b.f32({batch, k, n})}));
  check_exact(b, family(),
              {{{"s0", 2}, {"s1", 13}, {"s2", 31}, {"s3", 29}},
               {{"s0", 1}, {"s1", 1}, {"s2", 1}, {"s3", 1}},
               {{"s0", 3}, {"s1", 7}, {"s2", 0}, {"s3", 5}},
               {{"s0", 0}, {"s1", 7}, {"s2", 3}, {"s3", 5}},
               {{"s0", 1}, {"s1", 64}, {"s2", 1030}, {"s3", 3}}});
}

TEST(Matmul, FoldedBatchWithBiasActivationAndResidual) {
  THRICE_REQUIRE_OPENCL();
  Builder b;
  const Dim s = Dim::symbol("s");
  const auto a = b.f32({2, s, 24}), w = b.f32({24, 30}), bias = b.f32({30}), rest = b.f32({2, s, 30});
  const auto product = b.op(Op::add, {b.op(Op::matmul, {a, w}), bias});
  b.output(b.op(Op::add, {b.op(Op::relu, {product}), rest}));
  check_exact(b, family(), {{{"s0", 11}}, {{"s0", 1}}});
}

TEST(Matmul, HeadsSplitBehindTheProduct) {
  THRICE_REQUIRE_OPENCL();
  Builder b;
  const auto product = b.op(Op::matmul, {b.f32({2, 10, 16}), b.f32({16, 24})});
  const auto split = b.op(Op::reshape, {product, b.ints({2, 10, 4, 6})});
  b.output(b.op(Op::transpose, {split}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}));
  b.output(product);
  check_exact(b, family());
}

TEST(Matmul, PrologueOnBothOperands) {
  THRICE_REQUIRE_OPENCL();
  Builder b;
  const auto a = b.op(Op::mul, {b.f32({9, 20}), b.f32({20})});
  const auto c = b.op(Op::transpose, {b.f32({14, 20})}, {{"perm", std::vector<int64_t>{1, 0}}});
  b.output(b.op(Op::matmul, {a, c}));
  check_exact(b, family());
}

TEST(Matmul, LongSumsStayAccurate) {
  THRICE_REQUIRE_OPENCL();
  for (const bool symbolic : {false, true}) {
    Builder b;
    const Dim k = symbolic ? Dim::symbol("k") : Dim(6000);
    b.output(b.op(Op::matmul, {b.f32({7, k}), b.f32({k, 19})}));
    check_tactics(b, family(), {{{"s0", 6000}}}, ir::InputKind::kUniform, 2e-6, 1);
  }
}

TEST(Matmul, ElementTypes) {
  THRICE_REQUIRE_OPENCL();
  for (const DType t : {DType::kF64, DType::kF16, DType::kBF16, DType::kI32, DType::kI64, DType::kU32}) {
    if (t == DType::kF64 && !FamilyRunner::instance().spec().has_f64) continue;
    Builder b;
    b.output(b.op(Op::matmul, {b.input(t, {13, 18}), b.input(t, {18, 20})}));
    if (t == DType::kF16 || t == DType::kBF16)
      check_normal(b, family());
    else
      check_exact(b, family(), {{}}, 1);
  }
}

TEST(Matmul, RefusesWhatItCannotInvert) {
  const auto reason = [](Builder& b) { return family().match(b.workload()).value_or(""); };
  {
    Builder b;
    const auto y = b.op(Op::matmul, {b.f32({4, 4}), b.f32({4, 4})});
    b.output(b.op(Op::matmul, {y, b.f32({4, 4})}));
    EXPECT_NE(reason(b).find("two heavy operators"), std::string::npos);
  }
  {
    Builder b;
    const auto y = b.op(Op::matmul, {b.f32({4, 4}), b.f32({4, 4})});
    b.output(b.op(Op::add, {y, b.op(Op::transpose, {y}, {{"perm", std::vector<int64_t>{1, 0}}})}));
    EXPECT_NE(reason(b).find("two different coordinates"), std::string::npos);
  }
  {
    Builder b;
    const auto y = b.op(Op::matmul, {b.f32({1, 4}), b.f32({4, 4})});
    b.output(b.op(Op::add, {y, b.f32({3, 4})}));
    EXPECT_NE(reason(b).find("broadcast"), std::string::npos);
  }
}

TEST(Matmul, IllegalSchedulesNameTheLimit) {
  Builder b;
  b.output(b.op(Op::matmul, {b.f32({64, 64}), b.f32({64, 64})}));
  const ir::Workload w = b.workload();
  target::DeviceSpec gpu;
  gpu.api = target::Api::kCuda;
  gpu.name = "a card";
  const auto refusal = [&](const std::string& text) {
    return family().illegal(w, artifact::Schedule::parse(text), gpu).value_or("");
  };
  EXPECT_NE(refusal("matmul/vector reg_m=6 reg_v=2 lanes=8 items=1").find("OpenCL only"), std::string::npos);
  EXPECT_NE(refusal("matmul/tiled tile_m=128 tile_n=128 tile_k=64 reg_m=8 reg_n=8").find("shared"),
            std::string::npos);
  EXPECT_NE(refusal("matmul/tiled tile_m=128 tile_n=128 tile_k=8 reg_m=2 reg_n=2").find("threads"),
            std::string::npos);
  EXPECT_NE(refusal("matmul/tiled tile_m=48 tile_n=64 tile_k=8 reg_m=9 reg_n=2").find("whole number"),
            std::string::npos);
  EXPECT_EQ(refusal("matmul/tiled tile_m=64 tile_n=64 tile_k=16 reg_m=4 reg_n=4"), "");
}

}  // namespace
}  // namespace thrice::testing
