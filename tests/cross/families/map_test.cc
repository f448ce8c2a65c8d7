// Catches wrong coordinates of views, broadcasts that assume a symbolic length is not one, wrong joined axes,
// and scalar operators that differ from docs/ops.md, in the map family's kernels.
#include "cross/family_runner.h"

namespace thrice::testing {
namespace {

using ir::Attributes;
using ir::Dim;
using ir::InputKind;
using ir::Op;
using ir::Tensor;
using ir::ValueId;

const family::Family& map() { return *family::find_family("map"); }
FamilyRunner& runner() { return FamilyRunner::instance(); }
Dim sym(const char* name) { return Dim::symbol(name); }
using List = std::vector<int64_t>;

TEST(Map, BroadcastsOfConstantAndSymbolicExtents) {
  THRICE_REQUIRE_OPENCL();
  Builder b;
  const ValueId x = b.f32({sym("n"), 6, sym("w")}), bias = b.f32({6, 1}),
                other = b.f32({sym("m"), 1, sym("w")});
  b.output(b.op(Op::relu, {b.op(Op::add, {b.op(Op::mul, {x, other}), bias})}));
  const auto w = b.workload();
  // m may be n or one: a run-time fact that the text must not assume.
  runner().check_all(w, map(),
                     {{{"s0", 3}, {"s1", 5}, {"s2", 3}},
                      {{"s0", 3}, {"s1", 40}, {"s2", 1}},
                      {{"s0", 1}, {"s1", 1}, {"s2", 1}},
                      {{"s0", 0}, {"s1", 7}, {"s2", 0}},
                      {{"s0", 2}, {"s1", 0}, {"s2", 2}}});
}

TEST(Map, LargeFlatChain) {
  THRICE_REQUIRE_OPENCL();
  Builder b;
  const ValueId x = b.f32({4, 33, 129});
  b.output(b.op(Op::mul, {b.op(Op::sigmoid, {x}), x}));
  b.output(b.op(Op::tanh, {b.op(Op::sub, {x, b.scalar(0.1)})}));
  runner().check_all(b.workload(), map(), {{}});
}

TEST(Map, Views) {
  THRICE_REQUIRE_OPENCL();
  Builder b;
  const ValueId x = b.f32({2, sym("h"), 12});
  const ValueId t = b.op(Op::transpose, {x}, {{"perm", List{1, 0, 2}}});
  const ValueId r = b.op(Op::reshape, {t, b.ints({0, 2, 3, 4})}, {{"allowzero", int64_t{0}}});
  const ValueId s =
      b.op(Op::slice, {r, b.ints({-1, 1}), b.ints({-100, 4}), b.ints({-2, 2})}, {{"axes", List{2, 3}}});
  b.output(b.op(Op::neg, {s}));
  b.output(b.op(Op::reshape, {t, b.ints({-1})}));
  runner().check_all(b.workload(), map(), {{{"s0", 5}}, {{"s0", 1}}, {{"s0", 0}}});
}

TEST(Map, SliceOfSymbolicExtent) {
  THRICE_REQUIRE_OPENCL();
  Builder b;
  const ValueId x = b.f32({sym("n"), 3});
  const ValueId last =
      b.op(Op::slice, {x, b.ints({-3}), b.ints({INT64_MAX}), b.ints({1})}, {{"axes", List{0}}});
  const ValueId back =
      b.op(Op::slice, {x, b.ints({-1}), b.ints({INT64_MIN}), b.ints({-1})}, {{"axes", List{0}}});
  b.output(b.op(Op::abs, {last}));
  b.output(b.op(Op::abs, {back}));
  runner().check_all(b.workload(), map(), {{{"s0", 7}}, {{"s0", 2}}, {{"s0", 1}}, {{"s0", 0}}});
}

TEST(Map, ConcatPadTileExpandIota) {
  THRICE_REQUIRE_OPENCL();
  Builder b;
  const ValueId x = b.f32({sym("n"), 4}), y = b.f32({2, 4}), z = b.f32({sym("k"), 4});
  const ValueId c = b.op(Op::concat, {x, y, z}, {{"axis", int64_t{0}}});
  const ValueId p = b.op(Op::pad, {c, b.ints({1, -1, 2, 3}), b.scalar(7)},
                         {{"mode", std::string("constant")}, {"axes", List{0, 1}}});
  b.output(p);
  for (const char* mode : {"edge", "reflect", "wrap"})
    b.output(b.op(Op::pad, {y, b.ints({1, 2, 1, 3})}, {{"mode", std::string(mode)}, {"axes", List{0, 1}}}));
  b.output(b.op(Op::tile, {c, b.ints({2, 3})}));
  b.output(b.op(Op::expand, {b.f32({1, 4}), b.ints({3, 1})}));
  const ValueId i = b.op(Op::iota, {b.ints({3, 5})}, {{"axis", int64_t{1}}});
  b.output(b.op(Op::mul, {i, i}));
  runner().check_all(b.workload(), map(), {{{"s0", 3}, {"s1", 2}}, {{"s0", 0}, {"s1", 1}}});
}

TEST(Map, Gathers) {
  THRICE_REQUIRE_OPENCL();
  Builder b;
  const ValueId x = b.f32({5, 6, 7});
  const ValueId i = b.constant(Tensor::of<int64_t>(DType::kI64, {2, 3}, {0, -1, 4, 2, -5, 3}));
  b.output(b.op(Op::gather, {x, i}, {{"axis", int64_t{0}}}));
  b.output(
      b.op(Op::gather, {x, b.constant(Tensor::of<int64_t>(DType::kI64, {}, {-2}))}, {{"axis", int64_t{1}}}));
  const ValueId e = b.constant(Tensor::of<int64_t>(DType::kI64, {1, 2, 3}, {0, -1, 4, 2, -5, 3}));
  b.output(b.op(Op::gather_elements, {x, e}, {{"axis", int64_t{2}}}));
  const ValueId nd = b.constant(Tensor::of<int64_t>(DType::kI64, {3, 2}, {0, -1, 4, 2, -5, 3}));
  b.output(b.op(Op::gather_nd, {x, nd}, {{"batch_dims", int64_t{0}}}));
  const ValueId nb =
      b.constant(Tensor::of<int64_t>(DType::kI64, {5, 2, 1}, {0, -1, 4, 2, -5, 3, 0, 0, 1, 1}));
  b.output(b.op(Op::gather_nd, {x, nb}, {{"batch_dims", int64_t{1}}}));
  runner().check_all(b.workload(), map(), {{}});
}

TEST(Map, UnaryFloats) {
  THRICE_REQUIRE_OPENCL();
  for (const DType t : {DType::kF32, DType::kBF16}) {
    Builder b;
    const ValueId x = b.input(t, {sym("n")});
    for (const Op op :
         {Op::neg, Op::abs, Op::sign, Op::floor, Op::ceil, Op::round, Op::exp, Op::expm1, Op::sin, Op::cos,
          Op::atan, Op::sinh, Op::cosh, Op::tanh, Op::asinh, Op::erf, Op::sigmoid, Op::relu})
      b.output(b.op(op, {x}));
    runner().check_all(b.workload(), map(), {{{"s0", 1000}}});
    Builder p;
    const ValueId y = p.input(t, {sym("n")});
    for (const Op op :
         {Op::sqrt, Op::rsqrt, Op::reciprocal, Op::log, Op::log1p, Op::tan, Op::asin, Op::acos, Op::atanh})
      p.output(p.op(op, {y}));
    p.output(p.op(Op::acosh, {p.op(Op::add, {y, p.scalar(1, t)})}));
    // asin of values up to one and atanh near one: the uniform kind stays below one. Where the ordinary
    // operator's own error is unknown, the limit of narrow types is the interpreter's rounding.
    runner().check_all(p.workload(), map(), {{{"s0", 1000}}}, InputKind::kUniform);
  }
}

TEST(Map, EdgeValues) {
  THRICE_REQUIRE_OPENCL();
  Builder b;
  const ValueId x = b.f32({64}), y = b.f32({64});
  for (const Op op : {Op::relu, Op::sign, Op::floor, Op::round, Op::abs, Op::neg, Op::tanh, Op::sigmoid,
                      Op::erf, Op::is_nan})
    b.output(b.op(op, {x}));
  b.output(b.op(Op::is_inf, {x}, {{"positive", int64_t{0}}}));
  for (const Op op : {Op::min, Op::max, Op::less, Op::equal, Op::greater_equal}) b.output(b.op(op, {x, y}));
  b.output(b.op(Op::cast, {x}, {{"to", static_cast<int64_t>(DType::kI32)}}));
  b.output(b.op(Op::cast, {x}, {{"to", static_cast<int64_t>(DType::kU8)}}));
  b.output(b.op(Op::cast, {x}, {{"to", static_cast<int64_t>(DType::kBool)}}));
  runner().check_all(b.workload(), map(), {{}}, InputKind::kEdgeValues);
}

TEST(Map, Integers) {
  THRICE_REQUIRE_OPENCL();
  for (const DType t : {DType::kI8, DType::kI16, DType::kI32, DType::kI64, DType::kU8, DType::kU16,
                        DType::kU32, DType::kU64}) {
    Builder b;
    const ValueId x = b.input(t, {50}), y = b.input(t, {50});
    for (const Op op :
         {Op::add, Op::sub, Op::mul, Op::div, Op::mod, Op::fmod, Op::min, Op::max, Op::bitwise_and,
          Op::bitwise_or, Op::bitwise_xor, Op::shift_left, Op::shift_right, Op::less, Op::equal})
      b.output(b.op(op, {x, y}));
    for (const Op op : {Op::abs, Op::sign, Op::bitwise_not}) b.output(b.op(op, {x}));
    b.output(b.op(Op::mul, {b.op(Op::mul, {x, b.scalar(100, t)}), b.scalar(100, t)}));
    for (const DType to : {DType::kF32, DType::kF16, DType::kI8, DType::kU32, DType::kI64, DType::kBool})
      b.output(b.op(Op::cast, {x}, {{"to", static_cast<int64_t>(to)}}));
    runner().check_all(b.workload(), map(), {{}});
  }
}

TEST(Map, PowModWhere) {
  THRICE_REQUIRE_OPENCL();
  Builder b;
  const ValueId x = b.f32({200}), y = b.f32({200});
  b.output(b.op(Op::pow, {b.op(Op::abs, {x}), y}));
  for (const double e : {2.0, 3.0, 0.5, -1.0, -2.0, 0.0}) b.output(b.op(Op::pow, {x, b.scalar(e)}));
  b.output(b.op(Op::pow, {x, b.scalar(3, DType::kI64)}));
  b.output(b.op(Op::mod, {x, y}));
  b.output(b.op(Op::fmod, {x, y}));
  b.output(b.op(Op::where, {b.op(Op::logical_not, {b.op(Op::less, {x, y})}), x, b.scalar(-1)}));
  const ValueId i = b.input(DType::kI32, {200});
  b.output(b.op(Op::pow, {i, b.scalar(3, DType::kF32)}));
  b.output(b.op(Op::pow, {i, b.scalar(2, DType::kI32)}));
  runner().check_all(b.workload(), map(), {{}});
}

TEST(Map, DoubleWhereTheDeviceHasIt) {
  THRICE_REQUIRE_OPENCL();
  if (!runner().spec().has_f64) GTEST_SKIP() << "the device has no f64";
  Builder b;
  const ValueId x = b.input(DType::kF64, {100});
  b.output(b.op(Op::exp, {b.op(Op::mul, {x, x})}));
  b.output(b.op(Op::cast, {x}, {{"to", static_cast<int64_t>(DType::kF16)}}));
  runner().check_all(b.workload(), map(), {{}}, InputKind::kNormal);
}

TEST(Map, RefusesReductionsAndNarrowTypes) {
  Builder b;
  b.output(b.op(Op::reduce, {b.f32({3, 4})},
                {{"kind", std::string("sum")}, {"axes", List{1}}, {"keepdims", int64_t{0}}}));
  EXPECT_TRUE(map().match(b.workload()).has_value());
  Builder c;
  c.output(c.op(Op::cast, {c.f32({3})}, {{"to", static_cast<int64_t>(DType::kF8E5M2)}}));
  EXPECT_TRUE(map().match(c.workload()).has_value());
}

}  // namespace
}  // namespace thrice::testing
