// Catches: a library convolution described with wrong operands, geometry or groups, an epilogue that reads it
// at wrong places, operands and pads offered that the library would take for others. The library is played by
// the host; a card with cuDNN runs the tactic in the tests beside it.
#include "artifact/library_convolution.h"
#include "cross/heavy/library_player.h"

namespace thrice::testing {
namespace {

using artifact::ConvolutionExtents;
using artifact::LibraryConvolution;
using ir::Dim;
using ir::Op;

// The convolution as the description says it, in double; missing axes have extent 1.
void play(const LibraryConvolution& c, const std::vector<int32_t>& e, std::vector<ir::Tensor>& buffers) {
  ASSERT_EQ(e.size(), ConvolutionExtents::count(c.spatial));
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1},
          dilation[3] = {1, 1, 1}, pad[3] = {};
  for (size_t k = 0; k < static_cast<size_t>(c.spatial); ++k) {
    const auto at = [&](size_t what) { return e[ConvolutionExtents::axis(k, what)]; };
    in[k] = at(ConvolutionExtents::kIn);
    out[k] = at(ConvolutionExtents::kOut);
    kernel[k] = at(ConvolutionExtents::kKernel);
    stride[k] = at(ConvolutionExtents::kStride);
    dilation[k] = at(ConvolutionExtents::kDilation);
    pad[k] = at(ConvolutionExtents::kPad);
  }
  const int64_t batch = e[ConvolutionExtents::kBatch], groups = e[ConvolutionExtents::kGroups],
                depth = e[ConvolutionExtents::kGroupChannels], outputs = e[ConvolutionExtents::kOutputs];
  const ir::Tensor &x = buffers[static_cast<size_t>(c.x)], &w = buffers[static_cast<size_t>(c.w)];
  ir::Tensor& y = buffers[static_cast<size_t>(c.y)];
  ASSERT_EQ(x.size(), batch * groups * depth * in[0] * in[1] * in[2]);
  ASSERT_EQ(w.size(), outputs * depth * kernel[0] * kernel[1] * kernel[2]);
  ASSERT_EQ(y.size(), batch * outputs * out[0] * out[1] * out[2]);
  int64_t at = 0;
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t o = 0; o < outputs; ++o)
      for (int64_t p = 0; p < out[0]; ++p)
        for (int64_t q = 0; q < out[1]; ++q)
          for (int64_t r = 0; r < out[2]; ++r) {
            double sum = 0;
            for (int64_t d = 0; d < depth; ++d)
              for (int64_t i = 0; i < kernel[0]; ++i)
                for (int64_t j = 0; j < kernel[1]; ++j)
                  for (int64_t k = 0; k < kernel[2]; ++k) {
                    const int64_t a = p * stride[0] - pad[0] + i * dilation[0],
                                  b = q * stride[1] - pad[1] + j * dilation[1],
                                  f = r * stride[2] - pad[2] + k * dilation[2];
                    if (a < 0 || a >= in[0] || b < 0 || b >= in[1] || f < 0 || f >= in[2]) continue;
                    const int64_t channel = o / (outputs / groups) * depth + d;
                    sum +=
                        x.as_double((((n * groups * depth + channel) * in[0] + a) * in[1] + b) * in[2] + f) *
                        w.as_double((((o * depth + d) * kernel[0] + i) * kernel[1] + j) * kernel[2] + k);
                  }
            y.set(at++, sum);
          }
}

void check_played(Builder& builder, const std::vector<ir::Bindings>& bindings, size_t kernels) {
  const auto parse = [](const std::string& symbol) -> PlayedCall {
    const LibraryConvolution c = LibraryConvolution::parse(symbol).value();
    return {DType::kF32, c.workspace, [c](const auto& extents, auto& buffers) { play(c, extents, buffers); }};
  };
  check_played_call(builder, family::conv_family(), "cudnn", parse, ConvolutionExtents::kAlgorithm, bindings,
                    kernels);
}

using Ints = std::vector<int64_t>;

TEST(LibraryConvolution, EveryGeometry) {
  struct Case {
    ir::Shape x, w;
    ir::Attributes attributes;
  };
  for (const Case& c : std::vector<Case>{
           {{2, 3, 7, 9}, {4, 3, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}}},
           {{2, 3, 7, 9}, {4, 3, 3, 2}, {{"strides", Ints{2, 1}}, {"pads", Ints{2, 0, 2, 0}}}},
           {{1, 4, 9, 8}, {6, 2, 3, 3}, {{"group", int64_t{2}}, {"dilations", Ints{2, 1}}}},
           {{1, 5, 6, 6}, {5, 1, 3, 3}, {{"group", int64_t{5}}, {"auto_pad", std::string("same_upper")}}},
           {{2, 3, 11}, {4, 3, 5}, {{"strides", Ints{2}}, {"pads", Ints{2, 2}}}},
           {{1, 2, 4, 5, 6}, {3, 2, 2, 3, 1}, {{"pads", Ints{0, 1, 0, 0, 1, 0}}}},
           {{1, 3, 5, 5}, {2, 3, 1, 1}, {{"auto_pad", std::string("valid")}}}}) {
    Builder b;
    b.output(b.op(Op::conv, {b.f32(c.x), b.f32(c.w)}, c.attributes));
    check_played(b, {{}}, 1);
  }
}

