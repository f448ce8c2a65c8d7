#include "family/conv/conv_library.h"

#include <fmt/format.h>

#include "artifact/library_convolution.h"
#include "family/choices.h"
#include "family/gemm_library.h"
#include "family/library_choice.h"
#include "family/scalar.h"

namespace thrice::family {

namespace {

using artifact::ConvolutionExtents;
using artifact::LibraryConvolution;

constexpr int64_t kThreads = 256;
constexpr int64_t kWorkspaceMib = 64;

// Both ends of an axis are padded alike, for every extent; the pad is then known.
std::optional<int64_t> equal_pad(const ConvProblem& conv, size_t axis) {
  const WindowAxis& a = conv.window.axes[axis];
  const std::string auto_pad = conv.region.op->string_attr("auto_pad", "notset");
  if (auto_pad == "valid") return 0;
  if (auto_pad == "same_upper" || auto_pad == "same_lower") {
    if (!a.in.dim.is_const() || !a.kernel.dim.is_const()) return std::nullopt;
    const auto [begin, end] =
        ir::resolve_pads(auto_pad, a.in.dim.value(), a.kernel.dim.value(), a.stride, a.dilation, 0, 0);
    return begin == end ? std::optional<int64_t>(begin) : std::nullopt;
  }
  const auto pads = conv.region.op->has_attr("pads") ? conv.region.op->ints_attr("pads")
                                                     : std::vector<int64_t>(2 * conv.spatial, 0);
  return pads[axis] == pads[axis + conv.spatial] && pads[axis] >= 0 ? std::optional<int64_t>(pads[axis])
                                                                    : std::nullopt;
}

KernelDraft call(const LibraryConvolution& library, const ConvProblem& conv, int64_t algorithm) {
  KernelDraft draft;
  draft.symbol = library.symbol();
  draft.text = fmt::format("// {}: a convolution by cuDNN, no text\n", draft.symbol);
  draft.extents.resize(ConvolutionExtents::count(library.spatial));
  const auto literal = [](int64_t value) -> Source { return [value](const Facts&) { return value; }; };
  draft.extents[ConvolutionExtents::kBatch] = conv.batch.source;
  draft.extents[ConvolutionExtents::kGroups] = literal(conv.group);
  draft.extents[ConvolutionExtents::kGroupChannels] = conv.group_channels.source;
  draft.extents[ConvolutionExtents::kOutputs] = conv.outputs.source;
  draft.extents[ConvolutionExtents::kAlgorithm] = literal(algorithm);
  for (size_t k = 0; k < conv.spatial; ++k) {
    const WindowAxis& a = conv.window.axes[k];
    const auto at = [&](size_t what) -> Source& { return draft.extents[ConvolutionExtents::axis(k, what)]; };
    at(ConvolutionExtents::kIn) = a.in.source;
    at(ConvolutionExtents::kOut) = a.out.source;
    at(ConvolutionExtents::kKernel) = a.kernel.source;
    at(ConvolutionExtents::kStride) = literal(a.stride);
    at(ConvolutionExtents::kDilation) = literal(a.dilation);
    at(ConvolutionExtents::kPad) = literal(equal_pad(conv, k).value_or(0));
  }
  draft.geometry = [y = conv.y](const Facts& facts, artifact::Launch& launch) {
    set_grid(launch, elements_at(facts, y) == 0 ? 0 : 1, 1);
  };
  return draft;
}

// Reads the convolution from scratch buffer `from`, one thread an element.
KernelDraft epilogue(ProgramDraft& draft, const ConvProblem& conv, int from) {
  Emitter e(draft, "conv_cudnn_epilogue");
  const Index n = e.elements(conv.y);
  const Index i = e.index().var("i", ir::num_elements(e.graph().value(conv.y).type.shape));
  e.line(fmt::format("const int i = TH_BLOCK * {} + TH_THREAD;", kThreads));
  e.open(fmt::format("if (i < {})", e.text(n)));
  const std::string sum = e.declare(DType::kF32, e.load(draft.temporary_name(from), DType::kF32, "i"));
  store_conv(e, conv, e.split(i, conv.y), sum);
  e.close();
  return e.finish(
      [y = conv.y](const Facts& facts, artifact::Launch& launch) {
        set_grid(launch, ceil_div(elements_at(facts, y), kThreads), kThreads);
      },
      kThreads);
}

}  // namespace

void emit_conv_library(ProgramDraft& draft, const ConvProblem& conv, const Schedule& schedule) {
  const int output = conv.bias == ir::kNoValue ? plain_output(draft.workload(), conv.y) : -1;
  const int scratch = output >= 0 ? -1 : draft.add_temporary(DType::kF32, elements_of(conv.y));
  const int64_t workspace_bytes = library_workspace_bytes(schedule);
  const int workspace = draft.add_temporary(DType::kU8, [=](const Facts&) { return workspace_bytes; });
  LibraryConvolution library;
  library.spatial = static_cast<int>(conv.spatial);
  library.x = buffer_position_of(draft.input_name(conv.x));
  library.w = buffer_position_of(draft.input_name(conv.w));
  library.y = buffer_position_of(output >= 0 ? draft.output_name(static_cast<size_t>(output))
                                             : draft.temporary_name(scratch));
  library.workspace = buffer_position_of(draft.temporary_name(workspace));
  draft.kernels.push_back(call(library, conv, schedule.get("algorithm")));
  if (output < 0) draft.kernels.push_back(epilogue(draft, conv, scratch));
}

std::vector<std::pair<std::string, int64_t>> default_conv_library() {
  return default_library_choice(kWorkspaceMib);
}

std::vector<artifact::Parameter> conv_library_parameters() {
  return library_choice_parameters(kWorkspaceMib);
}

Refusal refuse_conv_library(const Workload& workload, const ConvProblem& conv, const Schedule& s,
                            const DeviceSpec& device) {
  if (device.api != target::Api::kCuda) return "cudnn is a library for NVIDIA GPUs";
  if (device.cudnn.empty())
    return fmt::format("{} has no cuDNN here; `thrice devices` says why", device.name);
  if (conv.transposed) return "cudnn is not used for transposed convolutions";
  if (conv.dtype != DType::kF32) return fmt::format("cudnn is used for f32, not {}", dtype_name(conv.dtype));
  for (const ir::ValueId v : {conv.x, conv.w})
    if (workload.graph.value(v).type.dtype != conv.dtype || !is_plain_buffer(workload, v))
      return "an operand does not lie in memory as it is: it has a prologue";
  for (size_t k = 0; k < conv.spatial; ++k)
    if (!equal_pad(conv, k)) return "an axis is not padded alike at both ends, or negatively";
  if (auto refusal = refuse_library_choice(s)) return refusal;
  return refuse_device(workload, device, kThreads, 0);
}

}  // namespace thrice::family
