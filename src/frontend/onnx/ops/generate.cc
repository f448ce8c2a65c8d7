// Operators that make tensors out of attributes and shapes.
#include <algorithm>
#include <cmath>

#include "frontend/onnx/ops/expr.h"
#include "frontend/onnx/ops/groups.h"
#include "frontend/onnx/tensor_decode.h"

namespace thrice::frontend::onnx {
namespace {

DType dtype_attr(NodeContext& ctx, const char* name, DType otherwise) {
  if (!ctx.has_attr(name)) return otherwise;
  return dtype_of_onnx(static_cast<int32_t>(ctx.int_attr(name)), ctx.op_type());
}

void constant_(NodeContext& ctx) {
  if (ctx.has_attr("value")) return out(ctx, 0, constant(ctx, ctx.tensor_attr("value")));
  if (ctx.has_attr("sparse_value")) return out(ctx, 0, constant(ctx, ctx.tensor_attr("sparse_value")));
  if (ctx.has_attr("value_float"))
    return out(ctx, 0, number(ctx, DType::kF32, ctx.float_attr("value_float", 0)));
  if (ctx.has_attr("value_int"))
    return out(ctx, 0, constant(ctx, Tensor::ints({ctx.int_attr("value_int")}).reshaped({})));
  if (ctx.has_attr("value_floats")) {
    const std::vector<double> values = ctx.floats_attr("value_floats");
    return out(ctx, 0, constant(ctx, Tensor::of(DType::kF32, {static_cast<int64_t>(values.size())}, values)));
  }
  if (ctx.has_attr("value_ints"))
    return out(ctx, 0, constant(ctx, Tensor::ints(ctx.ints_attr("value_ints"))));
  if (ctx.has_attr("value_string"))
    return out(ctx, 0, constant(ctx, Tensor::strings({}, {ctx.string_attr("value_string", "")})));
  if (ctx.has_attr("value_strings")) {
    const std::vector<std::string> values = ctx.strings_attr("value_strings");
    return out(ctx, 0, constant(ctx, Tensor::strings({static_cast<int64_t>(values.size())}, values)));
  }
  ctx.invalid("no value attribute");
}

void constant_of_shape(NodeContext& ctx) {
  Tensor value = Tensor::scalar(DType::kF32, 0);
  if (ctx.has_attr("value")) {
    value = ctx.tensor_attr("value");
    if (value.size() != 1) ctx.invalid("attribute value must have one element");
    value = value.reshaped({});
  }
  ctx.set_output(0, ctx.emit(Op::expand, {ctx.constant(value), ctx.input(0)}));
}

void eye_like(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  if (x.rank() != 2) ctx.invalid("the operand must have rank 2");
  const Expr rows = iota_along(ctx, x.dim(0), 0, 2), columns = iota_along(ctx, x.dim(1), 1, 2);
  const double k = static_cast<double>(ctx.int_attr("k", 0));
  out(ctx, 0, cast(equal(rows + k, columns), dtype_attr(ctx, "dtype", x.dtype())));
}

// Length of a range whose bounds are only known when it runs: the host computes it.
Expr run_time_range(const Expr& start, const Expr& limit, const Expr& delta) {
  const Expr span = cast(limit, DType::kF64) - cast(start, DType::kF64);
  const Expr count = maximum(emit(Op::ceil, span / cast(delta, DType::kF64)), 0.0);
  const Expr length = reshape(cast(count, DType::kI64), {Dim(1)});
  return emit(Op::iota, length, {{"axis", int64_t{0}}});
}

Expr range_index(NodeContext& ctx, const Expr& start, const Expr& limit, const Expr& delta) {
  const Tensor *a = ctx.constant_value(start.id()), *b = ctx.constant_value(limit.id()),
               *step = ctx.constant_value(delta.id());
  if (a && b && step && is_float(start.dtype())) {
    const double count = std::ceil((b->as_double(0) - a->as_double(0)) / step->as_double(0));
    if (!std::isfinite(count)) ctx.invalid("the range has no finite length");
    return iota(ctx, Dim(static_cast<int64_t>(std::max(count, 0.0))));
  }
  const auto from = ctx.known(start.id()), to = ctx.known(limit.id()), by = ctx.known(delta.id());
  if (from && to && by && by->at(0).is_const()) {
    const int64_t stride = by->at(0).value();
    if (stride == 0) ctx.invalid("delta is 0");
    const Dim span = stride > 0 ? to->at(0) - from->at(0) : from->at(0) - to->at(0);
    const Dim count = ir::ceil_div(span, Dim(stride > 0 ? stride : -stride));
    return iota(ctx, ir::dim_max(count, Dim(0)));
  }
  return run_time_range(start, limit, delta);
}

void range(NodeContext& ctx) {
  const Expr start = reshape(in(ctx, 0), {}), limit = reshape(in(ctx, 1), {}),
             delta = reshape(in(ctx, 2), {});
  const Expr index = range_index(ctx, start, limit, delta);
  const DType dtype = start.dtype();
  const DType wide = dtype == DType::kF16 || dtype == DType::kBF16 ? DType::kF32 : dtype;
  out(ctx, 0, cast(cast(start, wide) + cast(index, wide) * cast(delta, wide), dtype));
}

void one_hot(NodeContext& ctx) {
  const Expr indices = cast(in(ctx, 0), DType::kI64), values = in(ctx, 2);
  const Expr depth = cast(reshape(in(ctx, 1), {Dim(1)}), DType::kI64);
  const int64_t rank = indices.rank() + 1;
  int64_t axis = ctx.int_attr("axis", -1);
  if (axis < -rank || axis >= rank) ctx.invalid("axis is out of range");
  if (axis < 0) axis += rank;
  const Expr classes = along(emit(Op::iota, depth, {{"axis", int64_t{0}}}), axis, rank);
  const Expr wrapped = where(less(indices, 0.0), indices + reshape(depth, {}), indices);
  const Expr off = reshape(slice(values, 0, 0, 1), {}), on = reshape(slice(values, 0, 1, 2), {});
  out(ctx, 0, where(equal(unsqueeze(wrapped, {axis}), classes), on, off));
}

void trilu(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  if (x.rank() < 2) ctx.invalid("the operand must have rank 2 or more");
  const Expr rows = iota_along(ctx, x.dim(-2), 0, 2), columns = iota_along(ctx, x.dim(-1), 1, 2);
  const Expr diagonal = ctx.has_input(1) ? rows + reshape(in(ctx, 1), {}) : rows;
  const bool upper = ctx.int_attr("upper", 1) != 0;
  const Expr kept = upper ? greater_equal(columns, diagonal) : less_equal(columns, diagonal);
  out(ctx, 0, where(kept, x, number(ctx, x.dtype(), 0)));
}

// Cosine windows: sum of weights[k] * cos(2 pi k n / N), N = size (periodic) or size - 1.
void cosine_window(NodeContext& ctx, const std::vector<double>& weights) {
  const Expr size = cast(reshape(in(ctx, 0), {Dim(1)}), DType::kI64);
  const DType dtype = dtype_attr(ctx, "output_datatype", DType::kF32);
  const DType wide = dtype == DType::kF64 ? dtype : DType::kF32;
  const Expr n = cast(emit(Op::iota, size, {{"axis", int64_t{0}}}), wide);
  Expr period = cast(reshape(size, {}), wide);
  // A window of one element has the value of its centre in neither form: N is kept away from 0.
  if (ctx.int_attr("periodic", 1) == 0) period = maximum(period - 1.0, 1.0);
  const double turn = 2 * std::acos(-1.0);
  Expr window = number(ctx, wide, weights[0]);
  for (size_t k = 1; k < weights.size(); ++k)
    window = window + weights[k] * emit(Op::cos, (turn * static_cast<double>(k)) * n / period);
  out(ctx, 0, cast(window, dtype));
}

void hann(NodeContext& ctx) { cosine_window(ctx, {0.5, -0.5}); }
void hamming(NodeContext& ctx) { cosine_window(ctx, {25.0 / 46.0, -21.0 / 46.0}); }
void blackman(NodeContext& ctx) { cosine_window(ctx, {0.42, -0.5, 0.08}); }

}  // namespace

std::vector<OperatorImport> generate_imports() {
  return {
      {"", "Constant", 1, constant_},       {"", "ConstantOfShape", 9, constant_of_shape},
      {"", "EyeLike", 9, eye_like},         {"", "Range", 11, range},
      {"", "OneHot", 9, one_hot},           {"", "Trilu", 14, trilu},
      {"com.microsoft", "Trilu", 1, trilu}, {"", "HannWindow", 17, hann},
      {"", "HammingWindow", 17, hamming},   {"", "BlackmanWindow", 17, blackman},
  };
}

}  // namespace thrice::frontend::onnx
