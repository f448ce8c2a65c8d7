// Would catch: wrong window clipping, divisors and indices of pooling; wrong coordinates and weights of
// resize and sampling (values known from the operators' definitions).
#include <cmath>

#include "unit/ir_evaluate/arrays.h"

namespace thrice::ir::testing {
namespace {

Attributes pooling(const char* kind, Ints kernel, Ints strides, Ints pads) {
  return {{"kind", std::string(kind)}, {"kernel", kernel}, {"strides", strides}, {"pads", pads}};
}

TEST(Pool, AverageCountsOrSkipsPadding) {
  const ArrayPtr x = floats({1, 1, 4}, {1, 2, 3, 4});
  Attributes a = pooling("avg", {3}, {2}, {1, 1});
  expect_near(run(Op::pool, {x}, a), {1, 1, 2}, {1.5, 3});
  a["count_include_pad"] = int64_t{1};
  expect_near(run(Op::pool, {x}, a), {1, 1, 2}, {1, 3});
  a["ceil_mode"] = int64_t{1};  // the third window reaches one past the padding, which is not counted
  expect_near(run(Op::pool, {x}, a), {1, 1, 3}, {1, 3, 2});
  expect_near(run(Op::pool, {x}, pooling("sum", {2}, {1}, {0, 0})), {1, 1, 3}, {3, 5, 7});
}

TEST(Pool, MaxIndicesAndPaddingNeverWins) {
  const ArrayPtr x = floats({1, 2, 2, 2}, {-1, -2, -3, -4, 5, 6, 8, 7});
  const auto y = run_all(Op::pool, {x}, pooling("max", {2, 2}, {1, 1}, {1, 1, 0, 0}), 2);
  expect_near(*y[0], {1, 2, 2, 2}, {-1, -1, -1, -1, 5, 6, 8, 8});
  EXPECT_EQ(y[1]->i, (Ints{0, 0, 0, 0, 4, 5, 6, 6}));
  Attributes columns = pooling("max", {2, 2}, {1, 1}, {0, 0, 0, 0});
  columns["storage_order"] = int64_t{1};
  EXPECT_EQ(run_all(Op::pool, {x}, columns, 2)[1]->i, (Ints{0, 5}));
}

Attributes resizing(const char* mode, const char* coordinates) {
  return {{"mode", std::string(mode)}, {"coordinate_transformation_mode", std::string(coordinates)}};
}

TEST(Resize, LinearAndNearestAndCubic) {
  const ArrayPtr x = floats({4}, {1, 2, 3, 4}), up = floats({1}, {2.0}), down = floats({1}, {0.6});
  expect_near(run(Op::resize, {x, nullptr, up}, resizing("linear", "half_pixel")), {8},
              {1, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4});
  expect_near(run(Op::resize, {x, nullptr, up}, resizing("linear", "align_corners")), {8},
              {1, 10.0 / 7, 13.0 / 7, 16.0 / 7, 19.0 / 7, 22.0 / 7, 25.0 / 7, 4});
  expect_near(run(Op::resize, {x, nullptr, up}, resizing("linear", "asymmetric")), {8},
              {1, 1.5, 2, 2.5, 3, 3.5, 4, 4});
  expect_near(run(Op::resize, {x, nullptr, nullptr, vec({8})}, resizing("nearest", "half_pixel")), {8},
              {1, 1, 2, 2, 3, 3, 4, 4});
  Attributes ceil = resizing("nearest", "asymmetric");
  ceil["nearest_mode"] = std::string("ceil");
  expect_near(run(Op::resize, {x, nullptr, up}, ceil), {8}, {1, 2, 2, 3, 3, 4, 4, 4});
  EXPECT_EQ(run(Op::resize, {x, nullptr, down}, resizing("nearest", "asymmetric")).shape, (Ints{2}));
  // A cubic that reproduces constants, and at half positions has weights -3/32, 19/32 (a = -0.75).
  Attributes cubic = resizing("cubic", "asymmetric");
  expect_near(run(Op::resize, {floats({4}, {0, 0, 1, 0}), nullptr, up}, cubic), {8},
              {0, -0.09375, 0, 0.59375, 1, 0.59375 - 0.0, 0, -0.09375 - 0.0}, 0.1);
  const Array flat = run(Op::resize, {floats({4}, {5, 5, 5, 5}), nullptr, up}, cubic);
  for (double v : flat.f) EXPECT_NEAR(v, 5, 1e-12);
}

TEST(Resize, AntialiasKeepsTheMeanAndAxesAndPolicy) {
  Attributes a = resizing("linear", "half_pixel");
  a["antialias"] = int64_t{1};
  const Array y = run(Op::resize, {floats({8}, {0, 0, 0, 8, 8, 0, 0, 0}), nullptr, floats({1}, {0.5})}, a);
  expect_near(y, {4}, {0, 4, 4, 0}, 1.01);
  EXPECT_NEAR(y.f[0] + y.f[1] + y.f[2] + y.f[3], 8, 1e-9);
  Attributes keep = resizing("nearest", "half_pixel");
  keep["axes"] = Ints{1, 2};
  keep["keep_aspect_ratio_policy"] = std::string("not_larger");
  EXPECT_EQ(run(Op::resize, {counting({2, 4, 8}), nullptr, nullptr, vec({8, 8})}, keep).shape,
            (Ints{2, 4, 8}));
  keep["keep_aspect_ratio_policy"] = std::string("not_smaller");
  EXPECT_EQ(run(Op::resize, {counting({2, 4, 8}), nullptr, nullptr, vec({8, 8})}, keep).shape,
            (Ints{2, 8, 16}));
}

TEST(Resize, CropAndExtrapolate) {
  Attributes a = resizing("linear", "tf_crop_and_resize");
  a["extrapolation_value"] = 10.0;
  const Array y = run(Op::resize, {floats({4}, {1, 2, 3, 4}), floats({2}, {0.5, 1.5}), nullptr, vec({3})}, a);
  expect_near(y, {3}, {2.5, 4, 10});
}

TEST(Resize, OldNearestForTensorFlow) {
  const ArrayPtr x = floats({4}, {1, 2, 3, 4});
  expect_near(run(Op::resize, {x, nullptr, nullptr, vec({3})}, resizing("nearest", "tf_half_pixel_for_nn")),
              {3}, {2, 3, 4});
}

TEST(GridSample, CornersPaddingAndModes) {
  const ArrayPtr x = floats({1, 1, 2, 2}, {1, 2, 3, 4});
  const auto at = [&](double gx, double gy, const char* mode, const char* padding, int64_t align) {
    return run(Op::grid_sample, {x, floats({1, 1, 1, 2}, {gx, gy})},
               {{"mode", std::string(mode)},
                {"padding_mode", std::string(padding)},
                {"align_corners", align}})
        .f[0];
  };
  EXPECT_NEAR(at(0, 0, "linear", "zeros", 1), 2.5, 1e-12);
  EXPECT_NEAR(at(1, -1, "linear", "zeros", 1), 2, 1e-12);
  EXPECT_NEAR(at(1, 1, "linear", "zeros", 0), 1, 1e-12);  // a quarter of the corner pixel
  EXPECT_NEAR(at(1, 1, "linear", "border", 0), 4, 1e-12);
  EXPECT_NEAR(at(3, -1, "nearest", "reflection", 1), 1, 1e-12);
  EXPECT_NEAR(at(0.9, 0.9, "nearest", "zeros", 0), 4, 1e-12);
  EXPECT_NEAR(at(-1, -1, "cubic", "border", 1), 1, 1e-12);
}

TEST(RoiAlign, WholeImageAverageAndMax) {
  const ArrayPtr x = floats({1, 1, 2, 2}, {1, 2, 3, 4}), roi = floats({1, 4}, {0, 0, 2, 2});
  Attributes a = {{"output_height", int64_t{1}},
                  {"output_width", int64_t{1}},
                  {"sampling_ratio", int64_t{2}},
                  {"coordinate_transformation_mode", std::string("half_pixel")}};
  expect_near(run(Op::roi_align, {x, roi, vec({0})}, a), {1, 1, 1, 1}, {2.5});
  a["mode"] = std::string("max");
  expect_near(run(Op::roi_align, {x, roi, vec({0})}, a), {1, 1, 1, 1}, {4});
  EXPECT_THROW(run(Op::roi_align, {x, roi, vec({3})}, a), Error);
}

}  // namespace
}  // namespace thrice::ir::testing
