// Catches lost or doubled elements at the ends of odd rows, packs at odd addresses, wrong carries between
// warps and rounds, tiles that turn wrongly at their edges, and kept values of another element, in the
// tactics that move packs of neighbours (CUDA; elsewhere the same workloads run by the other tactics).
#include "cross/family_runner.h"

namespace thrice::testing {
namespace {

using ir::Dim;
using ir::InputKind;
using ir::Op;
using ir::ValueId;
using List = std::vector<int64_t>;

const family::Family& of(const char* name) { return *family::find_family(name); }
FamilyRunner& runner() { return FamilyRunner::instance(); }

// The tactics are written for CUDA: elsewhere only their texts are kept, which tools/cuda_texts.py compiles.
void check(const ir::Workload& w, const family::Family& f, const std::vector<ir::Bindings>& bindings,
           InputKind kind = InputKind::kNormal) {
  if (runner().spec().api == target::Api::kCuda) return runner().check_all(w, f, bindings, kind);
  ASSERT_FALSE(f.match(w).has_value());
  runner().keep_cuda(w, f, ir::facts_at(w.graph, bindings[0]));
}

ir::Attributes over(const char* kind, List axes, int64_t keepdims = 1) {
  return {{"kind", std::string(kind)}, {"axes", std::move(axes)}, {"keepdims", keepdims}};
}

TEST(Packs, RowsOfEveryRemainderKeepWhatTheyComputed) {
  THRICE_REQUIRE_OPENCL();
  for (const DType t : {DType::kF32, DType::kF16, DType::kBF16})
    for (const int64_t n : {64, 1021, 1023, 1024, 2049}) {
      Builder b;
      const ValueId x = b.input(t, {Dim::symbol("n"), n});
      const ValueId e = b.op(Op::exp, {b.op(Op::sub, {x, b.op(Op::reduce, {x}, over("max", {1}))})});
      b.output(b.op(Op::div, {e, b.op(Op::reduce, {e}, over("sum", {1}))}));
      check(b.workload(), of("row"), {{{"s0", 7}}, {{"s0", 1}}, {{"s0", 0}}});
    }
}

TEST(Packs, RowsWithWeightsAndTwoResults) {
  THRICE_REQUIRE_OPENCL();
  for (const int64_t n : {96, 515}) {
    Builder b;
    const ValueId h = b.op(Op::add, {b.f32({5, n}), b.f32({5, n})});
    const ValueId c = b.op(Op::sub, {h, b.op(Op::reduce, {h}, over("mean", {1}))});
    const ValueId v = b.op(Op::reduce, {b.op(Op::mul, {c, c})}, over("mean", {1}));
    const ValueId d = b.op(Op::sqrt, {b.op(Op::add, {v, b.scalar(1e-5)})});
    b.output(b.op(Op::mul, {b.op(Op::div, {c, d}), b.f32({n})}));
    b.output(h);
    b.output(v);
    check(b.workload(), of("row"), {{}});
  }
}

TEST(Packs, PlacesOfExtremesInLongRows) {
  THRICE_REQUIRE_OPENCL();
  for (const int64_t last : {0, 1})
    for (const InputKind kind : {InputKind::kSmallIntegers, InputKind::kEdgeValues}) {
      Builder b;
      b.output(b.op(Op::arg_reduce, {b.f32({6, 1333})},
                    {{"kind", std::string("max")},
                     {"axis", int64_t{1}},
                     {"keepdims", int64_t{0}},
                     {"select_last", last}}));
      check(b.workload(), of("row"), {{}}, kind);
    }
}

TEST(Packs, ColumnsShareTheirRows) {
  THRICE_REQUIRE_OPENCL();
  for (const DType t : {DType::kF32, DType::kF16})
    for (const int64_t kept : {33, 136}) {
      Builder b;
      b.output(b.op(Op::reduce, {b.input(t, {2, Dim::symbol("r"), kept})}, over("mean", {1}, 0)));
      check(b.workload(), of("column"), {{{"s0", 700}}, {{"s0", 3}}});
    }
  Builder b;
  const ValueId m = b.op(Op::reduce, {b.f32({31, 5, 64})}, over("max", {0, 1}, 0));
  b.output(b.op(Op::add, {m, b.f32({64})}));
  check(b.workload(), of("column"), {{}});
}

TEST(Packs, MapsOfOddRowsAndSpreadOperands) {
  THRICE_REQUIRE_OPENCL();
  for (const DType t : {DType::kF32, DType::kF16, DType::kU8, DType::kI64})
    for (const Dim& columns : {Dim(1031), Dim(64), Dim::symbol("c")}) {
      Builder b;
      const ValueId x = b.input(t, {37, columns});
      b.output(b.op(Op::add, {x, b.input(t, {columns})}));
      b.output(b.op(Op::mul, {x, b.input(t, {37, 1})}));
      check(b.workload(), of("map"), {{{"s0", 1031}}, {{"s0", 8}}}, InputKind::kSmallIntegers);
    }
  Builder b;  // one row, and a type that is wider on one side
  b.output(b.op(Op::cast, {b.f32({100003})}, {{"to", static_cast<int64_t>(DType::kBF16)}}));
  check(b.workload(), of("map"), {{}});
}

TEST(Packs, TilesTurn) {
  THRICE_REQUIRE_OPENCL();
  struct Case {
    ir::Shape shape;
    List perm;
  };
  const std::vector<Case> cases = {{{65, 130}, {1, 0}},
                                   {{2, 70, 33}, {0, 2, 1}},
                                   {{Dim::symbol("n"), 24, 9, 11}, {0, 2, 3, 1}},
                                   {{3, 40, 2, 36}, {3, 2, 0, 1}},
                                   {{128, Dim::symbol("w")}, {1, 0}}};
  for (const DType t : {DType::kF32, DType::kF16, DType::kU8, DType::kI64})
    for (const Case& c : cases) {
      Builder b;
      const ValueId y = b.op(Op::transpose, {b.input(t, c.shape)}, {{"perm", c.perm}});
      b.output(t == DType::kF16
                   ? b.op(Op::add, {y, b.input(t, {c.shape[static_cast<size_t>(c.perm.back())]})})
                   : y);
      check(b.workload(), of("map"), {{{"s0", 3}}, {{"s0", 66}}}, InputKind::kSmallIntegers);
    }
}

// Two results of one shape, of which the second reads the operand straight as well: no tile turns for both.
TEST(Packs, ResultsThatReadAcrossAndStraight) {
  THRICE_REQUIRE_OPENCL();
  Builder b;
  const ValueId x = b.f32({256, 256});
  const ValueId y = b.op(Op::sigmoid, {b.op(Op::transpose, {x}, {{"perm", List{1, 0}}})});
  b.output(y);
  b.output(b.op(Op::mul, {y, x}));
  check(b.workload(), of("map"), {{}});
  target::DeviceSpec hopper;
  hopper.api = target::Api::kCuda;
  hopper.architecture = "sm_90a";
  EXPECT_TRUE(
      of("map").illegal(b.workload(), artifact::Schedule::parse("map/tile threads=256"), hopper).has_value());
}

TEST(Packs, RunningSumsCarryOn) {
  THRICE_REQUIRE_OPENCL();
  for (const int64_t n : {100, 1027, 9000})
    for (const int64_t reverse : {0, 1})
      for (const int64_t exclusive : {0, 1}) {
        Builder b;
        b.output(b.op(Op::scan_sum, {b.f32({3, n})},
                      {{"axis", int64_t{1}}, {"reverse", reverse}, {"exclusive", exclusive}}));
        check(b.workload(), of("scan"), {{}}, InputKind::kSmallIntegers);
      }
}

}  // namespace
}  // namespace thrice::testing
