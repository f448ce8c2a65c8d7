// Catches: padding that wins a maximum, wrong divisors of averages, positions a half pixel off, neighbours
// read beyond the edge.
#include "cross/heavy/schedules.h"

namespace thrice::testing {
namespace {

using ir::Dim;
using ir::Op;
using Ints = std::vector<int64_t>;

TEST(Pool, KindsPadsAndCeil) {
  THRICE_REQUIRE_OPENCL();
  for (const char* kind : {"max", "avg", "sum"})
    for (const int64_t ceil : {0, 1})
      for (const int64_t padded : {0, 1}) {
        if (padded == 1 && std::string(kind) != "avg") continue;
        Builder b;
        b.output(b.op(Op::pool, {b.f32({2, 3, 9, 14})},
                      {{"kind", std::string(kind)},
                       {"kernel", Ints{3, 2}},
                       {"strides", Ints{2, 3}},
                       {"pads", Ints{1, 0, 1, 1}},
                       {"dilations", Ints{1, 2}},
                       {"ceil_mode", ceil},
                       {"count_include_pad", padded}}));
        check_tactics(b, family::pool_family(), {{}}, ir::InputKind::kNormal, 1e-6, 1);
      }
}

TEST(Pool, AnyWidthAndAutoPad) {
  THRICE_REQUIRE_OPENCL();
  for (const char* pad : {"same_upper", "same_lower", "valid"}) {
    Builder b;
    b.output(b.op(Op::pool, {b.f32({1, 4, 6, Dim::symbol("w")})},
                  {{"kind", std::string("max")},
                   {"kernel", Ints{2, 3}},
                   {"strides", Ints{1, 2}},
                   {"auto_pad", std::string(pad)}}));
    check_exact(b, family::pool_family(), {{{"s0", 40}}, {{"s0", 5}}, {{"s0", 3}}}, 1);
  }
}

TEST(Pool, IndicesAndOtherRanks) {
  THRICE_REQUIRE_OPENCL();
  for (const int64_t order : {0, 1}) {
    Builder b;
    const auto y = b.ops(Op::pool, {b.f32({2, 2, 5, 6})},
                         {{"kind", std::string("max")},
                          {"kernel", Ints{2, 2}},
                          {"strides", Ints{2, 2}},
                          {"storage_order", order}},
                         2);
    b.output(y[0]);
    b.output(y[1]);
    check_exact(b, family::pool_family(), {{}}, 1);
  }
  Builder one;
  one.output(one.op(Op::relu, {one.op(Op::pool, {one.op(Op::neg, {one.f32({1, 3, 17})})},
                                      {{"kind", std::string("sum")}, {"kernel", Ints{4}}})}));
  check_exact(one, family::pool_family(), {{}}, 1);
  Builder three;
  three.output(
      three.op(Op::pool, {three.f32({1, 2, 4, 5, 6})},
               {{"kind", std::string("max")}, {"kernel", Ints{2, 2, 3}}, {"pads", Ints{0, 1, 1, 0, 0, 1}}}));
  check_exact(three, family::pool_family(), {{}}, 1);
}

void check_resize(ir::Attributes attrs, ir::Shape shape, std::vector<float> scales, Ints sizes,
                  std::vector<float> roi = {}) {
  Builder b;
  const auto floats = [&](const std::vector<float>& v) {
    return v.empty() ? ir::kNoValue
                     : b.constant(ir::Tensor::of(DType::kF32, {static_cast<int64_t>(v.size())}, v));
  };
  std::vector<ir::ValueId> inputs{b.f32(shape), floats(roi), floats(scales)};
  if (!sizes.empty()) inputs.push_back(b.ints(sizes));
  b.output(b.op(Op::resize, inputs, attrs));
  const ir::Workload w = b.workload();
  const auto& f = family::resize_family();
  ASSERT_FALSE(f.match(w).has_value()) << *f.match(w);
  // Constants of several floats are inputs of the workload: their values come with the facts.
  std::vector<ir::Tensor> tensors;
  const auto made = ir::make_inputs(w.graph, {}, ir::InputKind::kNormal, 3);
  for (size_t i = 0; i < w.inputs.size(); ++i) {
    const auto& outer = b.graph().value(w.inputs[i]).constant;
    tensors.push_back(outer ? *outer : made[i]);
  }
  auto& runner = FamilyRunner::instance();
  const auto facts = FamilyRunner::facts_of(tensors);
  runner.check(w, f, f.default_schedule(w, facts, runner.spec()), tensors, 1e-5);
  runner.keep_cuda(w, f, facts);
}

TEST(Resize, ModesAndCoordinates) {
  THRICE_REQUIRE_OPENCL();
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const char* where :
         {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric"}) {
      const ir::Attributes attrs{{"mode", std::string(mode)},
                                 {"coordinate_transformation_mode", std::string(where)}};
      check_resize(attrs, {1, 2, 5, 6}, {1, 1, 2, 1.5F}, {});
      check_resize(attrs, {1, 2, 5, 6}, {}, {1, 2, 3, 13});
      if (HasFailure()) return;
    }
}

TEST(Resize, RemainingAttributes) {
  THRICE_REQUIRE_OPENCL();
  for (const char* nearest : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})
    check_resize({{"nearest_mode", std::string(nearest)}}, {1, 1, 4, 6}, {1, 1, 2, 0.5F}, {});
  check_resize({{"mode", std::string("cubic")}, {"exclude_outside", int64_t{1}}, {"cubic_coeff_a", -0.5}},
               {1, 1, 5, 6}, {1, 1, 1.7F, 0.8F}, {});
  check_resize({{"mode", std::string("linear")},
                {"coordinate_transformation_mode", std::string("tf_crop_and_resize")},
                {"extrapolation_value", 7.0}},
               {1, 1, 5, 6}, {}, {1, 1, 4, 8}, {0, 0, 0.2F, -0.3F, 1, 1, 0.7F, 1.2F});
  check_resize({{"axes", Ints{2, 3}}, {"keep_aspect_ratio_policy", std::string("not_larger")}}, {1, 2, 4, 6},
               {}, {8, 7});
  check_resize({{"axes", Ints{2, 3}},
                {"keep_aspect_ratio_policy", std::string("not_smaller")},
                {"mode", std::string("linear")}},
               {1, 2, 4, 6}, {}, {8, 7});
}

TEST(Resize, GridSample) {
  THRICE_REQUIRE_OPENCL();
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const char* padding : {"zeros", "border", "reflection"})
      for (const int64_t align : {0, 1}) {
        Builder b;
        b.output(b.op(
            Op::grid_sample, {b.f32({2, 3, 5, 7}), b.f32({2, 4, 6, 2})},
            {{"mode", std::string(mode)}, {"padding_mode", std::string(padding)}, {"align_corners", align}}));
        check_tactics(b, family::resize_family(), {{}}, ir::InputKind::kNormal, 1e-4, 1);
        if (HasFailure()) return;
      }
  Builder b;
  b.output(b.op(Op::grid_sample, {b.f32({1, 2, 3, 4, 5}), b.f32({1, 3, 3, 3, 3})}));
  check_tactics(b, family::resize_family(), {{}}, ir::InputKind::kNormal, 1e-4, 1);
}

