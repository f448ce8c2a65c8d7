#include "family/gemm_library.h"

#include <fmt/format.h>

#include <algorithm>

#include "artifact/library_product.h"
#include "family/choices.h"
#include "family/library_choice.h"
#include "family/scalar.h"

namespace thrice::family {

namespace {

using artifact::LibraryProduct;
using artifact::ProductExtents;
using ir::Dim;
using ir::ValueId;

constexpr int64_t kThreads = 256;
// What the library's vendor advises for Hopper; it takes part of it, or none.
constexpr int64_t kWorkspaceMib = 32;

bool is_one(const Dim& d) { return d.is_const() && d.value() == 1; }

int64_t count(const Gemm& g, const Facts& facts) {
  return g.batches.source(facts) * g.rows.source(facts) * g.cols.source(facts);
}

KernelDraft call(const LibraryProduct& product, const Gemm& g, int64_t algorithm) {
  KernelDraft draft;
  draft.symbol = product.symbol();
  draft.text = fmt::format("// {}: a product by cuBLASLt, no text\n", draft.symbol);
  draft.extents.resize(ProductExtents::kCount);
  draft.extents[ProductExtents::kBatches] = g.batches.source;
  draft.extents[ProductExtents::kRows] = g.rows.source;
  draft.extents[ProductExtents::kCols] = g.cols.source;
  draft.extents[ProductExtents::kDepth] = g.depth.source;
  const auto step = [](const GemmMatrix& m, const Source& x, const Source& y) -> Source {
    return [is_batched = m.is_batched, x, y](const Facts& f) { return is_batched ? x(f) * y(f) : 0; };
  };
  draft.extents[ProductExtents::kStepA] = step(*g.a_matrix, g.rows.source, g.depth.source);
  draft.extents[ProductExtents::kStepB] = step(*g.b_matrix, g.depth.source, g.cols.source);
  draft.extents[ProductExtents::kAlgorithm] = [algorithm](const Facts&) { return algorithm; };
  draft.geometry = [g](const Facts& facts, artifact::Launch& launch) {
    set_grid(launch, count(g, facts) == 0 ? 0 : 1, 1);
  };
  return draft;
}

// Reads the product from scratch buffer `from`, one thread an element.
KernelDraft epilogue(ProgramDraft& draft, const std::string& symbol, const Gemm& g, int from) {
  Emitter e(draft, symbol);
  const auto extent = [&](const Extent& x) { return e.index().extent(x.dim, x.source); };
  const std::vector<Index> dims{extent(g.batches), extent(g.rows), extent(g.cols)};
  const Index i = e.index().var("i", g.batches.dim * g.rows.dim * g.cols.dim);
  e.line(fmt::format("const int i = TH_BLOCK * {} + TH_THREAD;", kThreads));
  e.open(fmt::format("if (i < {})", e.text(e.product(dims))));
  const DType dtype = draft.temporary(from).dtype;
  const std::string sum = e.declare(dtype, e.load(draft.temporary_name(from), dtype, "i"));
  const Coords at = e.index().split(i, dims);
  g.epilogue(e, at[0], at[1], at[2], sum);
  e.close();
  return e.finish(
      [g](const Facts& facts, artifact::Launch& launch) {
        set_grid(launch, ceil_div(count(g, facts), kThreads), kThreads);
      },
      kThreads);
}

}  // namespace

std::optional<GemmMatrix> whole_matrix(const Workload& workload, ValueId operand, size_t matrix_axes,
                                       const std::vector<Dim>& batches) {
  const ir::Value& v = workload.graph.value(operand);
  const auto& inputs = workload.graph.inputs;
  const auto input = static_cast<size_t>(std::find(inputs.begin(), inputs.end(), operand) - inputs.begin());
  if (v.constant || v.producer >= 0 || input == inputs.size() || ir::is_shape_input(workload, input))
    return std::nullopt;
  const auto& shape = v.type.shape;
  const auto matrix = shape.end() - static_cast<std::ptrdiff_t>(matrix_axes);
  if (std::all_of(shape.begin(), matrix, is_one)) return GemmMatrix{operand, false};
  if (std::equal(shape.begin(), matrix, batches.begin(), batches.end())) return GemmMatrix{operand, true};
  return std::nullopt;
}

int plain_output(const Workload& workload, ValueId result) {
  const ir::Graph& graph = workload.graph;
  if (graph.outputs.size() != 1) return -1;
  for (ValueId v = graph.outputs[0]; v != result;) {
    const ir::NodeId producer = graph.value(v).producer;
    if (producer < 0) return -1;
    const ir::Node& node = graph.nodes[static_cast<size_t>(producer)];
    if (node.op != ir::Op::reshape) return -1;
    v = node.inputs[0];
  }
  return 0;
}

void emit_gemm_library(ProgramDraft& draft, const std::string& symbol, const Gemm& g,
                       const Schedule& schedule) {
  const bool is_plain = g.plain_output >= 0;
  const DType result = is_plain || g.dtype == DType::kF64 ? g.dtype : DType::kF32;
  const int scratch =
      is_plain ? -1 : draft.add_temporary(result, [g](const Facts& f) { return count(g, f); });
  const int64_t workspace_bytes = library_workspace_bytes(schedule);
  const int workspace = draft.add_temporary(DType::kU8, [=](const Facts&) { return workspace_bytes; });

  LibraryProduct product{g.dtype, result, g.a_rows_follow, g.b_depth_follows};
  product.a = buffer_position_of(draft.input_name(g.a_matrix->value));
  product.b = buffer_position_of(draft.input_name(g.b_matrix->value));
  product.product = buffer_position_of(is_plain ? draft.output_name(static_cast<size_t>(g.plain_output))
                                                : draft.temporary_name(scratch));
  product.workspace = buffer_position_of(draft.temporary_name(workspace));
  draft.kernels.push_back(call(product, g, schedule.get("algorithm")));
  if (!is_plain) draft.kernels.push_back(epilogue(draft, symbol + "_epilogue", g, scratch));
}

std::vector<std::pair<std::string, int64_t>> default_gemm_library() {
  return default_library_choice(kWorkspaceMib);
}

std::vector<artifact::Parameter> gemm_library_parameters() {
  return library_choice_parameters(kWorkspaceMib);
}

Refusal refuse_gemm_library(const Workload& workload, const Gemm& g, const Schedule& s,
                            const DeviceSpec& device) {
  if (device.api != target::Api::kCuda) return "cublaslt is a library for NVIDIA GPUs";
  if (device.cublaslt.empty())
    return fmt::format("{} has no cuBLASLt here; `thrice devices` says why", device.name);
  if (g.dtype != DType::kF32 && g.dtype != DType::kF64 && g.dtype != DType::kF16 && g.dtype != DType::kBF16)
    return fmt::format("cublaslt is used for f32, f64, f16 and bf16, not {}", dtype_name(g.dtype));
  if (!g.a_matrix || !g.b_matrix)
    return "an operand does not lie in memory as whole matrices: it has a prologue, or batches that are "
           "partly broadcast";
  for (const GemmMatrix& m : {*g.a_matrix, *g.b_matrix})
    if (workload.graph.value(m.value).type.dtype != g.dtype) return "an operand is of another type";
  if (auto refusal = refuse_library_choice(s)) return refusal;
  return refuse_device(workload, device, kThreads, 0);
}

}  // namespace thrice::family
