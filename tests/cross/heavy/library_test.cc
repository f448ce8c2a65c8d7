// Catches: a library product described with wrong operands, transposes, batches or steps, an epilogue that
// reads it at wrong places, operands offered that do not lie as matrices. The library is played by the host,
// the epilogue's kernel runs on the test device: a card with cuBLASLt runs the tactic in the tests beside it.
#include "artifact/library_product.h"
#include "cross/heavy/library_player.h"

namespace thrice::testing {
namespace {

using artifact::LibraryProduct;
using artifact::ProductExtents;
using ir::Dim;
using ir::Op;

// The product as the description says it, in double, on buffers held as tensors.
void play(const LibraryProduct& p, const std::vector<int32_t>& extents, std::vector<ir::Tensor>& buffers) {
  const auto at = [&](size_t which) { return static_cast<int64_t>(extents[which]); };
  const int64_t rows = at(ProductExtents::kRows), cols = at(ProductExtents::kCols),
                depth = at(ProductExtents::kDepth);
  const ir::Tensor &a = buffers[static_cast<size_t>(p.a)], &b = buffers[static_cast<size_t>(p.b)];
  ir::Tensor& y = buffers[static_cast<size_t>(p.product)];
  ASSERT_EQ(a.dtype(), p.dtype);
  ASSERT_EQ(b.dtype(), p.dtype);
  ASSERT_EQ(y.dtype(), p.result);
  for (int64_t z = 0; z < at(ProductExtents::kBatches); ++z)
    for (int64_t m = 0; m < rows; ++m)
      for (int64_t n = 0; n < cols; ++n) {
        double sum = 0;
        for (int64_t k = 0; k < depth; ++k)
          sum += a.as_double(z * at(ProductExtents::kStepA) + (p.trans_a ? k * rows + m : m * depth + k)) *
                 b.as_double(z * at(ProductExtents::kStepB) + (p.trans_b ? n * depth + k : k * cols + n));
        y.set((z * rows + m) * cols + n, sum);
      }
}

void check_played(Builder& builder, const family::Family& f, const std::vector<ir::Bindings>& bindings,
                  size_t kernels, ir::InputKind kind = ir::InputKind::kSmallIntegers, double limit = 0) {
  const auto parse = [](const std::string& symbol) -> PlayedCall {
    const LibraryProduct p = LibraryProduct::parse(symbol).value();
    return {p.result, p.workspace, [p](const auto& extents, auto& buffers) {
              ASSERT_EQ(extents.size(), size_t{ProductExtents::kCount});
              play(p, extents, buffers);
            }};
  };
  check_played_call(builder, f, "cublaslt", parse, ProductExtents::kAlgorithm, bindings, kernels, kind,
                    limit);
}

TEST(LibraryProduct, PlainProductsOfEveryTransposeAndBatch) {
  for (const int64_t ta : {0, 1})
    for (const int64_t tb : {0, 1})
      for (const int64_t batched : {0, 1, 2, 3}) {
        Builder b;
        ir::Shape a = ta ? ir::Shape{19, 9} : ir::Shape{9, 19},
                  c = tb ? ir::Shape{21, 19} : ir::Shape{19, 21};
        if (batched & 1) a.insert(a.begin(), {2, 3});
        if (batched & 2) c.insert(c.begin(), {2, 3});
        b.output(b.op(Op::matmul, {b.f32(a), b.f32(c)}, {{"trans_a", ta}, {"trans_b", tb}}));
        check_played(b, family::matmul_family(), {{}}, 1);
      }
}

TEST(LibraryProduct, EveryLengthAndFoldedBatchesWithAnEpilogue) {
  THRICE_REQUIRE_OPENCL();
  {
    Builder b;
    const Dim z = Dim::symbol("z"), m = Dim::symbol("m");
    b.output(b.op(Op::matmul, {b.f32({z, m, 5}), b.f32({z, 5, 4})}));
    check_played(b, family::matmul_family(),
                 {{{"s0", 2}, {"s1", 3}}, {{"s0", 0}, {"s1", 3}}, {{"s0", 1}, {"s1", 1}}}, 1);
  }
  Builder b;
  const Dim s = Dim::symbol("s");
  const auto a = b.f32({2, s, 24}), w = b.f32({24, 30}), bias = b.f32({30}), rest = b.f32({2, s, 30});
  const auto sum = b.op(Op::add, {b.op(Op::matmul, {a, w}), bias});
  const auto split = b.op(Op::reshape, {b.op(Op::add, {b.op(Op::relu, {sum}), rest}), b.ints({2, -1, 5, 6})});
  b.output(b.op(Op::transpose, {split}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}));
  check_played(b, family::matmul_family(), {{{"s0", 11}}, {{"s0", 1}}, {{"s0", 0}}}, 2);
}

TEST(LibraryProduct, ElementTypesAndOutputsThatOnlyChangeShape) {
  THRICE_REQUIRE_OPENCL();
  for (const DType t : {DType::kF16, DType::kBF16, DType::kF64, DType::kF32}) {
    Builder plain;
    const auto y = plain.op(Op::matmul, {plain.input(t, {3, 4, 18}), plain.input(t, {18, 20})});
    plain.output(plain.op(Op::reshape, {y, plain.ints({12, 4, 5})}));
    check_played(plain, family::matmul_family(), {{}}, 1, ir::InputKind::kNormal, -1);
    if (t == DType::kF64 && !FamilyRunner::instance().spec().has_f64) continue;
    Builder b;
    b.output(b.op(Op::relu, {b.op(Op::matmul, {b.input(t, {13, 18}), b.input(t, {18, 20})})}));
    check_played(b, family::matmul_family(), {{}}, 2, ir::InputKind::kNormal, -1);
  }
}

TEST(LibraryProduct, PointwiseConvolutions) {
  THRICE_REQUIRE_OPENCL();
  const Dim n = Dim::symbol("n");
  Builder plain;
  plain.output(plain.op(Op::conv, {plain.f32({n, 6, 5, 4}), plain.f32({7, 6, 1, 1})}));
  check_played(plain, family::conv_family(), {{{"s0", 3}}, {{"s0", 1}}}, 1);
  Builder b;
  const auto y = b.op(Op::conv, {b.f32({n, 6, 5, 4}), b.f32({7, 6, 1, 1}), b.f32({7})});
  b.output(b.op(Op::relu, {y}));
  check_played(b, family::conv_family(), {{{"s0", 3}}, {{"s0", 1}}}, 2);
}

TEST(LibraryProduct, RefusesWhatNoLibraryTakes) {
  const artifact::Schedule s = artifact::Schedule::parse("matmul/cublaslt algorithm=0 workspace_mib=32");
  const auto refusal = [&](Builder& b, const target::DeviceSpec& device) {
    return family::matmul_family().illegal(b.workload(), s, device).value_or("");
  };
  const auto product = [](Builder& b, ir::Shape x, ir::Shape y) {
    b.output(b.op(Op::matmul, {b.f32(std::move(x)), b.f32(std::move(y))}));
  };
  {
    Builder b;
    product(b, {4, 4}, {4, 4});
    EXPECT_EQ(refusal(b, library_card()), "");
    target::DeviceSpec bare = library_card();
    bare.cublaslt.clear();
    EXPECT_NE(refusal(b, bare).find("no cuBLASLt"), std::string::npos);
    bare.api = target::Api::kOpenCL;
    EXPECT_NE(refusal(b, bare).find("NVIDIA"), std::string::npos);
  }
  for (const auto& [x, y] : {std::pair<ir::Shape, ir::Shape>{{2, 1, 4, 4}, {3, 4, 4}},
                             {{5, 5, 1, 4, 4}, {5, 5, 4, 4}},
                             {{5, 4, 4}, {5, 5, 4, 4}}}) {
    Builder b;
    product(b, x, y);
    EXPECT_NE(refusal(b, library_card()).find("broadcast"), std::string::npos) << ir::shape_str(x);
  }
  {
    Builder b;
    const auto a = b.op(Op::transpose, {b.f32({4, 4})}, {{"perm", std::vector<int64_t>{1, 0}}});
    b.output(b.op(Op::matmul, {a, b.f32({4, 4})}));
    EXPECT_NE(refusal(b, library_card()).find("prologue"), std::string::npos);
  }
  {
    Builder b;
    b.output(b.op(Op::matmul, {b.input(DType::kI32, {4, 4}), b.input(DType::kI32, {4, 4})}));
    EXPECT_NE(refusal(b, library_card()).find("i32"), std::string::npos);
  }
}

}  // namespace
}  // namespace thrice::testing
