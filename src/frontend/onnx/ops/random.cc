// Random numbers and what draws them. Without a seed each node gets one of its own name, so that a run can be
// repeated.
#include "frontend/onnx/model.h"
#include "frontend/onnx/ops/expr.h"
#include "frontend/onnx/ops/groups.h"
#include "frontend/onnx/tensor_decode.h"

namespace thrice::frontend::onnx {
namespace {

// FNV-1a of the node's label.
int64_t seed_of(NodeContext& ctx) {
  if (ctx.has_attr("seed") && ctx.op_type() != "Dropout") {
    const double seed = ctx.float_attr("seed", 0);
    return seed > -9e15 && seed < 9e15 ? static_cast<int64_t>(seed) : 0;
  }
  uint64_t hash = 1469598103934665603u;
  for (const char c : ctx.node().label()) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return static_cast<int64_t>(hash >> 16);
}

DType dtype_attr(NodeContext& ctx, DType otherwise) {
  if (!ctx.has_attr("dtype")) return otherwise;
  return dtype_of_onnx(static_cast<int32_t>(ctx.int_attr("dtype")), ctx.op_type());
}

void draw(NodeContext& ctx, const char* kind, DType dtype, ValueId shape) {
  Attributes attrs{
      {"kind", std::string(kind)}, {"dtype", static_cast<int64_t>(dtype)}, {"seed", seed_of(ctx)}};
  if (std::string(kind) == "normal") {
    attrs["mean"] = ctx.float_attr("mean", 0.0);
    attrs["scale"] = ctx.float_attr("scale", 1.0);
  } else {
    attrs["low"] = ctx.float_attr("low", 0.0);
    attrs["high"] = ctx.float_attr("high", 1.0);
  }
  ctx.set_output(0, ctx.emit(Op::random, {shape}, attrs));
}

void random_normal(NodeContext& ctx) {
  draw(ctx, "normal", dtype_attr(ctx, DType::kF32), ctx.ints(ctx.ints_attr("shape")));
}
void random_uniform(NodeContext& ctx) {
  draw(ctx, "uniform", dtype_attr(ctx, DType::kF32), ctx.ints(ctx.ints_attr("shape")));
}
DType like_dtype(NodeContext& ctx) {
  const DType dtype = dtype_attr(ctx, in(ctx, 0).dtype());
  return is_float(dtype) ? dtype : DType::kF32;
}
void random_normal_like(NodeContext& ctx) {
  draw(ctx, "normal", like_dtype(ctx), ctx.dims(in(ctx, 0).shape()));
}
void random_uniform_like(NodeContext& ctx) {
  draw(ctx, "uniform", like_dtype(ctx), ctx.dims(in(ctx, 0).shape()));
}

void bernoulli(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  out(ctx, 0,
      emit(Op::random, x,
           {{"kind", std::string("bernoulli")},
            {"dtype", static_cast<int64_t>(dtype_attr(ctx, x.dtype()))},
            {"seed", seed_of(ctx)}}));
}

void multinomial(NodeContext& ctx) {
  out(ctx, 0,
      emit(Op::random, in(ctx, 0),
           {{"kind", std::string("multinomial")},
            {"dtype", static_cast<int64_t>(dtype_attr(ctx, DType::kI32))},
            {"sample_size", ctx.int_attr("sample_size", 1)},
            {"seed", seed_of(ctx)}}));
}

// For inference the identity, and a mask of ones.
void dropout(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  double ratio = ctx.float_attr("ratio", 0.5);
  bool training = false;
  if (ctx.opset() >= 12) {
    if (ctx.has_input(2)) training = ctx.structural_ints(2).at(0) != 0;
    if (training && ctx.has_input(1)) {
      const Tensor* value = ctx.constant_value(ctx.input(1));
      if (value == nullptr || value->size() != 1) ctx.refuse("in training mode the ratio must be a constant");
      ratio = value->as_double(0);
    }
  }
  const DType mask_dtype = ctx.opset() >= 10 ? DType::kBool : x.dtype();
  if (!training || ratio == 0) {
    out(ctx, 0, emit(Op::identity, x));
    if (ctx.wants_output(1)) out(ctx, 1, filled(ctx, mask_dtype, 1, x.shape()));
    return;
  }
  if (!(ratio > 0 && ratio < 1)) ctx.invalid("ratio must lie in [0, 1)");
  const Expr kept = emit(Op::random, filled(ctx, DType::kF32, 1 - ratio, x.shape()),
                         {{"kind", std::string("bernoulli")},
                          {"dtype", static_cast<int64_t>(DType::kBool)},
                          {"seed", ctx.has_attr("seed") ? ctx.int_attr("seed") : seed_of(ctx)}});
  out(ctx, 0, where(kept, x * (1 / (1 - ratio)), 0.0));
  out(ctx, 1, kept);
}

}  // namespace

std::vector<OperatorImport> random_imports() {
  return {
      {"", "RandomNormal", 1, random_normal},
      {"", "RandomUniform", 1, random_uniform},
      {"", "RandomNormalLike", 1, random_normal_like},
      {"", "RandomUniformLike", 1, random_uniform_like},
      {"", "Bernoulli", 15, bernoulli},
      {"", "Multinomial", 7, multinomial},
      {"", "Dropout", 7, dropout},
  };
}

}  // namespace thrice::frontend::onnx
