// A convolution as kernels see it: window geometry, groups, and the two ways in which it is a matrix product.
#pragma once
#include "family/gemm.h"
#include "family/window.h"

namespace thrice::family {

struct ConvProblem {
  HeavyRegion region;
  bool transposed = false;
  ir::ValueId x = ir::kNoValue, w = ir::kNoValue, bias = ir::kNoValue, y = ir::kNoValue;
  DType dtype = DType::kF32;
  int64_t group = 1;
  size_t spatial = 0;
  Extent batch, outputs, group_channels, group_outputs;  // N, O, C / group, O / group
  Window window;

  bool is_depthwise() const;  // one input channel a group, provably
  bool is_pointwise() const;  // 1x1, stride 1, no padding
  bool is_subpixel() const;   // transposed, stride equals kernel: no two taps meet
};
ConvProblem make_conv(const Workload& workload);  // throws NotMatched

// Stores element (n, o, spatial...) of the result: adds the bias, runs the epilogue.
void store_conv(Emitter& e, const ConvProblem& conv, const Coords& at, const std::string& acc);

// rows = output channels of a group, depth = channels and taps, columns = output positions of all images.
// `chunk` > 0 orders the depth as (channel / chunk, taps, channel % chunk), so that a step of that many has
// one tap; legal_chunk gives `chunk` where that can be and helps, else 0.
Gemm implicit_gemm(const ProgramDraft& draft, const ConvProblem& conv, int64_t chunk = 0);
int64_t legal_chunk(const ConvProblem& conv, int64_t chunk);
// Pointwise: columns = positions of one image, which are neighbours in memory.
Gemm pointwise_gemm(const ProgramDraft& draft, const ConvProblem& conv);
// Sub-pixel (transposed): rows = output channels and taps, columns = input positions of one image.
Gemm subpixel_gemm(const ProgramDraft& draft, const ConvProblem& conv);

// Rows of images that a depthwise kernel counts through: images times output channels.
Extent image_channels(const ConvProblem& conv);

KernelDraft emit_conv_naive(ProgramDraft& draft, const ConvProblem& conv, const Schedule& schedule);
KernelDraft emit_conv_direct(ProgramDraft& draft, const ConvProblem& conv, const Schedule& schedule);
KernelDraft emit_conv_depthwise(ProgramDraft& draft, const ConvProblem& conv, const Schedule& schedule);

}  // namespace thrice::family