TEST(Resize, RoiAlign) {
  THRICE_REQUIRE_OPENCL();
  for (const char* mode : {"avg", "max"})
    for (const char* where : {"half_pixel", "output_half_pixel"})
      for (const int64_t ratio : {0, 2}) {
        Builder b;
        b.output(b.op(Op::roi_align, {b.f32({2, 3, 9, 11}), b.f32({4, 4}), b.input(DType::kI64, {4})},
                      {{"mode", std::string(mode)},
                       {"coordinate_transformation_mode", std::string(where)},
                       {"sampling_ratio", ratio},
                       {"output_height", int64_t{3}},
                       {"output_width", int64_t{2}},
                       {"spatial_scale", 0.9}}));
        const ir::Workload w = b.workload();
        const auto& f = family::resize_family();
        auto inputs = ir::make_inputs(w.graph, {}, ir::InputKind::kNormal, 5);
        inputs[1] = ir::Tensor::of(
            DType::kF32, {4, 4},
            std::vector<float>{0.3F, 0.2F, 6.1F, 7.7F, 1, 1, 4, 3, -2, 2, 5, 12, 5, 4, 9.5F, 8.3F});
        inputs[2] = ir::Tensor::of(DType::kI64, {4}, std::vector<int64_t>{0, 1, 1, 0});
        auto& runner = FamilyRunner::instance();
        const auto facts = FamilyRunner::facts_of(inputs);
        runner.check(w, f, f.default_schedule(w, facts, runner.spec()), inputs, 1e-5);
        runner.keep_cuda(w, f, facts);
        if (HasFailure()) return;
      }
}

TEST(Resize, AntialiasRunsOnTheHost) {
  Builder b;
  b.output(b.op(Op::resize, {b.f32({1, 1, 8, 8}), ir::kNoValue, ir::kNoValue, b.ints({1, 1, 4, 4})},
                {{"mode", std::string("linear")}, {"antialias", int64_t{1}}}));
  EXPECT_NE(family::resize_family().match(b.workload()).value_or("").find("host"), std::string::npos);
}

}  // namespace
}  // namespace thrice::testing