TEST(LibraryConvolution, EveryLengthWithBiasAndEpilogue) {
  THRICE_REQUIRE_OPENCL();
  Builder b;
  const Dim n = Dim::symbol("n"), h = Dim::symbol("h");
  const auto y =
      b.op(Op::conv, {b.f32({n, 4, h, 6}), b.f32({8, 4, 3, 3}), b.f32({8})}, {{"pads", Ints{1, 1, 1, 1}}});
  const auto sum = b.op(Op::add, {b.op(Op::relu, {y}), b.f32({n, 8, h, 6})});
  b.output(b.op(Op::transpose, {sum}, {{"perm", Ints{0, 2, 3, 1}}}));
  check_played(b, {{{"s0", 2}, {"s1", 5}}, {{"s0", 1}, {"s1", 1}}, {{"s0", 0}, {"s1", 5}}}, 2);
}

TEST(LibraryConvolution, OnACardThatHasIt) {
  THRICE_REQUIRE_OPENCL();
  if (FamilyRunner::instance().spec().cudnn.empty()) GTEST_SKIP() << "skipped: no cuDNN on the test device";
  const Dim n = Dim::symbol("n");
  Builder b;
  const auto y = b.op(Op::conv, {b.f32({n, 16, 14, 15}), b.f32({24, 16, 3, 3}), b.f32({24})},
                      {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 1}}});
  b.output(b.op(Op::relu, {y}));
  const ir::Workload w = b.workload();
  for (const int64_t algorithm : {0, 1, 2, 7})
    for (const int64_t mib : {0, 64}) {
      const artifact::Schedule s{"conv", "cudnn", {{"algorithm", algorithm}, {"workspace_mib", mib}}};
      for (const int64_t batch : {1, 3})
        FamilyRunner::instance().check(w, family::conv_family(), s,
                                       ir::make_inputs(w.graph, {{"s0", batch}}, ir::InputKind::kNormal, 5));
    }
}

TEST(LibraryConvolution, RefusesWhatTheLibraryDoesNotTake) {
  const artifact::Schedule s = artifact::Schedule::parse("conv/cudnn algorithm=0 workspace_mib=64");
  const auto refusal = [&](Builder& b, const target::DeviceSpec& device) {
    return family::conv_family().illegal(b.workload(), s, device).value_or("");
  };
  const auto with = [&](const ir::Attributes& attributes) {
    Builder b;
    b.output(b.op(Op::conv, {b.f32({1, 3, 6, 6}), b.f32({2, 3, 2, 2})}, attributes));
    return refusal(b, library_card());
  };
  EXPECT_EQ(with({}), "");
  EXPECT_NE(with({{"pads", Ints{0, 0, 1, 1}}}).find("alike"), std::string::npos);
  EXPECT_NE(with({{"auto_pad", std::string("same_upper")}}).find("alike"), std::string::npos);
  EXPECT_NE(with({{"pads", Ints{-1, 0, -1, 0}}}).find("negatively"), std::string::npos);
  {
    Builder b;
    b.output(b.op(Op::conv, {b.f32({1, 3, 6, 6}), b.f32({2, 3, 2, 2})}));
    target::DeviceSpec bare = library_card();
    bare.cudnn.clear();
    EXPECT_NE(refusal(b, bare).find("no cuDNN"), std::string::npos);
    bare.api = target::Api::kOpenCL;
    EXPECT_NE(refusal(b, bare).find("NVIDIA"), std::string::npos);
  }
  {
    Builder b;
    const auto x = b.op(Op::relu, {b.f32({1, 3, 6, 6})});
    b.output(b.op(Op::conv, {x, b.f32({2, 3, 2, 2})}));
    EXPECT_NE(refusal(b, library_card()).find("prologue"), std::string::npos);
  }
  {
    Builder b;
    b.output(b.op(Op::conv_transpose, {b.f32({1, 3, 6, 6}), b.f32({3, 2, 2, 2})}));
    EXPECT_NE(refusal(b, library_card()).find("transposed"), std::string::npos);
  }
  {
    Builder b;
    b.output(b.op(Op::conv, {b.input(DType::kF64, {1, 3, 6, 6}), b.input(DType::kF64, {2, 3, 2, 2})}));
    EXPECT_NE(refusal(b, library_card()).find("f64"), std::string::npos);
  }
}

}  // namespace
}  // namespace thrice::testing
