// Catches: wrong padding at either edge, strides and dilations mixed up between axes, groups read from a
// neighbour, transposed convolutions that miss taps, tactics that disagree.
#include "cross/heavy/schedules.h"

namespace thrice::testing {
namespace {

using ir::Dim;
using ir::Op;
using Ints = std::vector<int64_t>;

const family::Family& family() { return family::conv_family(); }

struct Case {
  ir::Shape x, w;
  ir::Attributes attrs;
};

void build_case(Builder& b, const Case& c, bool bias, Op op = Op::conv) {
  std::vector<ir::ValueId> inputs{b.f32(c.x), b.f32(c.w)};
  const Dim outputs = op == Op::conv ? c.w[0] : c.w[1] * Dim(std::get<int64_t>(c.attrs.at("group")));
  if (bias) inputs.push_back(b.f32({outputs}));
  b.output(b.op(op, inputs, c.attrs));
}
void check_case(const Case& c, bool bias, const std::vector<ir::Bindings>& bindings = {{}}, Op op = Op::conv,
                int per_tactic = 1) {
  Builder b;
  build_case(b, c, bias, op);
  check_exact(b, family(), bindings, per_tactic);
}

ir::Attributes attrs(Ints strides, Ints pads, Ints dilations, int64_t group = 1) {
  return {{"strides", strides}, {"pads", pads}, {"dilations", dilations}, {"group", group}};
}

TEST(Conv, TwoDimensions) {
  THRICE_REQUIRE_OPENCL();
  check_case({{2, 3, 9, 21}, {7, 3, 3, 3}, attrs({1, 1}, {1, 1, 1, 1}, {1, 1})}, true, {{}}, Op::conv, 3);
  check_case({{1, 3, 12, 19}, {8, 3, 3, 3}, attrs({2, 2}, {1, 1, 1, 1}, {1, 1})}, true);
  check_case({{1, 4, 11, 17}, {5, 4, 3, 5}, attrs({2, 3}, {2, 0, 1, 3}, {1, 2})}, false);
  check_case({{1, 6, 8, 10}, {10, 3, 3, 3}, attrs({1, 1}, {1, 1, 1, 1}, {1, 1}, 2)}, true);
}

TEST(Conv, OneAndThreeDimensions) {
  THRICE_REQUIRE_OPENCL();
  check_case({{2, 5, 23}, {6, 5, 4}, attrs({1}, {1, 2}, {1})}, true);
  check_case({{1, 2, 4, 5, 9}, {3, 2, 2, 3, 3}, attrs({1, 2, 1}, {0, 1, 1, 1, 1, 1}, {1, 1, 2})}, true);
}

TEST(Conv, Pointwise) {
  THRICE_REQUIRE_OPENCL();
  check_case({{2, 10, 5, 9}, {13, 10, 1, 1}, attrs({1, 1}, {0, 0, 0, 0}, {1, 1})}, true, {{}}, Op::conv, 3);
  check_case({{1, 12, 5, 9}, {8, 6, 1, 1}, attrs({1, 1}, {0, 0, 0, 0}, {1, 1}, 2)}, true);
  check_case({{1, 37, 1, 1}, {11, 37, 1, 1}, attrs({1, 1}, {0, 0, 0, 0}, {1, 1})}, true);
  check_case({{1, 8, 9, 13}, {6, 8, 1, 1}, attrs({2, 2}, {0, 0, 0, 0}, {1, 1})}, true);
}

TEST(Conv, Depthwise) {
  THRICE_REQUIRE_OPENCL();
  check_case({{2, 6, 11, 26}, {6, 1, 5, 5}, attrs({1, 1}, {2, 2, 2, 2}, {1, 1}, 6)}, true, {{}}, Op::conv, 2);
  check_case({{1, 4, 12, 23}, {8, 1, 3, 3}, attrs({2, 1}, {1, 1, 1, 1}, {1, 1}, 4)}, true);
  check_case({{1, 4, 7, 23}, {4, 1, 3, 3}, attrs({1, 2}, {1, 1, 1, 1}, {2, 1}, 4)}, true);
  check_case({{1, 4, 19}, {4, 1, 3}, attrs({3}, {1, 1}, {1}, 4)}, true);
}

// Tensor cores read weights of windows in the order of their steps: a copy that one launch makes and that is
// kept.
TEST(Conv, WeightsOfWindowsAreLaidOutOnce) {
  Builder b;
  std::vector<double> weights;
  for (int i = 0; i < 12 * 32 * 9; ++i) weights.push_back((i * 7 + i / 9) % 5 - 2);
  const ir::ValueId w = b.constant(ir::Tensor::of(DType::kF32, std::vector<int64_t>{24, 16, 3, 3}, weights));
  b.output(b.op(Op::conv, {b.f32({1, 32, 6, 7}), w}, attrs({1, 1}, {1, 1, 1, 1}, {1, 1}, 2)));
  const ir::Workload workload = b.workload();
  const artifact::Schedule mma{"conv",
                               "implicit_mma",
                               {{"tile_m", 16},
                                {"tile_n", 32},
                                {"tile_k", 8},
                                {"warps_m", 1},
                                {"warps_n", 1},
                                {"stages", 2},
                                {"split", 1}}};
  const auto card = FamilyRunner::gpu_spec("sm_80");
  ASSERT_EQ(family().illegal(workload, mma, card).value_or(""), "");
  const auto plan = family().launch(workload, mma, ir::facts_at(workload.graph, {}));
  ASSERT_EQ(plan.launches.size(), 2u);
  EXPECT_TRUE(plan.launches[0].once);
  EXPECT_EQ(plan.temporary_bytes, (std::vector<int64_t>{24 * 16 * 9 * 4}));
  const std::string text = family().emit(workload, mma, card).text;
  EXPECT_NE(text.find("th_copy16(next_a"), std::string::npos);
  keep_cuda_text(mma.str(), text);
  auto& runner = FamilyRunner::instance();
  if (!runner.available() || runner.spec().api != target::Api::kCuda)
    GTEST_SKIP() << "the kernels need a CUDA device";
  runner.check(workload, family(), mma, ir::make_inputs(workload.graph, {}, ir::InputKind::kSmallIntegers, 1),
               0);
}

// What the rule proposes is legal, however large the window: 7 x 7 taps leave no room for many outputs.
TEST(Conv, TapsByRuleAreLegal) {
  target::DeviceSpec hopper;
  hopper.api = target::Api::kCuda;
  hopper.architecture = "sm_90a";
  hopper.compute_units = 132;
  hopper.has_f64 = true;
  for (const int64_t side : {1, 3, 5, 7, 11})
    for (const DType type : {DType::kF32, DType::kF64}) {
      Builder b;
      b.output(b.op(Op::conv, {b.input(type, {8, 96, 112, 112}), b.input(type, {96, 1, side, side})},
                    attrs({1, 1}, {side / 2, side / 2, side / 2, side / 2}, {1, 1}, 96)));
      const ir::Workload workload = b.workload();
      const auto chosen = family().default_schedule(workload, ir::facts_at(workload.graph, {}), hopper);
      EXPECT_EQ(family().illegal(workload, chosen, hopper).value_or(""), "") << side << " " << chosen.str();
    }
}

// A line of one element: what follows the sums is vectors there too.
TEST(Conv, EpilogueOfTwoOperatorsOnOneColumn) {
  THRICE_REQUIRE_OPENCL();
  for (const auto& [w, group] : {std::pair{Ints{16, 16, 3, 3}, 1}, {Ints{16, 1, 3, 3}, 16}}) {
    Builder b;
    const auto y = b.op(Op::conv, {b.f32({2, 16, 20, 1}), b.f32(ir::to_shape(w))},
                        attrs({1, 1}, {1, 1, 1, 1}, {1, 1}, group));
    b.output(b.op(Op::relu, {b.op(Op::add, {b.op(Op::mul, {y, b.scalar(2)}), b.scalar(0.5)})}));
    check_normal(b, family(), {{}});
  }
}

// Tiles of every form, also where the last ones reach beyond the result: on a CPU they are not proposed.
TEST(Conv, TapsOnTilesThatDoNotDivide) {
  THRICE_REQUIRE_OPENCL();
  const auto check = [](const Case& c, int64_t reg_p, int64_t reg_q) {
    Builder b;
    build_case(b, c, true);
    const ir::Workload w = b.workload();
    FamilyRunner::instance().check(w, family(),
                                   {"conv", "taps", {{"reg_p", reg_p}, {"reg_q", reg_q}, {"threads", 32}}},
                                   ir::make_inputs(w.graph, {}, ir::InputKind::kSmallIntegers, 1), 0);
  };
  check({{2, 6, 11, 13}, {6, 1, 3, 3}, attrs({1, 1}, {1, 1, 1, 1}, {1, 1}, 6)}, 2, 4);
  check({{1, 4, 12, 9}, {8, 1, 3, 3}, attrs({2, 1}, {1, 1, 1, 1}, {1, 1}, 4)}, 4, 2);
  check({{1, 4, 9, 10}, {4, 1, 3, 2}, attrs({1, 2}, {1, 0, 1, 0}, {2, 1}, 4)}, 4, 1);
  check({{1, 4, 19}, {4, 1, 3}, attrs({3}, {1, 1}, {1}, 4)}, 1, 7);
}

TEST(Conv, AnyWidthFromOneText) {
  THRICE_REQUIRE_OPENCL();
  const Dim w = Dim::symbol("w"), n = Dim::symbol("n");
  const std::vector<ir::Bindings> widths{
      {{"s0", 1}, {"s1", 40}}, {{"s0", 2}, {"s1", 3}}, {{"s0", 1}, {"s1", 17}}, {{"s0", 0}, {"s1", 5}}};
  check_case({{n, 3, 8, w}, {5, 3, 3, 3}, attrs({2, 1}, {1, 1, 1, 1}, {1, 1})}, true, widths);
  check_case({{n, 8, 3, w}, {5, 8, 1, 1}, attrs({1, 1}, {0, 0, 0, 0}, {1, 1})}, true, widths);
  check_case({{n, 4, 6, w}, {4, 1, 5, 5}, attrs({1, 1}, {2, 2, 2, 2}, {1, 1}, 4)}, true, widths);
  Case same{{n, 3, 8, w}, {5, 3, 3, 3}, attrs({2, 2}, {0, 0, 0, 0}, {1, 1})};
  same.attrs["auto_pad"] = std::string("same_upper");
  same.attrs.erase("pads");
  check_case(same, true, widths);
}

TEST(Conv, EpilogueAndPrologue) {
  THRICE_REQUIRE_OPENCL();
  for (const int64_t group : {1, 6}) {
    Builder b;
    const auto x = b.op(Op::mul, {b.f32({1, 6, 7, 15}), b.f32({1, 6, 1, 1})});
    const auto y = b.op(Op::conv, {x, b.f32({6, 6 / group, 3, 3}), b.f32({6})},
                        attrs({1, 1}, {1, 1, 1, 1}, {1, 1}, group));
    b.output(b.op(Op::add, {b.op(Op::relu, {y}), b.f32({1, 6, 7, 15})}));
    check_exact(b, family(), {{}}, 1);
  }
  Builder b;
  const auto y =
      b.op(Op::conv, {b.f32({1, 16, 6, 10}), b.f32({20, 16, 1, 1})}, attrs({1, 1}, {0, 0, 0, 0}, {1, 1}));
  b.output(b.op(Op::mul, {y, b.op(Op::sigmoid, {y})}));
  check_normal(b, family());
}

// Element-wise chains behind the sums are written on vectors with a scalar rest; what cannot be (here: a mask
// of another type) is written element by element as a whole.
TEST(Conv, EpilogueOnVectorsAtEveryWidth) {
  THRICE_REQUIRE_OPENCL();
  const ir::Dim width = ir::Dim::symbol("width");
  for (const bool masked : {false, true})
    for (const auto& [w, group] :
         {std::pair{Ints{12, 3, 3, 3}, 4}, {Ints{12, 1, 3, 3}, 12}, {Ints{7, 12, 1, 1}, 1}}) {
      if (masked && group != 1) continue;
      SCOPED_TRACE(fmt::format("{} groups, masked {}", group, masked));
      Builder b;
      const int64_t pad = w[2] / 2;
      const auto y = b.op(Op::conv, {b.f32({1, 12, 4, width}), b.f32(ir::to_shape(w)), b.f32({w[0]})},
                          attrs({1, 1}, {pad, pad, pad, pad}, {1, 1}, group));
      const auto clipped =
          b.op(Op::min, {b.op(Op::max, {b.op(Op::add, {y, b.scalar(3)}), b.scalar(0)}), b.scalar(6)});
      const auto swish = b.op(Op::div, {b.op(Op::mul, {y, clipped}), b.scalar(6)});
      const auto scaled = b.op(Op::mul, {swish, b.f32({1, w[0], 1, 1})});
      const auto last =
          b.op(Op::tanh, {b.op(Op::sub, {b.op(Op::relu, {scaled}), b.f32({1, w[0], 4, width})})});
      b.output(masked ? b.op(Op::where, {b.op(Op::less, {y, b.scalar(0)}), last, y}) : last);
      check_normal(b, family(), {{{"s0", 40}}, {{"s0", 23}}, {{"s0", 3}}, {{"s0", 1}}});
      const ir::Workload workload = b.workload();
      const auto facts = ir::facts_at(workload.graph, {{"s0", 40}});
      const auto& spec = FamilyRunner::instance().spec();
      if (spec.api == target::Api::kCuda) continue;  // there fragments, not vectors, leave the sums
      const auto text = family().emit(workload, family().default_schedule(workload, facts, spec), spec).text;
      EXPECT_EQ(text.find("(0, tile + ") != std::string::npos, !masked) << text;
    }
}

TEST(Conv, Transposed) {
  THRICE_REQUIRE_OPENCL();
  check_case({{2, 6, 5, 7}, {6, 4, 2, 2}, attrs({2, 2}, {0, 0, 0, 0}, {1, 1})}, true, {{}},
             Op::conv_transpose, 2);
  check_case({{1, 6, 5, 7}, {6, 2, 2, 3}, attrs({2, 3}, {0, 0, 0, 0}, {1, 1}, 2)}, true, {{}},
             Op::conv_transpose);
  check_case({{1, 3, 5, 6}, {3, 4, 3, 3}, attrs({2, 2}, {1, 1, 1, 1}, {1, 1})}, false, {{}},
             Op::conv_transpose);
  Case extra{{1, 3, 5, 6}, {3, 4, 3, 3}, attrs({3, 2}, {1, 0, 1, 1}, {1, 2})};
  extra.attrs["output_padding"] = Ints{2, 1};
  check_case(extra, true, {{}}, Op::conv_transpose);
  Case shaped{{1, 2, 4, 4}, {2, 3, 3, 3}, attrs({2, 2}, {0, 0, 0, 0}, {1, 1})};
  shaped.attrs["output_shape"] = Ints{8, 8};
  shaped.attrs["auto_pad"] = std::string("same_upper");
  check_case(shaped, true, {{}}, Op::conv_transpose);
  check_case({{1, 3, 9}, {3, 2, 3}, attrs({2}, {1, 0}, {1})}, true, {{}}, Op::conv_transpose);
}

TEST(Conv, ElementTypes) {
  THRICE_REQUIRE_OPENCL();
  for (const DType t : {DType::kF64, DType::kF16, DType::kI32}) {
    if (t == DType::kF64 && !FamilyRunner::instance().spec().has_f64) continue;
    Builder b;
    b.output(b.op(Op::conv, {b.input(t, {1, 3, 6, 11}), b.input(t, {4, 3, 3, 3})},
                  attrs({1, 1}, {1, 1, 1, 1}, {1, 1})));
    check_exact(b, family(), {{}}, 1);
  }
}

}  // namespace
}  // namespace thrice::testing
