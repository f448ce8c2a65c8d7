// Catches: convolutions of 16 bits whose windows are copied with taps, channels or images mixed up, whose
// padding is not zero, or whose maps describe one image as another; a rule that leaves them to plain tiles.
// The kernels run on a card of sm_90a; elsewhere their texts are kept for the step cuda_texts.
#include "cross/heavy/schedules.h"

namespace thrice::testing {
namespace {

using ir::Dim;
using ir::Op;
using Ints = std::vector<int64_t>;

const family::Family& family() { return family::conv_family(); }

ir::Attributes attrs(Ints strides, Ints pads, int64_t group = 1) {
  return {{"strides", strides}, {"pads", pads}, {"dilations", Ints{1, 1}}, {"group", group}};
}

ir::Workload convolution(DType dtype, ir::Shape x, ir::Shape w, const ir::Attributes& attributes,
                         bool with_epilogue = true) {
  Builder b;
  const Dim outputs = w[0];
  auto y = b.op(Op::conv, {b.input(dtype, std::move(x)), b.input(dtype, std::move(w))}, attributes);
  if (with_epilogue) y = b.op(Op::relu, {b.op(Op::add, {y, b.input(dtype, {outputs, Dim(1), Dim(1)})})});
  b.output(y);
  return b.workload();
}

void check(const ir::Workload& w, const char* tactic, int64_t tile_m, int64_t tile_n, int64_t split,
           const ir::Bindings& bindings = {}) {
  const artifact::Schedule s{"conv",
                             tactic,
                             {{"tile_m", tile_m},
                              {"tile_n", tile_n},
                              {"stages", 4},
                              {"cluster", 1},
                              {"split", split},
                              {"blocks", split > 1 ? 0 : 132}}};
  auto& runner = FamilyRunner::instance();
  if (runner.available() && runner.spec().architecture == "sm_90a") {
    const bool is_half = w.graph.value(w.graph.outputs[0]).type.dtype == DType::kF16;
    runner.check(w, family(), s, ir::make_inputs(w.graph, bindings, ir::InputKind::kNormal, 3),
                 is_half ? 0x1p-11 : 0x1p-8);
    return;
  }
  const auto card = FamilyRunner::gpu_spec("sm_90a");
  ASSERT_EQ(family().illegal(w, s, card).value_or(""), "") << s.str();
  keep_cuda_text(s.str(), family().emit(w, s, card).text);
}

TEST(Conv16, WindowsAreCopied) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    check(convolution(dtype, {3, 24, 14, 14}, {72, 24, 3, 3}, attrs({1, 1}, {1, 1, 1, 1})),
          "implicit_wgmma16", 64, 128, 1);
    check(convolution(dtype, {2, 3, 29, 31}, {64, 3, 7, 7}, attrs({2, 2}, {3, 3, 3, 3}), false),
          "implicit_wgmma16", 128, 64, 1);
  }
  check(convolution(DType::kBF16, {2, 32, 7, 7}, {128, 16, 3, 3}, attrs({2, 2}, {0, 1, 1, 0}, 2)),
        "implicit_wgmma16", 64, 64, 1);
  check(convolution(DType::kBF16, {5, 512, 7, 7}, {64, 512, 1, 1}, attrs({1, 1}, {0, 0, 0, 0})),
        "implicit_wgmma16", 64, 64, 2);
}

TEST(Conv16, ImagesKnownAtRunTime) {
  check(convolution(DType::kBF16, {Dim::symbol("n"), 16, 9, 11}, {40, 16, 3, 3}, attrs({1, 1}, {1, 1, 1, 1})),
        "implicit_wgmma16", 64, 64, 1, {{"s0", 3}});
  check(convolution(DType::kF16, {2, 16, 8, Dim::symbol("w")}, {32, 16, 3, 3}, attrs({1, 1}, {1, 1, 1, 1})),
        "implicit_wgmma16", 64, 128, 1, {{"s0", 13}});
}

TEST(Conv16, PointwiseIsReadAsItLies) {
  for (const bool with_epilogue : {true, false})
    check(convolution(DType::kBF16, {3, 64, 12, 14}, {96, 64, 1, 1}, attrs({1, 1}, {0, 0, 0, 0}),
                      with_epilogue),
          "pointwise_wgmma16", 64, 128, 1);
  check(convolution(DType::kF16, {Dim::symbol("n"), 256, 8, 8}, {64, 256, 1, 1}, attrs({1, 1}, {0, 0, 0, 0})),
        "pointwise_wgmma16", 64, 64, 2, {{"s0", 2}});
}

// A rule that knows a product's tactics must not leave convolutions of 16 bits, which lack some of them, to
// plain tiles.
TEST(Conv16, RuleTakesTensorCores) {
  const auto tactic = [](DType dtype, int64_t images, int64_t kernel, int64_t extent) {
    const int64_t pad = kernel / 2;
    const auto w = convolution(dtype, {Dim(images), 256, Dim(extent), Dim(extent)},
                               {256, 256, Dim(kernel), Dim(kernel)}, attrs({1, 1}, {pad, pad, pad, pad}));
    return family().default_schedule(w, ir::facts_at(w.graph, {}), FamilyRunner::gpu_spec("sm_90a")).tactic;
  };
  EXPECT_EQ(tactic(DType::kBF16, 32, 3, 14), "implicit_wgmma16");
  EXPECT_EQ(tactic(DType::kBF16, 32, 1, 14), "implicit_wgmma16");  // lines of 392 bytes
  EXPECT_EQ(tactic(DType::kF16, 32, 1, 28), "pointwise_wgmma16");
  EXPECT_EQ(tactic(DType::kBF16, 1, 3, 7), "implicit_mma");
  EXPECT_EQ(tactic(DType::kF32, 32, 3, 14), "implicit_mma");
}

}  // namespace
}  // namespace thrice::testing
