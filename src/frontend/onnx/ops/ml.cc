// The few operators of ai.onnx.ml that are plain tensor arithmetic.
#include "frontend/onnx/ops/expr.h"
#include "frontend/onnx/ops/groups.h"

namespace thrice::frontend::onnx {
namespace {

void binarizer(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  const Expr above = is_float(x.dtype()) ? greater(x, ctx.float_attr("threshold", 0.0))
                                         : greater(cast(x, DType::kF64), ctx.float_attr("threshold", 0.0));
  out(ctx, 0, cast(above, x.dtype()));
}

// Columns of the last axis; a vector gives one row.
void array_feature_extractor(NodeContext& ctx) {
  const Expr x = in(ctx, 0), index = in(ctx, 1);
  const Expr flat = reshape(index, {ir::num_elements(index.shape())});
  const Expr picked = gather(x, flat, -1);
  out(ctx, 0, x.rank() == 1 ? unsqueeze(picked, {0}) : picked);
}

// (x - offset) * scale, in f32.
void scaler(NodeContext& ctx) {
  const auto list = [&](const char* name) {
    const std::vector<double> values = ctx.floats_attr(name);
    return constant(ctx, Tensor::of(DType::kF32, {static_cast<int64_t>(values.size())}, values));
  };
  Expr y = cast(in(ctx, 0), DType::kF32);
  if (ctx.has_attr("offset")) y = y - list("offset");
  if (ctx.has_attr("scale")) y = y * list("scale");
  out(ctx, 0, y);
}

}  // namespace

std::vector<OperatorImport> ml_imports() {
  return {
      {"ai.onnx.ml", "Binarizer", 1, binarizer},
      {"ai.onnx.ml", "ArrayFeatureExtractor", 1, array_feature_extractor},
      {"ai.onnx.ml", "Scaler", 1, scaler},
  };
}

}  // namespace thrice::frontend::onnx
