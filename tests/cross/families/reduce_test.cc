// Catches wrong rows, wrong ties, lost elements at odd lengths, reductions over nothing, and stages that read
// another row's result, in the row and column families.
#include <cmath>
#include <limits>

#include "cross/family_runner.h"

namespace thrice::testing {
namespace {

using ir::Dim;
using ir::InputKind;
using ir::Op;
using ir::ValueId;
using List = std::vector<int64_t>;

const family::Family& row() { return *family::find_family("row"); }
const family::Family& column() { return *family::find_family("column"); }
FamilyRunner& runner() { return FamilyRunner::instance(); }
Dim sym(const char* name) { return Dim::symbol(name); }

ir::Attributes over(const char* kind, List axes, int64_t keepdims) {
  return {{"kind", std::string(kind)}, {"axes", std::move(axes)}, {"keepdims", keepdims}};
}

ValueId softmax(Builder& b, ValueId x, int64_t axis) {
  const ValueId m = b.op(Op::reduce, {x}, over("max", {axis}, 1));
  const ValueId e = b.op(Op::exp, {b.op(Op::sub, {x, m})});
  return b.op(Op::div, {e, b.op(Op::reduce, {e}, over("sum", {axis}, 1))});
}

ValueId layer_norm(Builder& b, ValueId x, List axes, ValueId scale, ValueId bias) {
  const ValueId c = b.op(Op::sub, {x, b.op(Op::reduce, {x}, over("mean", axes, 1))});
  const ValueId v = b.op(Op::reduce, {b.op(Op::mul, {c, c})}, over("mean", axes, 1));
  const ValueId n = b.op(Op::div, {c, b.op(Op::sqrt, {b.op(Op::add, {v, b.scalar(1e-5)})})});
  return b.op(Op::add, {b.op(Op::mul, {n, scale}), bias});
}

TEST(Row, Softmax) {
  THRICE_REQUIRE_OPENCL();
  Builder b;
  b.output(softmax(b, b.op(Op::mul, {b.f32({sym("n"), 3, sym("k")}), b.scalar(2)}), 2));
  runner().check_all(b.workload(), row(),
                     {{{"s0", 5}, {"s1", 77}},
                      {{"s0", 1}, {"s1", 1}},
                      {{"s0", 2}, {"s1", 5000}},
                      {{"s0", 0}, {"s1", 3}},
                      {{"s0", 3}, {"s1", 0}}});
}

TEST(Row, LayerNormWithScaleAndResidual) {
  THRICE_REQUIRE_OPENCL();
  Builder b;
  const ValueId x = b.op(Op::add, {b.f32({2, sym("t"), 96}), b.f32({2, sym("t"), 96})});
  b.output(layer_norm(b, x, {2}, b.f32({96}), b.f32({96})));
  b.output(x);
  runner().check_all(b.workload(), row(), {{{"s0", 9}}, {{"s0", 1}}, {{"s0", 0}}});
}

TEST(Row, GroupNormThroughReshape) {
  THRICE_REQUIRE_OPENCL();
  Builder b;
  const ValueId x = b.f32({sym("n"), 6, 5, 7});
  const ValueId g = b.op(Op::reshape, {x, b.ints({0, 2, -1})});
  const ValueId c = b.op(Op::sub, {g, b.op(Op::reduce, {g}, over("mean", {2}, 1))});
  const ValueId v = b.op(Op::reduce, {b.op(Op::mul, {c, c})}, over("mean", {2}, 1));
  const ValueId n = b.op(Op::div, {c, b.op(Op::sqrt, {b.op(Op::add, {v, b.scalar(1e-5)})})});
  b.output(b.op(Op::reshape, {n, b.ints({-1, 6, 5, 7})}));
  runner().check_all(b.workload(), row(), {{{"s0", 3}}, {{"s0", 1}}});
}

TEST(Row, EveryKindAndDtype) {
  THRICE_REQUIRE_OPENCL();
  for (const DType t : {DType::kF32, DType::kF16, DType::kI32, DType::kI64, DType::kU8}) {
    for (const int64_t keep : {0, 1}) {
      if (keep == 1 && t != DType::kF32) continue;  // the shape alone differs
      Builder b;
      const ValueId x = b.input(t, {4, 3, sym("k")});
      for (const char* kind : {"sum", "mean", "prod", "max", "min"})
        b.output(b.op(Op::reduce, {x}, over(kind, {1, 2}, keep)));
      runner().check_all(b.workload(), row(), {{{"s0", 7}}, {{"s0", 1}}}, InputKind::kSmallIntegers);
    }
  }
  Builder b;
  const ValueId x = b.input(DType::kBool, {4, sym("k")});
  b.output(b.op(Op::reduce, {x}, over("any", {1}, 0)));
  b.output(b.op(Op::reduce, {x}, over("all", {1}, 0)));
  runner().check_all(b.workload(), row(), {{{"s0", 3}}, {{"s0", 1}}, {{"s0", 0}}});
}

TEST(Row, OverNothing) {
  THRICE_REQUIRE_OPENCL();
  Builder b;
  const ValueId x = b.f32({2, sym("k")});
  for (const char* kind : {"sum", "mean", "prod", "max", "min"})
    b.output(b.op(Op::reduce, {x}, over(kind, {1}, 0)));
  const auto w = b.workload();
  for (const char* tactic : {"item", "block"}) {
    artifact::Schedule s{"row", tactic, {{"threads", 8}, {"rows", 1}, {"accumulators", 4}, {"stash", 0}}};
    const auto y = runner().run(w, row(), s, {ir::Tensor(DType::kF32, {2, 0})});
    EXPECT_EQ(y[0].as_double(1), 0);
    EXPECT_TRUE(std::isnan(y[1].as_double(1)));
    EXPECT_EQ(y[2].as_double(1), 1);
    EXPECT_EQ(y[3].as_double(1), -std::numeric_limits<double>::infinity());
    EXPECT_EQ(y[4].as_double(1), std::numeric_limits<double>::infinity());
  }
}

TEST(Row, ArgReduceTiesAndNaN) {
  THRICE_REQUIRE_OPENCL();
  for (const InputKind kind : {InputKind::kSmallIntegers, InputKind::kEdgeValues})
    for (const int64_t last : {0, 1}) {
      Builder b;
      const ValueId x = b.f32({8, sym("k")});
      for (const char* which : {"max", "min"})
        b.output(b.op(Op::arg_reduce, {x},
                      {{"kind", std::string(which)},
                       {"axis", int64_t{1}},
                       {"keepdims", int64_t{0}},
                       {"select_last", last}}));
      runner().check_all(b.workload(), row(), {{{"s0", 50}}, {{"s0", 1}}, {{"s0", 3}}}, kind);
    }
}

TEST(Row, NaNPropagates) {
  THRICE_REQUIRE_OPENCL();
  Builder b;
  const ValueId x = b.f32({16, 40});
  for (const char* kind : {"max", "min", "sum"}) b.output(b.op(Op::reduce, {x}, over(kind, {1}, 1)));
  runner().check_all(b.workload(), row(), {{}}, InputKind::kEdgeValues);
}

TEST(Row, WholeTensorAndLongSums) {
  THRICE_REQUIRE_OPENCL();
  Builder b;
  const ValueId x = b.f32({sym("n"), 1000});
  b.output(b.op(Op::reduce, {x}, over("sum", {0, 1}, 0)));
  runner().check_all(b.workload(), row(), {{{"s0", 100}}, {{"s0", 1}}, {{"s0", 0}}}, InputKind::kUniform,
                     2e-6);
}

TEST(Row, RefusesOtherRows) {
  // sum over the last axis used with its rows exchanged: no row owns what it needs.
  Builder b;
  const ValueId x = b.f32({5, 5});
  const ValueId s = b.op(Op::reduce, {x}, over("sum", {1}, 0));
  b.output(b.op(Op::add, {x, s}));  // [5,5] + [5]: s[j] at column j
  EXPECT_TRUE(row().match(b.workload()).has_value());
}

TEST(Column, MeanOverLeadingAndMiddleAxes) {
  THRICE_REQUIRE_OPENCL();
  for (const List& axes : {List{0}, List{1}, List{0, 1}, List{0, 2}}) {
    Builder b;
    const ValueId x = b.f32({sym("n"), 5, sym("w")});
    b.output(b.op(Op::reduce, {x}, over("mean", axes, 1)));
    b.output(b.op(Op::reduce, {b.op(Op::mul, {x, x})}, over("sum", axes, 0)));
    EXPECT_EQ(row().match(b.workload()).has_value(), axes.back() != 2);
    runner().check_all(b.workload(), column(),
                       {{{"s0", 9}, {"s1", 70}},
                        {{"s0", 1}, {"s1", 1}},
                        {{"s0", 300}, {"s1", 3}},
                        {{"s0", 0}, {"s1", 3}},
                        {{"s0", 2}, {"s1", 0}}});
  }
}

TEST(Column, SoftmaxOverChannels) {
  THRICE_REQUIRE_OPENCL();
  Builder b;
  b.output(softmax(b, b.f32({2, 7, sym("h"), 9}), 1));
  runner().check_all(b.workload(), column(), {{{"s0", 5}}, {{"s0", 1}}, {{"s0", 0}}});
}

TEST(Column, BatchStatisticsAndNormalisation) {
  THRICE_REQUIRE_OPENCL();
  Builder b;
  const ValueId x = b.f32({sym("n"), 6, 4, 5});
  b.output(layer_norm(b, x, {0, 2, 3}, b.f32({6, 1, 1}), b.f32({6, 1, 1})));
  runner().check_all(b.workload(), column(), {{{"s0", 4}}, {{"s0", 1}}});
}

TEST(Column, ArgMaxOverChannels) {
  THRICE_REQUIRE_OPENCL();
  Builder b;
  b.output(b.op(Op::arg_reduce, {b.f32({2, 7, 30})},
                {{"kind", std::string("max")}, {"axis", int64_t{1}}, {"keepdims", int64_t{1}}}));
  runner().check_all(b.workload(), column(), {{}}, InputKind::kSmallIntegers);
}

}  // namespace
}  // namespace thrice::testing
